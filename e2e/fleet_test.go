package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestRenderForAnotherHome(t *testing.T) {
	w := newWorld(t)
	harness := part(t, "HARNESS_TEST_BIN", "../build", "bin", "harness")
	profile, err := filepath.Abs("../examples/fleet/profile.toml")
	w.must(err)
	render := func(dir string, args ...string) {
		t.Helper()
		args = append([]string{"render", "--home", "/home/no body", "--out", filepath.Join(w.root, dir)}, args...)
		if r := w.run(harness, args...); r.code != 0 {
			t.Fatalf("status %d: %s", r.code, r.stderr)
		}
	}
	render("a", "--profile", profile)
	// Another user, shell and directory.
	w.env["HOME"], w.env["GOCACHE"], w.env["CLAUDE_CONFIG_DIR"] = w.work, w.in("cache"), w.in("claude")
	delete(w.env, "TMPDIR")
	w.work = w.root
	render("b", "--profile", profile)
	if r := w.run("diff", "-r", filepath.Join(w.root, "a"), filepath.Join(w.root, "b")); r.code != 0 {
		t.Errorf("the bytes differ: %s", r.stdout)
	}
	if got := w.run("ls", filepath.Join(w.root, "a")).stdout; got != "claude.json\nopencode.json\n" {
		t.Errorf("it wrote %q", got)
	}
	settings := w.read(filepath.Join(w.root, "a", "claude.json"))
	if !strings.Contains(settings, `"/home/no body/Research"`) || strings.Contains(settings, w.root) {
		t.Errorf("it wrote %s", settings)
	}
	// Nor does the default profile of this machine, even one that is wrong.
	w.write(filepath.Join(w.env["HOME"], ".config", "research-harness", "profile.toml"), "wrong = 1\n")
	render("c", "omp")
	if got := w.run("ls", filepath.Join(w.root, "c")).stdout; got != "omp.json\n" {
		t.Errorf("it wrote %q for one frontend", got)
	}
}

// TestInstallIntoATree builds another machine's files and then runs a session
// there: with the tree's home directory in the place for which it was made.
func TestInstallIntoATree(t *testing.T) {
	w := newWorld(t)
	if err := exec.Command("unshare", "-rm", "true").Run(); err != nil {
		t.Skipf("unshare: %v", err)
	}
	harness := part(t, "HARNESS_TEST_BIN", "../build", "bin", "harness")
	root := filepath.Join(w.root, "tree")
	home := root + w.home
	w.write(filepath.Join(home, ".config", "research-harness", "profile.toml"), "[setup]\nfrontends = ['claude']\nworkspaces = ['~/there']\n")
	w.write(filepath.Join(home, "there", "file"), "")
	w.write(filepath.Join(home, ".claude", "settings.json"), "{\"model\": \"theirs\"}\n")
	w.write(filepath.Join(home, ".local", "bin", "srt"), w.read(w.in(".local", "bin", "srt")))
	w.must(exec.Command("chmod", "+x", filepath.Join(home, ".local", "bin", "srt")).Run())
	w.env["GOCACHE"] = w.work // of this machine, and so of no account

	before := tree(t, w.home)
	for _, tt := range []struct {
		args []string
		code int
	}{
		{nil, 1},
		{[]string{"--apply"}, 0},
		{nil, 0},
	} {
		if r := w.run(harness, append([]string{"install", "--root", root}, tt.args...)...); r.code != tt.code {
			t.Fatalf("install %q: status %d, want %d\n%s%s", tt.args, r.code, tt.code, r.stdout, r.stderr)
		}
	}
	if after := tree(t, w.home); after != before {
		t.Errorf("this machine's home directory changed from\n%s to\n%s", before, after)
	}
	if r := w.run("grep", "-rl", root, root); r.stdout != "" {
		t.Errorf("these files name the tree: %s", r.stdout)
	}
	if got := w.read(filepath.Join(home, ".claude", "settings.json")); !strings.Contains(got, `"model": "theirs"`) {
		t.Errorf("the user's settings became %s", got)
	}

	delete(w.env, "GOCACHE")
	there := func(script string) result {
		t.Helper()
		return w.run("unshare", "-rm", "sh", "-c", `mount --bind "$1" "$HOME" && cd ~/there && shift && exec "$@"`, "sh", home,
			w.in(".local", "bin", "agentbox"), "claude", "sh", "-c", script)
	}
	r := there(`pwd; echo written > file; echo x > ~/.claude/state; echo y > ~/.claude/settings.json`)
	if r.stdout != w.in("there")+"\n" {
		t.Errorf("status %d: %s%s", r.code, r.stdout, r.stderr)
	}
	for file, want := range map[string]string{"there/file": "written\n", ".claude/state": "x\n"} {
		if got := w.read(filepath.Join(home, file)); got != want {
			t.Errorf("%s is %q, want %q: %s", file, got, want, r.stderr)
		}
	}
	if got := w.read(filepath.Join(home, ".claude", "settings.json")); got == "y\n" {
		t.Error("the session could write its settings")
	}
	// What that machine's user types finds all in place.
	if r := w.run("unshare", "-rm", "sh", "-c", `mount --bind "$1" "$HOME" && exec ~/.local/bin/harness install`, "sh", home); r.code != 1 ||
		strings.Count(r.stdout, "+++ ") != 1 { // this shell's TMPDIR
		t.Errorf("install there: status %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestInstallIntoATreeRefuses(t *testing.T) {
	w := newWorld(t)
	harness := part(t, "HARNESS_TEST_BIN", "../build", "bin", "harness")
	root := filepath.Join(w.root, "tree")
	w.write(filepath.Join(root, "home", "alice", "f"), "")
	w.must(exec.Command("ln", "-s", w.work, filepath.Join(root, "home", "alice", ".config")).Run())
	w.must(exec.Command("ln", "-s", "alice", filepath.Join(root, "home", "link")).Run())
	for _, tt := range []struct {
		rule, want string
		args       []string
	}{
		{"no tree", "--root: ", []string{"--root", filepath.Join(w.root, "gone")}},
		{"this machine", "own root", []string{"--root", "/"}},
		{"no home directory in it", "is not a home directory", []string{"--root", root, "--home", "/home/bob"}},
		{"a home directory by a link", "is not a home directory", []string{"--root", root, "--home", "/home/link"}},
		{"a relative home directory", "absolute", []string{"--root", root, "--home", "home/alice"}},
		{"a home directory without a tree", "goes with --root", []string{"--home", "/home/alice"}},
		{"a link that leads out of it", "outside of", []string{"--root", root, "--home", "/home/alice"}},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			before := tree(t, w.root)
			r := w.run(harness, append([]string{"install", "--apply"}, tt.args...)...)
			if r.code != 2 || !strings.Contains(r.stderr, tt.want) {
				t.Errorf("status %d: %s", r.code, r.stderr)
			}
			if after := tree(t, w.root); after != before {
				t.Errorf("the disk changed")
			}
		})
	}
}

// TestFleetExamples holds the commands of the examples against the verbs.
func TestFleetExamples(t *testing.T) {
	w := newWorld(t)
	harness := part(t, "HARNESS_TEST_BIN", "../build", "bin", "harness")
	command := regexp.MustCompile(`(?:bin/| {4})harness ([a-z]+)([^"\n|]*)`)
	for file, least := range map[string]int{"Dockerfile": 2, "tasks.yml": 5, "README.md": 2} {
		data, err := os.ReadFile(filepath.Join("../examples/fleet", file))
		w.must(err)
		found := command.FindAllStringSubmatch(string(data), -1)
		if len(found) < least {
			t.Errorf("%s has %d commands, want %d", file, len(found), least)
		}
		for _, m := range found {
			help := w.run(harness, m[1], "--help")
			for _, word := range strings.Fields(m[2]) {
				if strings.HasPrefix(word, "--") && !strings.Contains(help.stdout, word+" ") {
					t.Errorf("%s: harness %s has no %s", file, m[1], word)
				}
			}
			if help.code != 0 {
				t.Errorf("%s: harness has no %s", file, m[1])
			}
		}
	}
}
