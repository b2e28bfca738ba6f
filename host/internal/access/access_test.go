package access

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/internal/srt"
)

// tree makes a home with the given paths: a directory where it ends in a slash,
// a link where it holds " -> ", else a file.
func tree(t *testing.T, paths ...string) string {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		name, target, link := strings.Cut(p, " -> ")
		full := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case link:
			err = os.Symlink(strings.Replace(target, "~", home, 1), full)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(full, 0o755)
		default:
			err = os.WriteFile(full, []byte("content\n"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// in replaces a leading "~" of each entry by home.
func in(home string, entries ...string) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = strings.Replace(e, "~", home, 1)
	}
	return out
}

func TestLinux(t *testing.T) {
	home := tree(t,
		"Research/x/a.go", "Research/x/link -> ~/.ssh/id", "Research/key.pem", "Research/sub/.git/hooks/",
		".ssh/id", ".bashrc",
		"go/bin/tool", "go/pkg/mod/",
		".claude/settings.json", ".claude/hooks/", ".claude/dotfile -> ~/dotfiles/c", "dotfiles/c",
		"linked -> ~/dotfiles", ".netrc", ".cache/token",
		"pkg/real/f", "bin/", "bin/tool -> ../pkg/real/f", "bin/abs -> ~/pkg/real/f",
	)
	policy := srt.Filesystem{
		AllowWrite: in(home, "~/Research", "~/.claude", "~/linked", "~/missing", "~/Research/*/out", "~/.cache"),
		DenyWrite:  in(home, "~/.claude/settings.json", "~/.claude/hooks/x/y", "~/Research/**/.git/hooks", "~/.cache/other"),
		DenyRead:   in(home, "~", "~/.netrc", "~/Research/*.pem", "~/.cache/token"),
		AllowRead:  in(home, "~/go/bin", "~/.claude", "~/bin"),
	}
	m := New(policyOf(policy), "linux", home)
	for _, tc := range []struct {
		name, path  string
		read, write bool
		rule        string // of the write where it differs, else of the read
		entry       string
	}{
		{"a write path can be read and written", "~/Research/x/a.go", true, true, AllowWrite, "~/Research"},
		{"what does not exist there can be made", "~/Research/new/deep", true, true, AllowWrite, "~/Research"},
		{"the rest of home is an empty place", "~/.bashrc", false, false, DenyRead, "~"},
		{"so is home itself, though visible places lie below it", "~", false, false, DenyRead, "~"},
		{"a link to what is hidden leads nowhere", "~/Research/x/link", false, false, DenyRead, "~"},
		{"so does a dotfile's link out of a state directory", "~/.claude/dotfile", false, false, DenyRead, "~"},
		{"a read path can be read alone", "~/go/bin/tool", true, false, Default, ""},
		{"a path beside it is hidden", "~/go/pkg", false, false, DenyRead, "~"},
		{"a write deny inside a write path wins", "~/.claude/settings.json", true, false, DenyWrite, "~/.claude/settings.json"},
		{"an absent write deny is kept from being made", "~/.claude/hooks/x", false, false, DenyWrite, "~/.claude/hooks/x/y"},
		{"and what lies below it", "~/.claude/hooks/x/z", false, false, DenyWrite, "~/.claude/hooks/x/y"},
		{"what it stands in is not", "~/.claude/hooks/z", true, true, AllowWrite, "~/.claude"},
		{"a write path that is a link is not granted", "~/linked/new", false, false, DenyRead, "~"},
		{"a missing write path is not granted", "~/missing", false, false, DenyRead, "~"},
		{"a pattern denies no write", "~/Research/sub/.git/hooks", true, true, AllowWrite, "~/Research"},
		{"a pattern denies a read", "~/Research/key.pem", false, false, DenyRead, "~/Research/*.pem"},
		{"a read deny of a file inside a write path wins", "~/.cache/token", false, false, DenyRead, "~/.cache/token"},
		{"the system can be read", "/usr/bin", true, false, Default, ""},
		{"the null device can be written", "/dev/null", true, true, Default, ""},
		{"other devices are not there", "/dev/sda", false, false, Default, ""},
		{"processes can be read", "/proc/self", true, false, Default, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := in(home, tc.path)[0]
			read, write := m.Read(p), m.Write(p)
			if read.Allowed != tc.read || write.Allowed != tc.write {
				t.Errorf("read %+v\nwrite %+v", read, write)
			}
			entry := ""
			if tc.entry != "" {
				entry = in(home, tc.entry)[0]
			}
			if write.Rule != tc.rule || write.Entry.Text != entry {
				t.Errorf("decided by %s %s: %s", write.Rule, write.Entry.Text, write.Reason)
			}
			if read.Reason == "" || write.Reason == "" {
				t.Error("no reason")
			}
		})
	}

	t.Run("what an entry does not do is told", func(t *testing.T) {
		got := map[string]string{}
		for _, touch := range m.Inert() {
			got[strings.Replace(touch.Entry.Text, home, "~", 1)] = touch.Inert
		}
		want := map[string]string{
			"~/linked":                 "it is reached through a link to " + home + "/dotfiles, and srt grants no write through a link",
			"~/missing":                "it does not exist, so srt grants nothing",
			"~/Research/*/out":         "srt ignores a pattern in filesystem.allowWrite on linux",
			"~/Research/**/.git/hooks": "srt ignores a pattern in filesystem.denyWrite on linux",
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v", got)
		}
	})

	t.Run("once it exists a missing write path is granted", func(t *testing.T) {
		if v := m.WithMissing().Write(home + "/missing/x"); !v.Allowed {
			t.Errorf("%+v", v)
		}
	})
}

func TestLinuxReadPathAboveWritePath(t *testing.T) {
	home := tree(t, "go/pkg/mod/")
	policy := srt.Filesystem{
		AllowWrite: in(home, "~/go/pkg"), DenyRead: in(home, "~"), AllowRead: in(home, "~/go", "~/go/pkg"),
	}
	v := New(policyOf(policy), "linux", home).Write(home + "/go/pkg/mod/x")
	if v.Allowed || v.Rule != AllowRead || v.Entry.Text != home+"/go" {
		t.Errorf("%+v", v)
	}
}

func TestLinuxDoesNotStart(t *testing.T) {
	home := tree(t, "bin/", "bin/abs -> ~/pkg/f", "pkg/f", "go/pkg/")
	for _, tc := range []struct {
		name   string
		policy srt.Filesystem
		entry  string
	}{
		{
			"a read entry is an absolute link in a directory that is shown",
			srt.Filesystem{DenyRead: in(home, "~"), AllowRead: in(home, "~/bin", "~/bin/abs")},
			"~/bin/abs",
		},
		{
			"an absent write deny lies where a read path made the write path read-only",
			srt.Filesystem{
				AllowWrite: in(home, "~/go/pkg"), DenyWrite: in(home, "~/go/pkg/x"),
				DenyRead: in(home, "~"), AllowRead: in(home, "~/go"),
			},
			"~/go/pkg/x",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := New(policyOf(tc.policy), "linux", home)
			entry, reason := m.Fault()
			if entry.Text != in(home, tc.entry)[0] || reason == "" {
				t.Errorf("%+v: %s", entry, reason)
			}
			if v := m.Read("/usr"); v.Allowed || !strings.Contains(v.Reason, reason) {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestDarwin(t *testing.T) {
	home := "/Users/u"
	policy := srt.Filesystem{
		AllowWrite: in(home, "~/Research", "~/.claude", "~/gen/*.log"),
		DenyWrite:  in(home, "~/.claude/settings.json", "~/Research/**/.git/hooks"),
		DenyRead:   in(home, "~", "~/Research/**/*.pem"),
		AllowRead:  in(home, "~/.claude", "~/go", "~/Research"),
	}
	m := New(policyOf(policy), "darwin", home)
	for _, tc := range []struct {
		name, path  string
		read, write bool
	}{
		{"a path in both lists", "~/Research/x", true, true},
		{"a write path is not read by itself", "~/gen/a.log", false, true},
		{"a pattern grants no more than it matches", "~/gen/a.log/b", false, false},
		{"the rest of home", "~/.ssh/id", false, false},
		{"a read path", "~/go/bin", true, false},
		{"a write deny", "~/.claude/settings.json", true, false},
		{"a pattern denies a write", "~/Research/a/b/.git/hooks/x", true, false},
		{"a pattern denies a read below a read path", "~/Research/a/key.pem", false, true},
		{"the system", "/usr/bin", true, false},
		{"the null device", "/dev/null", true, true},
		{"a directory above a write deny can be used", "~/.claude/x", true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := in(home, tc.path)[0]
			if read, write := m.Read(p), m.Write(p); read.Allowed != tc.read || write.Allowed != tc.write {
				t.Errorf("read %+v\nwrite %+v", read, write)
			}
		})
	}
}

// TestRealStart compares the model with the whole srt once, its own write
// denies in the current directory included.
func TestRealStart(t *testing.T) {
	program := srtProgram(t)
	home := tree(t, "Research/x/.git/hooks/", "Research/x/.git/config", "Research/x/a.go", ".ssh/id", ".bashrc", "go/bin/tool", ".claude/debug/", ".npm/_logs/")
	cwd := home + "/Research/x"
	settings := srt.Settings{
		Network: srt.Network{AllowedDomains: []string{}, DeniedDomains: []string{}},
		Filesystem: srt.Filesystem{
			AllowWrite: in(home, "~/Research"), DenyWrite: []string{},
			DenyRead: in(home, "~"), AllowRead: in(home, "~/go/bin", "~/.claude"),
		},
	}
	file := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(file, settings.Encode(), 0o644); err != nil {
		t.Fatal(err)
	}
	probes := in(home, "~/Research/x/a.go", "~/Research/x/.bashrc", "~/Research/x/.git/hooks/pre-commit", "~/Research/x/.git/config",
		"~/Research/x/.vscode/tasks.json", "~/Research/x/.claude/commands/c", "~/.ssh/id", "~/.bashrc", "~/go/bin/tool",
		"~/.claude/debug/log", "~/.npm/_logs/log", "/etc/passwd")
	m := New(policyOf(settings.Filesystem), "linux", home).WithCwd(cwd)
	var script strings.Builder
	for i, p := range probes {
		fmt.Fprintf(&script, "cat '%s' >/dev/null && echo R%d; ", p, i)
		if !strings.HasPrefix(p, "/etc") {
			fmt.Fprintf(&script, "mkdir -p '%s'; echo mark%d >>'%s'; ", filepath.Dir(p), i, p)
		}
	}
	wantRead := make([]bool, len(probes))
	wantWrite := make([]bool, len(probes))
	for i, p := range probes {
		if _, err := os.Stat(p); err == nil {
			wantRead[i] = m.Read(p).Allowed
		}
		wantWrite[i] = m.Write(p).Allowed
	}
	cmd := exec.Command(program, "--settings", file, "--", "bash", "-c", script.String())
	cmd.Dir = cwd
	cmd.Env = append(os.Environ(), "HOME="+home)
	out, _ := cmd.Output()
	for i, p := range probes {
		if got := strings.Contains(string(out), fmt.Sprintf("R%d\n", i)); got != wantRead[i] {
			t.Errorf("reading %s: srt %v, the model %v", p, got, wantRead[i])
		}
		if got := reached(p, i); got != wantWrite[i] {
			t.Errorf("writing %s: srt %v, the model %+v", p, got, m.Write(p))
		}
	}
}

// BenchmarkLaunch is what a launch asks of a policy of ordinary size: under a
// millisecond.
func BenchmarkLaunch(b *testing.B) {
	home := b.TempDir()
	f := srt.Filesystem{DenyRead: []string{home}}
	for i := range 40 {
		dir := fmt.Sprintf("%s/.config/d%d/sub", home, i)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		f.AllowRead = append(f.AllowRead, dir)
		f.AllowWrite = append(f.AllowWrite, dir+"/w")
		f.DenyWrite = append(f.DenyWrite, dir+"/w/deny")
		f.DenyRead = append(f.DenyRead, dir+"/secret")
	}
	p := policyOf(f)
	for b.Loop() {
		m := New(p, "linux", home)
		m.Read(home + "/.config/d3/sub")
		m.Read("/usr/bin/env")
		m.Write(home + "/.config/d7/sub/w/x")
	}
}

// BenchmarkLarge is a policy of 100,000 entries: its time grows with their
// number, not with its square.
func BenchmarkLarge(b *testing.B) {
	for _, goos := range []string{"linux", "darwin"} {
		for _, n := range []int{1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", goos, n), func(b *testing.B) {
				home := b.TempDir()
				f := srt.Filesystem{DenyRead: []string{home}}
				for i := range n / 4 {
					dir := fmt.Sprintf("%s/a%d/b%d", home, i%100, i)
					f.AllowWrite = append(f.AllowWrite, dir)
					f.DenyWrite = append(f.DenyWrite, dir+"/c")
					f.DenyRead = append(f.DenyRead, dir+"/d")
					f.AllowRead = append(f.AllowRead, dir+"/d/e")
				}
				p := policyOf(f)
				for b.Loop() {
					m := New(p, goos, home).WithMissing()
					m.Read(home + "/a3/b3/x")
					m.Write(home + "/a3/b3/c")
				}
			})
		}
	}
}
