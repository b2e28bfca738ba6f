package install

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/system"
)

// settled is a home in which an install was made, with a settings file of the
// user's.
func settled(t *testing.T) (home string, install, uninstall func(apply bool) (output string, err error)) {
	t.Helper()
	s, stderr, set := world(t, "")
	home = set().Home
	write(t, filepath.Join(home, ".claude/settings.json"), "{\"model\": \"x\"}\n")
	within := func(verb func(context.Context) error) (string, error) {
		stderr.Reset()
		s.Stdout = new(bytes.Buffer)
		done := make(chan error, 1)
		go func() { done <- verb(t.Context()) }()
		select {
		case err := <-done:
			return s.Stdout.(*bytes.Buffer).String() + stderr.String(), err
		case <-time.After(20 * time.Second):
			t.Fatal("it hangs")
			return "", nil
		}
	}
	install = func(apply bool) (string, error) {
		return within(func(ctx context.Context) error {
			_, err := Run(ctx, s, set(), Options{Apply: apply})
			return err
		})
	}
	uninstall = func(apply bool) (string, error) {
		return within(func(ctx context.Context) error {
			_, err := Uninstall(ctx, s, home, Options{Apply: apply})
			return err
		})
	}
	if _, err := install(true); err != nil {
		t.Fatal(err)
	}
	return home, install, uninstall
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Something other than a file in place of one that install keeps: no verb
// hangs, none reads through it, and one that fails has changed nothing.
func TestSomethingElseInPlaceOfAFile(t *testing.T) {
	const secret = "a secret of the user's"
	plants := map[string]func(home, path string) error{
		"a FIFO":      func(_, path string) error { return syscall.Mkfifo(path, 0o600) },
		"a directory": func(_, path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		"a link":      func(home, path string) error { return os.Symlink(filepath.Join(home, "secret"), path) },
		"a device":    func(_, path string) error { return os.Symlink("/dev/zero", path) },
		"a huge file": func(_, path string) error {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		},
	}
	everything := []string{ // that can be in the place of one of these
		".claude/settings.json.before-harness", ".config/research-harness/installed.json",
		".config/research-harness/sandbox/claude.json", ".claude/settings.json", ".claude.json",
	}
	for _, file := range append(everything,
		".config/research-harness/sandbox/claude-inner-off.json",
		".config/research-harness/launch/claude.json", ".config/research-harness/launch/claude.version.json",
		".config/research-harness/launch/index.json", ".config/research-harness/.lock",
		".local/bin/agentbox", ".claude/hooks", ".other", "profile.toml",
		".config/go/env", ".local/bin/srt",
	) {
		for name, plant := range plants {
			if name != "a FIFO" && !slices.Contains(everything, file) {
				continue
			}
			t.Run(file+"/"+name, func(t *testing.T) {
				home, install, uninstall := settled(t)
				write(t, filepath.Join(home, "secret"), secret)
				path := filepath.Join(home, file)
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := plant(home, path); err != nil {
					t.Fatal(err)
				}
				for verb, run := range map[string]func(bool) (string, error){"install": install, "uninstall": uninstall} {
					if verb == "install" && file == "profile.toml" {
						continue // the set cannot be made; package profile has the case
					}
					before := withoutLock(t, home)
					out, dryErr := run(false)
					if strings.Contains(out, secret) {
						t.Errorf("%s prints the secret:\n%s", verb, out)
					}
					out, err := run(true)
					if strings.Contains(out, secret) {
						t.Errorf("%s --apply prints the secret:\n%s", verb, out)
					}
					if err == nil {
						continue
					}
					if !strings.Contains(err.Error(), path) {
						t.Errorf("%s does not name the file: %v", verb, err)
					}
					if file != ".config/research-harness/.lock" && dryErr == nil {
						t.Errorf("the dry run of %s does not say: %v", verb, err)
					}
					if after := withoutLock(t, home); !maps.Equal(before, after) {
						t.Errorf("%s failed and changed something: %v\n%s", verb, err, cmp.Diff(before, after))
					}
				}
				if data, err := os.ReadFile(filepath.Join(home, "secret")); err != nil || string(data) != secret {
					t.Errorf("the file behind the link: %q, %v", data, err)
				}
			})
		}
	}
}

// withoutLock is a snapshot without the lock, which a verb that fails may
// leave.
func withoutLock(t *testing.T, home string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	for path, entry := range snapshot(t, home) {
		if filepath.Base(path) != ".lock" {
			tree[path] = entry
		}
	}
	return tree
}

// A FIFO passed for a file that is there already.
func TestStateThatIsNoFile(t *testing.T) {
	home, install, _ := settled(t)
	path := filepath.Join(home, ".claude.json")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := install(true); err == nil || err.Error() != path+": is not a regular file" {
		t.Error(err)
	}
}

// Uninstall said "directory not empty" after a state had gone and come back.
func TestStateThatCameBack(t *testing.T) {
	for rule, between := range map[string]func(t *testing.T, home string, install func(bool) (string, error)){
		"removed by the user and made by the next install": func(t *testing.T, home string, install func(bool) (string, error)) {
			for range 3 {
				if err := os.RemoveAll(filepath.Join(home, ".other")); err != nil {
					t.Fatal(err)
				}
				if _, err := install(true); err != nil {
					t.Fatal(err)
				}
			}
		},
		"removed and made by the user": func(t *testing.T, home string, _ func(bool) (string, error)) {
			if err := os.RemoveAll(filepath.Join(home, ".other")); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(home, ".other"), 0o755); err != nil {
				t.Fatal(err)
			}
		},
		"removed": func(t *testing.T, home string, _ func(bool) (string, error)) {
			if err := os.RemoveAll(filepath.Join(home, ".other")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(rule, func(t *testing.T) {
			home, install, uninstall := settled(t)
			between(t, home, install)
			if _, err := uninstall(true); err != nil {
				t.Fatal(err)
			}
			if exists(filepath.Join(home, ".other")) || exists(filepath.Join(home, ".config")) {
				t.Errorf("not everything is gone: %q", snapshot(t, home))
			}
		})
	}
}

// What is put into a directory between the plan and its removal stays.
func TestDirectoryInUseAtTheLastMoment(t *testing.T) {
	s, stderr, set := world(t, "")
	home := set().Home
	if _, err := Run(t.Context(), s, set(), Options{Apply: true}); err != nil {
		t.Fatal(err)
	}
	stderr.Reset()
	state := filepath.Join(home, ".other")
	disk := files.Disk{Before: func(_, path string) error {
		if path == state {
			write(t, filepath.Join(state, "log"), "x")
		}
		return nil
	}}
	if _, err := Uninstall(t.Context(), s, home, Options{Apply: true, Disk: disk}); err != nil {
		t.Fatal(err)
	}
	if !exists(filepath.Join(state, "log")) || strings.Contains(stderr.String(), "remove directory ~/.other\n") {
		t.Errorf("uninstall says:\n%s", stderr)
	}
}

// A killed install leaves temporary files, which keep no directory.
func TestLeftoversOfAKilledInstall(t *testing.T) {
	home, _, uninstall := settled(t)
	for _, name := range []string{".config/research-harness/.installed.json123", ".config/research-harness/launch/.index.json7", ".claude/hooks/.mine1"} {
		write(t, filepath.Join(home, name), "half")
	}
	if _, err := uninstall(true); err != nil {
		t.Fatal(err)
	}
	if exists(filepath.Join(home, ".config")) || !exists(filepath.Join(home, ".claude/hooks/.mine1")) {
		t.Errorf("left: %q", snapshot(t, home))
	}
}

func TestUninstallSaysWhatStays(t *testing.T) {
	home, _, uninstall := settled(t)
	write(t, filepath.Join(home, ".local/bin/srt"), "#!/bin/sh\n# Written by harness setup, which replaces it.\nnode='/usr/bin/node'\n")
	write(t, filepath.Join(home, ".local/share/research-harness/srt/package.json"), "{}")
	write(t, filepath.Join(home, ".config/research-harness/frontends.lock.toml"), "version = 1\n")
	const want = "type: rm -r ~/.local/bin/srt ~/.local/share/research-harness ~/.config/research-harness/frontends.lock.toml\n"
	dry, err := uninstall(false)
	if err != nil || !strings.HasSuffix(dry, want) {
		t.Errorf("the dry run ends otherwise: %v\n%s", err, dry)
	}
	for _, line := range []string{"remove " + home + "/.config/research-harness/sandbox/claude.json\n", "remove directory " + home + "/.other\n", "+{\"model\": \"x\"}\n"} {
		if !strings.Contains(dry, line) {
			t.Errorf("the dry run has no line %q:\n%s", line, dry)
		}
	}
	if strings.Contains(dry, "/dev/null") {
		t.Errorf("the dry run shows what is removed whole:\n%s", dry)
	}
	if out, err := uninstall(true); err != nil || !strings.HasSuffix(out, want) {
		t.Errorf("it ends otherwise: %v\n%s", err, out)
	}
	write(t, filepath.Join(home, ".local/bin/srt"), "#!/bin/sh\n# the user's own\n")
	if out, err := uninstall(true); err != nil || strings.Contains(out, "bin/srt") {
		t.Errorf("it offers to remove an srt of the user's: %v\n%s", err, out)
	}
}

// Every terminal has its own TMPDIR on some systems.
func TestOnlyTmpdirDiffers(t *testing.T) {
	s, stderr, set := world(t, "")
	home := set().Home
	env := s.Env
	at := func(dir string) *system.System {
		s.Env = slices.Concat(env, []string{"TMPDIR=" + dir})
		stderr.Reset()
		return s
	}
	if _, err := Run(t.Context(), at("/var/tmp/a"), set(), Options{Apply: true}); err != nil {
		t.Fatal(err)
	}
	const note = "harness: only TMPDIR differs ("
	for _, tt := range []struct {
		rule, dir, want string
		changed         bool
	}{
		{"the same", "/var/tmp/a/", "", false},
		{"another", "/var/tmp/b", note + "/var/tmp/b, at install /var/tmp/a); sessions that may not write it keep temporary files in /tmp\n", true},
		{"none", "", note + "none, at install /var/tmp/a)", true},
	} {
		changed, err := Run(t.Context(), at(tt.dir), set(), Options{})
		if err != nil || changed != tt.changed || !strings.HasPrefix(stderr.String(), tt.want) || tt.want == "" && stderr.Len() > 0 {
			t.Errorf("%s: %v, %v, %q", tt.rule, changed, err, stderr)
		}
	}
	write(t, filepath.Join(home, ".local/bin/agentbox"), "mine")
	if _, err := Run(t.Context(), at("/var/tmp/b"), set(), Options{}); err != nil || strings.Contains(stderr.String(), note) {
		t.Errorf("where more differs: %v, %q", err, stderr)
	}
}

// A TMPDIR that is writable for another reason makes no difference.
func TestTmpdirThatIsWritableAnyway(t *testing.T) {
	s, _, set := world(t, "[setup]\nworkspaces = ['/var/tmp/w']\n")
	if _, err := Run(t.Context(), s, set(), Options{Apply: true}); err != nil {
		t.Fatal(err)
	}
	s.Env = append(s.Env, "TMPDIR=/var/tmp/w")
	if changed, err := Run(t.Context(), s, set(), Options{}); changed || err != nil {
		t.Errorf("%v, %v", changed, err)
	}
}
