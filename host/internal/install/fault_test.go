package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/plugin"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/sdk"
)

// world returns a home directory, the system of its user, and a set of two
// frontends.
func world(t *testing.T, profile string) (*system.System, *bytes.Buffer, func() *render.Set) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	s := &system.System{
		OS: "linux", Arch: "amd64", Env: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}, Dir: home,
		Stdin: strings.NewReader(""), Stdout: new(bytes.Buffer), Stderr: &stderr, Now: time.Now,
	}
	name := filepath.Join(home, "profile.toml")
	if err := os.WriteFile(name, []byte(profile), 0o644); err != nil {
		t.Fatal(err)
	}
	answers := []plugin.Frontend{
		{
			Contribution: sdk.Contribution{
				Name: "claude", Command: "claude", Title: "Claude Code",
				State:        []sdk.Path{{Path: "~/.claude", Kind: sdk.Dir}, {Path: "~/.claude.json", Kind: sdk.File, Content: []byte("{}\n")}},
				Own:          []string{"~/.claude.json"},
				DenyWrite:    []string{"~/.claude/settings.json", "~/.claude/hooks"},
				Ensure:       []sdk.Path{{Path: "~/.claude/settings.json", Kind: sdk.File, Content: []byte("{}\n")}, {Path: "~/.claude/hooks", Kind: sdk.Dir}},
				Args:         []sdk.Arg{{Literal: "--settings"}, {Override: "claude-inner-off.json"}},
				Overrides:    []sdk.Override{{Name: "claude-inner-off.json", Content: []byte("{}\n")}},
				SettingsFile: "~/.claude/settings.json",
			},
			Plugin: plugin.Found{Name: "claude", File: "/opt/harness-frontend-claude", Bundled: true},
		},
		{
			Contribution: sdk.Contribution{
				Name: "other", Command: "other", Title: "Other",
				State: []sdk.Path{{Path: "~/.other", Kind: sdk.Dir}},
			},
			Plugin: plugin.Found{Name: "other", File: "/opt/harness-frontend-other", Bundled: true},
		},
	}
	return s, &stderr, func() *render.Set {
		set, err := render.Of(s, home, render.Options{Profile: name}, answers)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
}

// snapshot is every file below dir with its bytes, of a huge one the size.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		tree[path] = info.Mode().String()
		switch {
		case info.Size() > 1<<20:
			tree[path] += fmt.Sprint(" ", info.Size())
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			tree[path] += " " + string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// existed reports whether a tree holds a file of that name.
func existed(tree map[string]string, name string) bool {
	for path := range tree {
		if filepath.Base(path) == name {
			return true
		}
	}
	return false
}

// forgetLockDirs drops the directories that hold the lock and the manifest
// from a tree. After a crash when no manifest can tell of them they stay, empty.
func forgetLockDirs(tree map[string]string, home string) {
	delete(tree, filepath.Join(home, ".config/research-harness"))
	delete(tree, filepath.Join(home, ".config"))
}

var errCrash = errors.New("crash")

// failing returns a disk whose step number n fails with fault, and the path
// that it hit.
func failing(n int, fault error) (files.Disk, *string) {
	hit := new(string)
	return files.Disk{Before: func(_, path string) error {
		if n--; n == -1 {
			*hit = path
			return fault
		}
		if n < -1 && errors.Is(fault, errCrash) {
			return fault // nothing happens after a crash
		}
		return nil
	}}, hit
}

// Whatever step of an install fails, each file is old or new, the error names
// the one that failed, and another run completes the work.
func TestEveryFaultOfAnInstall(t *testing.T) {
	for name, fault := range map[string]error{
		"disk full": syscall.ENOSPC, "crash": errCrash,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for step := 0; ; step++ {
				s, _, set := world(t, "")
				home := set().Home
				settings := filepath.Join(home, ".claude/settings.json")
				if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(settings, []byte("{\n  // mine\n  \"model\": \"x\"\n}\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				before := snapshot(t, home)

				disk, hit := failing(step, fault)
				_, err := Run(t.Context(), s, set(), Options{Apply: true, Disk: disk})
				if *hit == "" {
					if err != nil {
						t.Fatal(err)
					}
					if step < 20 {
						t.Errorf("an install of %d steps is not the whole of it", step)
					}
					return
				}
				if err == nil || !strings.HasPrefix(err.Error(), *hit+": ") {
					t.Fatalf("step %d: the error does not begin with %s: %v", step, *hit, err)
				}
				partial := snapshot(t, home)

				if _, err := Run(t.Context(), s, set(), Options{Apply: true}); err != nil {
					t.Fatalf("step %d: the next install: %v", step, err)
				}
				complete := snapshot(t, home)
				for path, content := range partial {
					if content != before[path] && content != complete[path] && !strings.HasSuffix(path, "installed.json") {
						t.Errorf("step %d: %s is neither old nor new: %q", step, path, content)
					}
				}
				if changed, err := Run(t.Context(), s, set(), Options{}); changed || err != nil {
					t.Errorf("step %d: the next install was not complete: %v", step, err)
				}
				if _, err := Uninstall(context.Background(), s, home, Options{Apply: true}); err != nil {
					t.Fatalf("step %d: uninstall: %v", step, err)
				}
				after := snapshot(t, home)
				if !existed(partial, "installed.json") {
					forgetLockDirs(after, home)
				}
				if !maps.Equal(before, after) {
					t.Errorf("step %d: uninstall did not take back everything:\n%s", step, cmp.Diff(before, after))
				}
			}
		})
	}
}

// Whatever step of an uninstall fails, another run completes it.
func TestEveryFaultOfAnUninstall(t *testing.T) {
	for step := 0; ; step++ {
		s, _, set := world(t, "")
		home := set().Home
		before := snapshot(t, home)
		if _, err := Run(t.Context(), s, set(), Options{Apply: true}); err != nil {
			t.Fatal(err)
		}
		disk, hit := failing(step, errCrash)
		_, err := Uninstall(t.Context(), s, home, Options{Apply: true, Disk: disk})
		if *hit == "" {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		if err == nil || !strings.HasPrefix(err.Error(), *hit+": ") {
			t.Fatalf("step %d: the error does not begin with %s: %v", step, *hit, err)
		}
		if _, err := Uninstall(t.Context(), s, home, Options{Apply: true}); err != nil {
			t.Fatalf("step %d: the next uninstall: %v", step, err)
		}
		after := snapshot(t, home)
		forgetLockDirs(after, home)
		if !maps.Equal(before, after) {
			t.Errorf("step %d: not everything is taken back:\n%s", step, cmp.Diff(before, after))
		}
	}
}
