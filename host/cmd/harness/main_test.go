package main_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// buildDir is the output of "make build": HARNESS_TEST_BIN, else it is made.
var buildDir string

func TestMain(m *testing.M) {
	buildDir = os.Getenv("HARNESS_TEST_BIN")
	if buildDir == "" {
		root, err := filepath.Abs("../../..")
		if err != nil {
			panic(err)
		}
		make := exec.Command("make", "-s", "-C", root, "build")
		make.Stderr = os.Stderr
		if err := make.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "make build:", err)
			os.Exit(1)
		}
		buildDir = filepath.Join(root, "build")
	}
	os.Exit(m.Run())
}

// user is somebody with a home directory of their own.
type user struct {
	t    *testing.T
	home string
	env  []string
}

// newUser returns a user whose home has spaces and letters beyond ASCII.
func newUser(t *testing.T) *user {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "my höme")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	return &user{t: t, home: home, env: []string{"HOME=" + home, "PATH=/usr/bin:/bin", "LANG=C.UTF-8"}}
}

// settle gives the user the harness where an install leaves it, so that the
// next one has nothing to copy.
func (u *user) settle() {
	u.t.Helper()
	local := filepath.Join(u.home, ".local")
	if err := os.MkdirAll(local, 0o755); err != nil {
		u.t.Fatal(err)
	}
	parts := []string{filepath.Join(buildDir, "bin"), filepath.Join(buildDir, "libexec")}
	if r := u.run("cp", append([]string{"-rl"}, append(parts, local)...)...); r.status != 0 { // another file system
		if r := u.run("cp", append([]string{"-rf"}, append(parts, local)...)...); r.status != 0 {
			u.t.Fatal(r.stderr)
		}
	}
	if err := os.Remove(filepath.Join(local, "bin/agentbox")); err != nil {
		u.t.Fatal(err)
	}
}

// write writes a file below home and returns its path.
func (u *user) write(name, content string) string {
	u.t.Helper()
	path := filepath.Join(u.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		u.t.Fatal(err)
	}
	return path
}

// read returns a file below home.
func (u *user) read(name string) string {
	u.t.Helper()
	data, err := os.ReadFile(filepath.Join(u.home, name))
	if err != nil {
		u.t.Fatal(err)
	}
	return string(data)
}

// result is what a command did.
type result struct {
	status         int
	stdout, stderr string
}

// harness runs the harness as the user: the user's own, else the built one.
func (u *user) harness(args ...string) result {
	u.t.Helper()
	program := filepath.Join(u.home, ".local/bin/harness")
	if _, err := os.Stat(program); err != nil {
		program = filepath.Join(buildDir, "bin/harness")
	}
	return u.run(program, args...)
}

func (u *user) run(program string, args ...string) result {
	u.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir = u.env, u.home
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		u.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// must runs the harness and fails the test unless it ends with status.
func (u *user) must(status int, args ...string) result {
	u.t.Helper()
	r := u.harness(args...)
	if r.status != status {
		u.t.Fatalf("harness %s: status %d, want %d\n%s%s", strings.Join(args, " "), r.status, status, r.stdout, r.stderr)
	}
	return r
}

// tree is every path below home with its type, mode and content.
func (u *user) tree() map[string]string {
	u.t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(u.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		entry := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			entry += fmt.Sprintf(" %x", sha256.Sum256(data))
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			entry += " -> " + target
		}
		rel, err := filepath.Rel(u.home, path)
		tree[rel] = entry
		return err
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return tree
}
