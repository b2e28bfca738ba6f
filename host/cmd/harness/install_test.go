package main_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestInstall(t *testing.T) {
	u := newUser(t)
	before := u.tree()

	r := u.must(1, "install")
	for _, want := range []string{"+++ " + u.home + "/.config/research-harness/sandbox/claude.json", "create directory " + u.home + "/.claude (0700)"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("the dry run does not say %q", want)
		}
	}
	if after := u.tree(); !maps.Equal(before, after) {
		t.Errorf("the dry run changed the disk:\n%s", cmp.Diff(before, after))
	}

	u.must(0, "install", "--apply")
	u.must(0, "install")
	if r := u.must(0, "install", "--apply"); r.stderr != "harness: nothing to change\n" {
		t.Errorf("a second install says %q", r.stderr)
	}
	if got, want := u.read(".config/research-harness/sandbox/omp.json"), u.must(0, "render", "omp").stdout; got != want {
		t.Errorf("the settings are not what render prints:\n%s", cmp.Diff(want, got))
	}
	if got, want := u.read(".config/research-harness/sandbox/claude-inner-off.json"), "{\"sandbox\": {\"enabled\": false}}\n"; got != want {
		t.Errorf("override: %q", got)
	}
	for path, want := range map[string]string{
		".config/research-harness/sandbox/claude.json":                      "-rw-r--r--",
		".config/research-harness/sandbox/claude-inner-off.json":            "-rw-r--r--",
		".config/research-harness/launch/claude.json":                       "-rw-r--r--",
		".config/research-harness/launch/agy.json":                          "-rw-r--r--",
		".local/bin/agentbox":                                               "-rwxr-xr-x",
		".local/libexec/research-harness/harness-host":                      "-rwxr-xr-x",
		".local/bin/harness":                                                "-rwxr-xr-x",
		".local/libexec/research-harness/frontends/harness-frontend-claude": "-rwxr-xr-x",
		".claude":                 "drwx------",
		".claude.json":            "-rw-------",
		".omp/agent/config.yml":   "-rw-------",
		".gemini/antigravity-cli": "drwx------",
	} {
		if got := u.tree()[path]; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %s", path, got, want)
		}
	}

	// The installed host serves itself.
	installed := u.run(filepath.Join(u.home, ".local/bin/harness"), "install")
	if installed.status != 0 {
		t.Errorf("the installed host: status %d\n%s%s", installed.status, installed.stdout, installed.stderr)
	}

	u.must(1, "uninstall")
	u.must(0, "uninstall", "--apply")
	if after := u.tree(); !maps.Equal(before, after) {
		t.Errorf("uninstall left or took something:\n%s", cmp.Diff(before, after))
	}
	u.must(0, "uninstall", "--apply")
}

// The modes do not depend on the umask.
func TestInstallUmask(t *testing.T) {
	trees := map[string]map[string]string{}
	for _, umask := range []string{"022", "077", "002", "000"} {
		u := newUser(t)
		u.settle()
		script := "umask " + umask + "; exec \"$0\" install --apply"
		if r := u.run("/bin/sh", "-c", script, filepath.Join(u.home, ".local/bin/harness")); r.status != 0 {
			t.Fatalf("umask %s: status %d: %s", umask, r.status, r.stderr)
		}
		trees[umask] = map[string]string{}
		for path, entry := range u.tree() {
			trees[umask][path] = strings.Fields(entry)[0]
		}
	}
	for umask, tree := range trees {
		if !maps.Equal(tree, trees["022"]) {
			t.Errorf("umask %s:\n%s", umask, cmp.Diff(trees["022"], tree))
		}
	}
}

// A byte or a mode that differs is a change, and is put right.
func TestInstallRepairs(t *testing.T) {
	u := newUser(t)
	u.settle()
	u.must(0, "install", "--apply")
	good := u.tree()
	for name, damage := range map[string]func(path string) error{
		"other bytes": func(path string) error { return os.WriteFile(path, []byte("x"), 0o644) },
		"a mode":      func(path string) error { return os.Chmod(path, 0o600) },
		"no file":     os.Remove,
	} {
		for _, file := range []string{".local/bin/agentbox", ".config/research-harness/sandbox/opencode.json", ".config/research-harness/launch/index.json"} {
			if err := damage(filepath.Join(u.home, file)); err != nil {
				t.Fatal(err)
			}
			if r := u.must(1, "install"); !strings.Contains(r.stdout, file) {
				t.Errorf("%s of %s is not in the dry run:\n%s", name, file, r.stdout)
			}
			u.must(0, "install", "--apply")
			if tree := u.tree(); !maps.Equal(good, tree) {
				t.Errorf("%s of %s is not repaired:\n%s", name, file, cmp.Diff(good, tree))
			}
		}
	}
}

func TestInstallOfFewerFrontends(t *testing.T) {
	u := newUser(t)
	u.settle()
	u.must(0, "install", "--apply")
	u.write(profileFile, "[setup]\r\nfrontends = [\"omp\"]\r\n")
	before := u.tree()
	if r := u.must(1, "install"); !strings.Contains(r.stdout, "remove "+u.home+"/.config/research-harness/sandbox/claude.json\n") {
		t.Errorf("the removal is not in the dry run:\n%s", r.stdout)
	}
	u.must(0, "install", "--apply")
	after := u.tree()
	var gone []string
	for path := range before {
		if _, ok := after[path]; !ok {
			gone = append(gone, path)
		}
	}
	want := []string{
		"launch/agy.json", "launch/claude.json", "launch/opencode.json",
		"sandbox/antigravity.json", "sandbox/claude-inner-off.json", "sandbox/claude.json", "sandbox/opencode.json",
	}
	if len(gone) != len(want) {
		t.Errorf("gone: %q", gone)
	}
	for _, w := range want {
		if _, ok := after[".config/research-harness/"+w]; ok {
			t.Errorf("%s is still there", w)
		}
	}

	u.write(profileFile, "\ufeff[setup]\nfrontends = []\n")
	u.must(0, "install", "--apply")
	for _, w := range []string{".local/bin/agentbox", ".config/research-harness/launch/index.json", ".config/research-harness/sandbox/omp.json"} {
		if _, ok := u.tree()[w]; ok {
			t.Errorf("%s is still there with no frontend chosen", w)
		}
	}
	if _, ok := u.tree()[".omp/agent/config.yml"]; !ok {
		t.Error("a state is gone")
	}
}

func TestInstallsAtOnce(t *testing.T) {
	u := newUser(t)
	u.settle()
	const n = 8
	results := make(chan result, n)
	for range n {
		go func() { results <- u.harness("install", "--apply") }()
	}
	for range n {
		if r := <-results; r.status != 0 {
			t.Errorf("status %d: %s", r.status, r.stderr)
		}
	}
	u.must(0, "install")
}

// Installs and uninstalls that run into each other all succeed, and whatever
// the last of them was leaves a state that the next verbs complete.
func TestInstallsAndUninstallsAtOnce(t *testing.T) {
	u := newUser(t)
	u.settle()
	before := u.tree()
	const n = 6
	results := make(chan result, 2*n)
	for range n {
		go func() { results <- u.harness("install", "--apply") }()
		go func() { results <- u.harness("uninstall", "--apply") }()
	}
	for range 2 * n {
		if r := <-results; r.status != 0 {
			t.Errorf("status %d: %s", r.status, r.stderr)
		}
	}
	u.must(0, "install", "--apply")
	u.must(0, "install")
	u.must(0, "uninstall", "--apply")
	if after := u.tree(); !maps.Equal(before, after) {
		t.Errorf("something is left or gone:\n%s", cmp.Diff(before, after))
	}
}

// No verb hangs on a FIFO that lies where it reads.
func TestFIFOInPlaceOfAFile(t *testing.T) {
	// Package install has a case for each file of an install.
	for _, file := range []string{
		profileFile, ".config/go/env", ".local/bin/srt", ".config/research-harness/frontends.lock.toml",
		".config/research-harness/sandbox/claude.json", ".config/research-harness/launch/claude.json",
		".config/research-harness/launch/index.json", ".config/research-harness/launch/opencode.version.json",
		"sources/sandbox/policy.toml", ".local/libexec/research-harness/frontends/harness-frontend-x",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			u.settle()
			if err := os.Mkdir(filepath.Join(u.home, "sources"), 0o755); err != nil {
				t.Fatal(err)
			}
			u.must(0, "install", "--apply")
			path := filepath.Join(u.home, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(path, 0o755); err != nil {
				t.Fatal(err)
			}
			u.env = append(u.env, "RESEARCH_HARNESS_SOURCE="+filepath.Join(u.home, "sources"))
			for _, verb := range []string{
				"explain claude", "doctor", "exec -- true", "launch claude", "launch opencode", "launch --help", "install --apply", "uninstall --apply",
			} {
				done := make(chan result, 1)
				go func() { done <- u.harness(strings.Fields(verb)...) }()
				select {
				case r := <-done:
					if r.status > 2 {
						t.Errorf("harness %s: status %d: %s", verb, r.status, r.stderr)
					}
				case <-time.After(time.Minute):
					t.Fatalf("harness %s hangs", verb)
				}
			}
		})
	}
}

// What a variable says by default and what an empty one says is no change.
func TestInstallInAnotherShell(t *testing.T) {
	u := newUser(t)
	u.settle()
	u.must(0, "install", "--apply")
	env := u.env
	for value, status := range map[string]int{
		"CLAUDE_CONFIG_DIR=": 0, "CLAUDE_CONFIG_DIR=" + u.home + "/.claude/": 0, "XDG_CONFIG_HOME=" + u.home + "/.config": 0,
		"XDG_STATE_HOME=": 0, "XDG_DATA_HOME=" + u.home + "/.local/share": 0, "CLAUDE_CONFIG_DIR=" + u.home + "/other": 1,
	} {
		u.env = slices.Concat(env, []string{value})
		u.must(status, "install")
		r := u.harness("launch", "claude")
		if refused := strings.Contains(r.stderr, "CLAUDE_CONFIG_DIR is"); refused && status == 0 {
			t.Errorf("%s: %s", value, r.stderr)
		}
	}
}

func TestInstallIntoAReadOnlyDirectory(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root writes a read-only directory; the fault tests of package install cover the error")
	}
	u := newUser(t)
	if err := os.Mkdir(filepath.Join(u.home, ".config"), 0o500); err != nil {
		t.Fatal(err)
	}
	r := u.must(2, "install", "--apply")
	checkError(t, r, []string{u.home + "/.config"})
}
