package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKilled ends the sandbox runtime in the middle of a session. Nothing of
// the session may run on, and no placeholder may stay in the way of another
// program.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	w.install()
	ready := filepath.Join(w.root, "tmp", "ready")
	before := tree(t, w.home)
	for _, tt := range []struct {
		command string
		signal  syscall.Signal
	}{
		{"claude", syscall.SIGKILL},
		{"opencode", syscall.SIGKILL},
		{"omp", syscall.SIGKILL},
		{"agy", syscall.SIGKILL},
		{"claude", syscall.SIGHUP},
		{"claude", syscall.SIGTERM},
	} {
		t.Run(tt.command+" "+tt.signal.String(), func(t *testing.T) {
			cmd := w.command(w.in(".local", "bin", "agentbox"), tt.command, "sh", "-c", `touch "$TMPDIR/ready"; sleep 1000 & sleep 1000`)
			w.must(cmd.Start())
			eventually(t, sessionLimit, "the session starts", func() bool { return os.Remove(ready) == nil })

			w.must(cmd.Process.Signal(tt.signal))
			_ = cmd.Wait()
			nothingRuns(t, w.root)
			// The warden takes them away after the processes. An empty directory
			// is in nobody's way.
			var left []string
			tidy := wait(30*time.Second, func() bool {
				left = slices.DeleteFunc(lines(tree(t, w.home)), func(line string) bool {
					return strings.Contains(before, line+"\n") || strings.Contains(line, " d")
				})
				return len(left) == 0
			})
			if !tidy {
				t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
			}
		})
	}
	for _, f := range frontends {
		if r := w.shell(f.command, fmt.Sprintf("mkdir -p ~/%s && echo kept > ~/%s", filepath.Dir(f.state), f.state)); r.code != 0 {
			t.Errorf("%s after all that: status %d: %s", f.command, r.code, r.stderr)
		}
		if got := w.read(w.in(f.state)); got != "kept\n" {
			t.Errorf("%s is %q", f.state, got)
		}
	}
}

// nothingRuns waits until no process has a directory in its environment.
func nothingRuns(t *testing.T, dir string) {
	t.Helper()
	var left []string
	if !wait(30*time.Second, func() bool { left = running(t, dir); return len(left) == 0 }) {
		t.Errorf("still running: %s", strings.Join(left, "\n"))
	}
}

// running lists the processes whose environment names a directory.
func running(t *testing.T, dir string) []string {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range procs {
		env, err := os.ReadFile(filepath.Join(p, "environ"))
		if err != nil || !bytes.Contains(env, []byte(dir)) {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		found = append(found, fmt.Sprintf("%s %q", filepath.Base(p), cmdline))
	}
	return found
}
