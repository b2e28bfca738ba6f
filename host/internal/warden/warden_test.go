//go:build linux

package warden

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/research-harness/harness/host/internal/system"
)

// TestMain lets the test binary be the launcher and the warden too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "warden":
			os.Exit(Main(os.Args[2:]))
		case "session": // session SRT ARG…
			Start(system.Host())
			err := syscall.Exec(os.Args[2], os.Args[2:], os.Environ())
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}

// world is a home with one workspace and settings for the real runtime.
type world struct {
	t                              *testing.T
	srt, home, workspace, settings string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	srt := os.Getenv("HARNESS_TEST_SRT")
	if srt == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("HARNESS_TEST_SRT does not name an srt")
		}
		t.Skip("HARNESS_TEST_SRT does not name an srt")
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t, srt, home, filepath.Join(home, "work space"), filepath.Join(home, "settings.json")}
	for _, dir := range []string{w.workspace, home + "/.cache", home + "/tmp"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.write(w.settings, fmt.Sprintf(`{"network": {"allowedDomains": ["example.com"], "deniedDomains": []},
		"filesystem": {"denyRead": [%[1]q], "allowRead": [],
		"allowWrite": [%[2]q, "%[1]s/.cache", "%[1]s/tmp"], "denyWrite": ["%[1]s/.cache/other"]}}`, home, w.workspace))
	return w
}

func (w *world) write(file, text string) {
	w.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// command is a session that runs a shell script.
func (w *world) command(script string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(exe, "session", w.srt, "--settings", w.settings, "--", "sh", "-c", script)
	cmd.Dir = w.workspace
	cmd.Env = append(os.Environ(), "HOME="+w.home, "CLAUDE_CODE_TMPDIR="+w.home+"/tmp")
	cmd.Stderr = os.Stderr
	return cmd
}

// start starts a session and waits until its script has made the file up.
func (w *world) start(script string) *exec.Cmd {
	w.t.Helper()
	cmd := w.command("touch up; " + script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	w.await("the session is up", func() bool { return os.Remove(w.workspace+"/up") == nil })
	for range 2 { // the second time it has looked at the placeholders too
		w.await("its warden knows it", func() bool { return watched(cmd.Process.Pid) })
	}
	return cmd
}

// watched reports whether the warden of pid holds on to a session.
func watched(pid int) bool {
	for _, c := range children(pid) {
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c))
		if !bytes.Contains(args, []byte("\x00warden\x00")) {
			continue
		}
		infos, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", c))
		for _, f := range infos {
			info, _ := os.ReadFile(f)
			if _, held, ok := strings.Cut(string(info), "\nPid:\t"); ok {
				held, _, _ = strings.Cut(held, "\n")
				n, _ := strconv.Atoi(held)
				if st, ok := readStat(n); ok && st.session == n && n != pid {
					return true
				}
			}
		}
	}
	return false
}

func (w *world) await(what string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// tree returns pid and its descendants.
func tree(pid int) []int {
	out := []int{pid}
	for i := 0; i < len(out); i++ {
		out = append(out, children(out[i])...)
	}
	return out
}

// running returns those of pids that live.
func running(pids []int) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
		st, ok := readStat(pid)
		return !ok || st.state == 'Z' || st.state == 'X'
	})
}

// files lists what is in the workspace and in the cache.
func (w *world) files() []string {
	var out []string
	for _, dir := range []string{w.workspace, w.home + "/.cache"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range entries {
			// srt makes this directory for what it denies in it. A directory
			// is never removed: another's may be in it in the next moment.
			if e.Name() != ".claude" {
				out = append(out, e.Name())
			}
		}
	}
	return out
}

func TestNothingOutlivesTheRuntime(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTERM} {
		for _, target := range []string{"runtime", "process group"} {
			t.Run(fmt.Sprintf("%v to the %s", sig, target), func(t *testing.T) {
				w := newWorld(t)
				cmd := w.start("sleep 1000 & sleep 1000 & wait")
				pids := tree(cmd.Process.Pid)
				if len(pids) < 10 || !slices.Contains(w.files(), "other") {
					t.Fatalf("no full session: %v, %v", pids, w.files())
				}
				pid := cmd.Process.Pid
				if target == "process group" {
					pid = -pid
				}
				if err := syscall.Kill(pid, sig); err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				_ = cmd.Wait()
				w.await("all have ended", func() bool { return len(running(pids)) == 0 })
				if d := time.Since(begin); d > 3*time.Second {
					t.Errorf("took %v", d)
				}
				if left := w.files(); left != nil {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	}
}

func TestTheAgentIsAskedToEndBeforeItIsKilled(t *testing.T) {
	w := newWorld(t)
	cmd := w.start("trap 'sleep 0.5; echo saved >state; exit' TERM; sleep 1000 & wait")
	pids := tree(cmd.Process.Pid)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	w.await("all have ended", func() bool { return len(running(pids)) == 0 })
	if got, _ := os.ReadFile(w.workspace + "/state"); string(got) != "saved\n" {
		t.Errorf("state is %q", got)
	}
}

func TestAnAgentThatIgnoresSIGTERMIsKilled(t *testing.T) {
	w := newWorld(t)
	cmd := w.start("trap '' TERM HUP; while :; do sleep 1; done")
	pids := tree(cmd.Process.Pid)
	_ = cmd.Process.Signal(syscall.SIGHUP)
	_ = cmd.Wait()
	w.await("all have ended", func() bool { return len(running(pids)) == 0 })
	if left := w.files(); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestARuntimeKilledDuringItsStart(t *testing.T) {
	for _, after := range []time.Duration{0, 100, 200, 300, 400, 500, 600, 700, 800} {
		t.Run(fmt.Sprintf("after %d ms", after), func(t *testing.T) {
			w := newWorld(t)
			cmd := w.command("sleep 1000")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after * time.Millisecond)
			pids := tree(cmd.Process.Pid)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			w.await("all have ended", func() bool { return len(running(pids)) == 0 && !w.mounted() })
			if left := w.files(); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// mounted reports whether a sandbox of this world lives.
func (w *world) mounted() bool { return MountPoints()[w.home] }

func TestOnlyPlaceholdersOfThisStartAreRemoved(t *testing.T) {
	w := newWorld(t)
	own := w.workspace + "/.bashrc"
	w.write(own, "")
	if err := os.Chmod(own, 0o444); err != nil {
		t.Fatal(err)
	}
	cmd := w.start("sleep 1000")
	// What replaced a placeholder, or is one no longer, is somebody's.
	for _, name := range []string{".zshrc", ".profile"} {
		if err := os.Remove(filepath.Join(w.workspace, name)); err != nil {
			t.Fatal(err)
		}
		w.write(filepath.Join(w.workspace, name), "")
	}
	if err := os.Chmod(w.workspace+"/.zshrc", 0o444); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".gitconfig", ".mcp.json"} {
		if err := os.Chmod(filepath.Join(w.workspace, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.write(w.workspace+"/.mcp.json", "{}")
	w.write(w.workspace+"/paper", "")
	pids := tree(cmd.Process.Pid)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	w.await("all have ended", func() bool { return len(running(pids)) == 0 })
	want := []string{".bashrc", ".gitconfig", ".mcp.json", ".profile", ".zshrc", "paper"}
	if left := w.files(); !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}

func TestPlaceholdersThatAnotherSandboxUsesStay(t *testing.T) {
	w := newWorld(t)
	first := w.start("sleep 1000")
	pids := tree(first.Process.Pid)
	second := w.start("until test -e go; do sleep 0.1; done; echo x 2>/dev/null >.bashrc && touch written; touch tried; sleep 1000")
	_ = first.Process.Kill()
	_ = first.Wait()
	w.await("the first has ended", func() bool { return len(running(pids)) == 0 })
	w.write(w.workspace+"/go", "")
	w.await("the second tried", func() bool { return slices.Contains(w.files(), "tried") })
	if left := w.files(); slices.Contains(left, "written") || !slices.Contains(left, ".bashrc") {
		t.Errorf("the second sandbox lost its protection: %v", left)
	}
	_ = second
}

func TestSandboxesThatDieTogetherLeaveNothing(t *testing.T) {
	w := newWorld(t)
	first, second := w.start("sleep 1000"), w.start("trap '' TERM; sleep 1000")
	pids := append(tree(first.Process.Pid), tree(second.Process.Pid)...)
	for _, cmd := range []*exec.Cmd{first, second} {
		_ = cmd.Process.Signal(syscall.SIGHUP)
		_ = cmd.Wait()
	}
	w.await("all have ended", func() bool { return len(running(pids)) == 0 })
	if left := w.files(); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestStatusAndStreamsAreTheRuntimes(t *testing.T) {
	w := newWorld(t)
	r, p, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := w.command("echo out; exit 7")
	cmd.Stdout = p
	cmd.ExtraFiles = []*os.File{p} // as a build tool does for its children
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Close()
	done := make(chan string)
	go func() { out, _ := io.ReadAll(r); done <- string(out) }()
	err = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("ended with %v", err)
	}
	select {
	case out := <-done:
		if out != "out\n" {
			t.Errorf("printed %q", out)
		}
	case <-time.After(3 * time.Second):
		t.Error("something holds the pipe open")
	}
}

func TestTheWardenEndsWithARuntimeThatFails(t *testing.T) {
	w := newWorld(t)
	cmd := w.command("true")
	cmd.Args[2] = "/bin/false"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	pid := []byte("\x00warden\x00" + strconv.Itoa(cmd.Process.Pid) + "\x00")
	w.await("the warden has ended", func() bool {
		entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		return !slices.ContainsFunc(entries, func(f string) bool {
			args, _ := os.ReadFile(f)
			return bytes.Contains(args, pid)
		})
	})
}

func TestAWardenWithoutItsParentDoesNothing(t *testing.T) {
	for _, args := range [][]string{nil, {"1"}, {"x", "0", "3"}, {"1", "0", "3"}, {strconv.Itoa(os.Getpid()), "0", "3"}} {
		Main(args) // returns
	}
}

// terminal is a person at an interactive shell.
type person struct {
	w   *world
	pty *os.File
	out chan []byte
	all []byte // what was printed so far
	pos int    // what the tests looked at
}

func (w *world) sitDown() *person {
	w.t.Helper()
	sh := exec.Command("bash", "--norc", "--noprofile", "-i")
	sh.Dir = w.workspace
	sh.Env = slices.Concat(w.command("").Env, []string{"PS1=READY ", "TERM=dumb", "HISTFILE="})
	f, err := pty.StartWithSize(sh, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		w.t.Fatal(err)
	}
	p := &person{w: w, pty: f, out: make(chan []byte, 1024)}
	go func() {
		defer close(p.out)
		for {
			buf := make([]byte, 4096)
			n, err := f.Read(buf)
			if err != nil {
				return
			}
			p.out <- buf[:n]
		}
	}()
	w.t.Cleanup(func() { f.Close(); _ = sh.Process.Kill(); _ = sh.Wait() })
	p.sees("READY ")
	return p
}

func (p *person) types(text string) {
	p.w.t.Helper()
	if _, err := p.pty.WriteString(text); err != nil {
		p.w.t.Fatal(err)
	}
}

// sees waits for text after what it saw before.
func (p *person) sees(text string) {
	p.w.t.Helper()
	timeout := time.After(time.Minute)
	for {
		if i := bytes.Index(p.all[p.pos:], []byte(text)); i >= 0 {
			p.pos += i + len(text)
			return
		}
		select {
		case b := <-p.out:
			p.all = append(p.all, b...)
		case <-timeout:
			p.w.t.Fatalf("waited in vain for %q; the terminal shows %q", text, p.all)
		}
	}
}

// line is the command line of a session, for a shell.
func (w *world) line(script string) string {
	var out []string
	for _, a := range w.command(script).Args {
		out = append(out, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
	}
	return strings.Join(out, " ") + "\n"
}

// counts is a script that prints a line again and again, and what happens to
// it. Single quotes keep the shell's echo from looking like the output.
const counts = `trap 'echo S""IZE $(stty size <&2)' WINCH; n=0; while :; do n=$((n+1)); echo T""ICK $n; sleep 0.1; done`

func TestTheSessionLearnsOfANewWindowSize(t *testing.T) {
	w := newWorld(t)
	p := w.sitDown()
	p.types(w.line(counts))
	p.sees("TICK 3\r")
	for range 3 {
		for _, size := range []pty.Winsize{{Rows: 40, Cols: 132}, {Rows: 10, Cols: 20}} {
			if err := pty.Setsize(p.pty, &size); err != nil {
				t.Fatal(err)
			}
			p.sees(fmt.Sprintf("SIZE %d %d\r", size.Rows, size.Cols))
		}
	}
	p.types("\x03")
	p.sees("READY ")
}

func TestCtrlZStopsTheSessionAndFgContinuesIt(t *testing.T) {
	w := newWorld(t)
	p := w.sitDown()
	p.types(w.line(counts))
	for range 2 {
		p.sees("TICK ")
		p.types("\x1a")
		p.sees("Stopped")
		p.sees("READY ")
		before := len(p.all)
		p.types("sleep 1; echo SIL''ENCE\n")
		p.sees("SILENCE")
		// One may be printed before the warden looks.
		if n := bytes.Count(p.all[before:], []byte("TICK")); n > 3 {
			t.Errorf("the session went on: %q", p.all[before:])
		}
		p.types("fg\n")
		p.sees("TICK ")
	}
	p.types("\x03")
	p.sees("READY ")
	p.types("jobs; echo NO''JOBS\n")
	p.sees("NOJOBS")
}

func TestASessionThatStopsItselfGivesTheTerminalBack(t *testing.T) {
	for name, self := range map[string]string{"the agent alone": "kill -STOP $$", "its whole group": "kill -STOP 0"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.sitDown()
			p.types(w.line(self + `; echo BA""CK; ` + counts))
			p.sees("Stopped")
			p.sees("READY ")
			p.types("fg\n")
			p.sees("BACK")
			p.sees("TICK 5\r")
			p.types("\x03")
			p.sees("READY ")
		})
	}
}

func TestAStoppedSessionWithoutAShellGoesOn(t *testing.T) {
	w := newWorld(t)
	f, err := pty.Start(w.command("kill -STOP 0; echo BACK"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out, _ := io.ReadAll(f)
	if !bytes.Contains(out, []byte("BACK")) {
		t.Errorf("printed %q", out)
	}
}

func TestAClosedTerminalEndsAll(t *testing.T) {
	w := newWorld(t)
	p := w.sitDown()
	p.types(w.line(counts))
	p.sees("TICK 5\r")
	w.await("it is mounted", w.mounted)
	p.pty.Close()
	w.await("the sandbox is gone", func() bool { return !w.mounted() })
	w.await("nothing is left", func() bool { return w.files() == nil })
}

func TestAScriptKeepsTheTerminal(t *testing.T) {
	w := newWorld(t)
	p := w.sitDown()
	p.types("stty -g >before; sh -c '" + strings.ReplaceAll(strings.TrimSpace(w.line("echo IN; exit 3")), "'", `'\''`) + "; echo status $?; read x; echo got $x'\n")
	p.sees("status 3")
	p.types("hello\n")
	p.sees("got hello")
	p.types("stty -g | cmp - before && echo SA''ME\n")
	p.sees("SAME")
}
