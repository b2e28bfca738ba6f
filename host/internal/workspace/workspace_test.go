package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/profile"
	"github.com/research-harness/harness/host/internal/system"
)

func TestEdit(t *testing.T) {
	for _, tt := range []struct{ rule, before, add, remove, after string }{
		{"no file: the default stays", "", "~/w", "", "[setup]\nworkspaces = [\"~/Research\", \"~/w\"]\n"},
		{"no table", "[network]\nallow = []", "~/w", "", "[network]\nallow = []\n\n[setup]\nworkspaces = [\"~/Research\", \"~/w\"]\n"},
		{"no key in the table", "[setup] # mine\nfrontends = []\n", "~/w", "", "[setup] # mine\nworkspaces = [\"~/Research\", \"~/w\"]\nfrontends = []\n"},
		{"a header that ends the file", "[ setup ]", "~/w", "", "[ setup ]\nworkspaces = [\"~/Research\", \"~/w\"]\n"},
		{"dotted keys", "# top\nsetup.frontends = []\n", "~/w", "", "# top\nsetup.workspaces = [\"~/Research\", \"~/w\"]\nsetup.frontends = []\n"},
		{"an inline table", "setup = {frontends = []}\n", "~/w", "", "setup = { workspaces = [\"~/Research\", \"~/w\"],frontends = []}\n"},
		{"an empty inline table", "setup = {}\n", "~/w", "", "setup = { workspaces = [\"~/Research\", \"~/w\"]}\n"},
		{"a list in an inline table", "setup = {workspaces = ['~/a']}\n", "~/w", "", "setup = {workspaces = ['~/a', \"~/w\"]}\n"},
		{"a dotted list", "setup.workspaces = ['~/a']\n", "~/w", "", "setup.workspaces = ['~/a', \"~/w\"]\n"},
		{"an empty list with a comment", "[setup]\nworkspaces = [ # none yet\n]\n", "~/w", "", "[setup]\nworkspaces = [\"~/w\" # none yet\n]\n"},
		{"one line", "[setup]\nworkspaces = ['~/a#]', \"~/b\\\"]\"] # c\n", "~/w", "", "[setup]\nworkspaces = ['~/a#]', \"~/b\\\"]\", \"~/w\"] # c\n"},
		{"one line, a comma at its end", "[setup]\nworkspaces = [\"~/a\",] # c\n", "~/w", "", "[setup]\nworkspaces = [\"~/a\", \"~/w\",] # c\n"},
		{"one to a line", "[setup]\nworkspaces = [\n\t\"~/a\", # a, [\n\t# b\n]\n", "~/w", "", "[setup]\nworkspaces = [\n\t\"~/a\", # a, [\n\t\"~/w\",\n\t# b\n]\n"},
		{"one to a line, no comma at the end", "[setup]\nworkspaces = [\n  \"~/a\" # a\n]\n", "~/w", "", "[setup]\nworkspaces = [\n  \"~/a\", # a\n  \"~/w\"\n]\n"},
		{"carriage returns and a byte order mark", "\ufeff[setup]\r\nworkspaces = [\r\n  \"~/a\"\r\n]\r\n", "~/w", "", "\ufeff[setup]\r\nworkspaces = [\r\n  \"~/a\",\r\n  \"~/w\"\r\n]\r\n"},
		{"a name that needs escapes", "[setup]\nworkspaces = []\n", "~/\"\\\n\x7fé<&>", "", "[setup]\nworkspaces = [\"~/\\\"\\\\\\n\\u007fé<&>\"]\n"},

		{"the default", "", "", "~/Research", "[setup]\nworkspaces = []\n"},
		{"the only one", "[setup]\nworkspaces = [\"~/a\"]\n", "", "~/a", "[setup]\nworkspaces = []\n"},
		{"the first of a line", "[setup]\nworkspaces = [\"~/a\", '~/b']\n", "", "~/a", "[setup]\nworkspaces = ['~/b']\n"},
		{"the middle of a line", "[setup]\nworkspaces = [\"~/a\", '~/b', \"~/c\"]\n", "", "~/b", "[setup]\nworkspaces = [\"~/a\", \"~/c\"]\n"},
		{"the last of a line", "[setup]\nworkspaces = [\"~/a\", '~/b']\n", "", "~/b", "[setup]\nworkspaces = [\"~/a\"]\n"},
		{"the last of a line, a comma at its end", "[setup]\nworkspaces = [\"~/a\", '~/b',]\n", "", "~/b", "[setup]\nworkspaces = [\"~/a\",]\n"},
		{"a line of its own", "[setup]\nworkspaces = [\n  \"~/a\", # a\n  # b's\n  \"~/b\",\t# b\n  \"~/c\"\n]\n", "", "~/b", "[setup]\nworkspaces = [\n  \"~/a\", # a\n  # b's\n  \"~/c\"\n]\n"},
		{"the last line", "[setup]\r\nworkspaces = [\r\n  \"~/a\", # a\r\n  \"~/b\"\r\n]\r\n", "", "~/b", "[setup]\r\nworkspaces = [\r\n  \"~/a\", # a\r\n]\r\n"},
		{"the line of the bracket", "[setup]\nworkspaces = [\"~/a\", # a\n  \"~/b\"]\n", "", "~/b", "[setup]\nworkspaces = [\"~/a\", # a\n]\n"},
		{"commas that begin a line, the first", "[setup]\nworkspaces = [\n  \"~/a\"\n, \"~/b\"\n]\n", "", "~/a", ""},
		{"commas that begin a line, the last", "[setup]\nworkspaces = [\n  \"~/a\"\n, \"~/b\"\n]\n", "", "~/b", ""},
		{"twice", "[setup]\nworkspaces = [\"~/a\", '''~/a''', \"\"\"~/a\"\"\", \"~/b\"]\n", "", "~/a", "[setup]\nworkspaces = [\"~/b\"]\n"},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			before, err := profile.Parse("p", []byte(tt.before))
			if err != nil {
				t.Fatal(err)
			}
			dirs := origin.Texts(before.Workspaces)
			want := slices.DeleteFunc(slices.Clone(dirs), func(d string) bool { return d == tt.remove })
			e, err := newEdit([]byte(tt.before))
			if err != nil {
				t.Fatal(err)
			}
			if tt.add != "" {
				want = append(want, tt.add)
				err = e.add(tt.add, dirs)
			} else {
				err = e.remove(dirs, func(d string) bool { return d == tt.remove })
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(e.data); tt.after != "" && got != tt.after {
				t.Errorf("got\n%q, want\n%q", got, tt.after)
			}
			p, err := profile.Parse("p", e.data)
			if err != nil {
				t.Fatalf("%v\n%s", err, e.data)
			}
			if got := origin.Texts(p.Workspaces); !slices.Equal(got, want) {
				t.Errorf("says %q, want %q\n%s", got, want, e.data)
			}
		})
	}
}

// newWorld returns a user with an empty home directory.
func newWorld(t *testing.T) (*system.System, string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := system.Host()
	s.Env, s.Dir = []string{"HOME=" + home}, home
	return s, home
}

func TestAddRefuses(t *testing.T) {
	s, home := newWorld(t)
	for _, dir := range []string{".ssh", ".config/research-harness", "a[1]", "work"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ rule, dir, want string }{
		{"home", home, "is the home directory"},
		{"the root", "/", "is the root directory"},
		{"above home", filepath.Dir(home), "holds the home directory"},
		{"a protected path", filepath.Join(home, ".ssh"), "is protected"},
		{"what governs the session", filepath.Join(home, ".config"), "protected"},
		{"a system directory", "/etc", "is protected"},
		{"no directory", filepath.Join(home, "gone"), "there is no such directory"},
		{"a file", filepath.Join(home, "file"), "is not a directory"},
		{"a pattern", filepath.Join(home, "a[1]"), "pattern"},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			w, err := Load(s, home, "")
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Add(tt.dir); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if w.now != nil {
				t.Errorf("the profile became %q", w.now)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	s, home := newWorld(t)
	work := filepath.Join(home, "work")
	target := filepath.Join(home, "dotfiles", "profile.toml")
	link := filepath.Join(home, ".config", "research-harness", "profile.toml")
	for _, dir := range []string{work, filepath.Dir(target), filepath.Dir(link)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(target, []byte("# mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	load := func() *Workspaces {
		w, err := Load(s, home, "")
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	first, second := load(), load()
	if err := first.Add(work); err != nil {
		t.Fatal(err)
	}
	if err := first.Write(t.Context(), files.Disk{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(target)
	if want := "# mine\n\n[setup]\nworkspaces = [\"~/Research\", \"~/work\"]\n"; err != nil || string(data) != want {
		t.Errorf("behind the link is %q, %v", data, err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}

	if err := second.Add(work); err != nil {
		t.Fatal(err)
	}
	if err := second.Write(t.Context(), files.Disk{}); err == nil || problem.HintOf(err) == "" {
		t.Errorf("a change of another program is overwritten: %v", err)
	}

	w := load()
	if !w.Is(work) || w.Holding(filepath.Join(work, "project")) != "~/work" || w.Is(filepath.Join(work, "project")) {
		t.Errorf("%q does not hold %s", w.Dirs, work)
	}
}
