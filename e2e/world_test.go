// Package e2e runs the harness as its users do: real processes, the real
// sandbox runtime, bubblewrap and agents, in a home directory of its own. What
// a session did is looked up on the disk afterwards.
//
// The parts are found through variables: HARNESS_TEST_BIN is the build's
// directory, HARNESS_TEST_SRT the sandbox runtime's program, and
// HARNESS_TEST_NPM the directory where npm installed the agents. By default all
// are looked for in ../build, where the repository's scripts put them. With
// CI=true a missing part is a failure, otherwise a skip.
package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == probeArg {
		probe(os.Args[2:])
		return
	}
	os.Exit(m.Run())
}

// sessionLimit is how long a session may take on a busy machine.
const sessionLimit = 5 * time.Minute

// part returns the absolute path of a file that a variable, or else
// something below this directory, names.
func part(t *testing.T, variable, fallback string, elem ...string) string {
	t.Helper()
	base := os.Getenv(variable)
	if base == "" {
		base = fallback
	}
	path, err := filepath.Abs(filepath.Join(append([]string{base}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%v; set %s", err, variable)
		}
		t.Skipf("%v; set %s", err, variable)
	}
	return path
}

// mockapi builds the scripted model once.
var mockapi = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mockapi")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", dir, "./mockapi")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.Join(dir, "mockapi"), nil
})

// world is a user's machine.
type world struct {
	t    *testing.T
	root string // holds the rest; short, because a socket's name is limited
	home string // has spaces and letters beyond ASCII
	bin  string // first on PATH
	work string // a workspace, where sessions start
	env  map[string]string
}

// newWorld makes a home directory with the sandbox runtime in place, and
// stands in for the four agents: each runs its arguments as a command, without
// those that the launcher puts before them. Nothing is installed yet.
func newWorld(t *testing.T) *world {
	t.Helper()
	srt := part(t, "HARNESS_TEST_SRT", "../build/home/.local/bin/srt")
	// Not below /tmp, where a session may write: a home directory is not there.
	root, err := os.MkdirTemp("/var/tmp", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// What a session left running may still write while it is ended.
		if !wait(10*time.Second, func() bool { err = os.RemoveAll(root); return err == nil }) {
			t.Error(err)
		}
	})
	w := &world{t: t, root: root, home: filepath.Join(root, "José Ångström"), bin: filepath.Join(root, "bin")}
	w.work = filepath.Join(w.home, "Research", "naïve project")
	w.env = map[string]string{
		"HOME":   w.home,
		"PATH":   w.bin + ":" + os.Getenv("PATH"),
		"TMPDIR": filepath.Join(root, "tmp"),
		"LANG":   "C.UTF-8",
		"TERM":   "xterm-256color",
	}
	for _, dir := range []string{w.bin, w.work, w.env["TMPDIR"], w.in(".local", "bin")} {
		w.must(os.MkdirAll(dir, 0o755))
	}
	// A script and no link, for a session may write where the repository lies
	// below /tmp, and what it could change must not be what starts it.
	w.must(os.WriteFile(w.in(".local", "bin", "srt"), []byte("#!/bin/sh\nexec "+quote(srt)+" \"$@\"\n"), 0o755))
	w.stub("claude", `shift 2; exec "$@"`)
	w.stub("opencode", `if [ "$1" = --version ]; then echo 1.18.33; else exec "$@"; fi`)
	w.stub("omp", `shift 2; exec "$@"`)
	w.stub("agy", `exec "$@"`)
	return w
}

// in returns a path below home.
func (w *world) in(elem ...string) string {
	return filepath.Join(append([]string{w.home}, elem...)...)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// stub puts a shell script on PATH.
func (w *world) stub(name, script string) {
	w.t.Helper()
	w.must(os.WriteFile(filepath.Join(w.bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

// write makes a file and the directories above it.
func (w *world) write(path, content string) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, []byte(content), 0o644))
}

// read returns a file's content, or "absent".
func (w *world) read(path string) string {
	w.t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "absent"
	}
	w.must(err)
	return string(data)
}

// install makes the machine ready: harness install --apply.
func (w *world) install() {
	w.t.Helper()
	harness := part(w.t, "HARNESS_TEST_BIN", "../build", "bin", "harness")
	if r := w.run(harness, "install", "--apply"); r.code != 0 {
		w.t.Fatalf("install: status %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// agentbox runs a session in the workspace.
func (w *world) agentbox(args ...string) result {
	w.t.Helper()
	return w.run(w.in(".local", "bin", "agentbox"), args...)
}

// shell runs a shell script in a session of a stand-in.
func (w *world) shell(command, script string) result {
	w.t.Helper()
	return w.agentbox(command, "sh", "-c", script)
}

// result is how a process ended.
type result struct {
	code           int
	stdout, stderr string
}

func (w *world) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.t.Context(), name, args...)
	cmd.Dir = w.work
	for k, v := range w.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

func (w *world) run(name string, args ...string) result {
	w.t.Helper()
	cmd := w.command(name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	timeout := time.AfterFunc(sessionLimit, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer timeout.Stop()
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		w.t.Fatalf("%s: %v", name, err)
	} else if ok && !exit.Exited() {
		w.t.Fatalf("%s %q: %v\n%s%s", name, args, err, stdout.String(), stderr.String())
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// wait waits for what another process does, and reports whether it did.
func wait(limit time.Duration, ok func() bool) bool {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); <-tick.C {
		if ok() {
			return true
		}
	}
	return false
}

// eventually fails the test where something does not happen in time.
func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	if !wait(limit, ok) {
		t.Fatalf("not within %v: %s", limit, what)
	}
}

// lines splits a program's output.
func lines(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }
