package scope

import (
	"os"
	"os/exec"
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
	cmd := exec.Command(sandbox, append([]string{"-p", sc.SeatbeltProfile(), program}, argv[1:]...)...)
	cmd.Env, cmd.Dir = s.Env, sc.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Stdin, stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: ownGroup}

	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return Outcome{}, problem.New("", sandbox, "%w", err)
	}
	pid := cmd.Process.Pid
	kill := func() { cmd.Process.Kill() }
	if ownGroup {
		kill = func() { syscall.Kill(-pid, syscall.SIGKILL) }
		defer kill()
	}
	started := make(chan int, 1)
	started <- pid
	c := child{cmd: cmd, started: started, signals: signals, foreground: foreground && !ownGroup, kill: kill}
	out, _, err := c.wait(timeout)
	return out, err
}

// InnerVerb and Inner belong to Linux, where bubblewrap needs them.
const InnerVerb = "exec-inner"

// Inner refuses.
func Inner([]string) error {
	return problem.New("", InnerVerb, "is for the harness alone, on Linux")
}
