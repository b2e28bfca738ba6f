package scope

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
)

// run starts the command under sandbox-exec. On a terminal it stays in the
// caller's process group, for job control. Without one, or with a timeout, it
// has a group of its own, with which its descendants are ended; it cannot read
// the terminal then.
func (sc *Scope) run(s *system.System, program string, argv []string, timeout time.Duration) (Outcome, error) {
	sandbox, err := sandboxProgram(s, "sandbox-exec", "it is part of macOS: add /usr/bin to PATH")
	if err != nil {
		return Outcome{}, err
	}
	stdin, finishStdin, err := source(s.Stdin)
	if err != nil {
		return Outcome{}, err
	}
	defer finishStdin()
	stdout, finishStdout, err := file(s.Stdout)
	if err != nil {
		return Outcome{}, err
	}
	defer finishStdout()
	stderr, finishStderr, err := file(s.Stderr)
	if err != nil {
		return Outcome{}, err
	}
	defer finishStderr()

	foreground, terminal := terminalState()
	ownGroup := !terminal || timeout > 0
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	args := append([]string{"sandbox-exec", "-p", sc.SeatbeltProfile(), program}, argv[1:]...)
	pid, err := start(s, sc.Dir, sandbox, args, []*os.File{stdin, stdout, stderr}, &syscall.SysProcAttr{Setpgid: ownGroup})
	if err != nil {
		return Outcome{}, err
	}
	kill := func() { _ = syscall.Kill(pid, syscall.SIGKILL) }
	if ownGroup {
		kill = func() { _ = syscall.Kill(-pid, syscall.SIGKILL) }
		defer kill()
	}
	command := func(bool) int { return pid }
	c := child{pid: pid, command: command, signals: signals, foreground: foreground && !ownGroup, kill: kill}
	out, _ := c.wait(timeout)
	return out, nil
}

// InnerVerb and Inner belong to Linux, where bubblewrap needs them.
const InnerVerb = "exec-inner"

// Inner refuses.
func Inner(*system.System, []string) error {
	return problem.New("", InnerVerb, "is for the harness alone, on Linux")
}
