package scope

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
)

// InnerVerb is the hidden verb with which the harness, inside the sandbox,
// becomes the command: see [Inner].
const InnerVerb = "exec-inner"

// starter is a script that bubblewrap starts. It gives the command its
// standard error, which bubblewrap's own is not, says on a socket that the
// command starts, and becomes it.
const starter = `printf . >&4; exec "$@" 2>&5 4>&- 5>&-`

// fdFilter is where bubblewrap reads the system call filter.
const fdFilter = 3

// run starts bubblewrap, which starts the command. On a terminal all stay in
// the caller's process group, so that the terminal's signals, Ctrl-Z and window
// changes among them, reach the command directly. bubblewrap would die of some
// of them, and take the command along before its own handlers had their say;
// so it ignores them, and [Inner] undoes that for the command. Without a
// terminal there is nothing to share, and a group of their own keeps both from
// what is sent to the caller's.
func (sc *Scope) run(s *system.System, program string, argv []string, timeout time.Duration) (Outcome, error) {
	bwrap, err := sandboxProgram(s, "bwrap", "sudo apt-get install bubblewrap")
	if err != nil {
		return Outcome{}, err
	}
	rules, ok := filter(s.Arch)
	if !ok {
		return Outcome{}, problem.New("", "exec", "knows no system call filter for %s, and nothing runs unconfined", s.Arch)
	}
	// PR_SET_PDEATHSIG, which ends bubblewrap with this process, is bound to
	// the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	ready, readyInner, err := readySocket()
	if err != nil {
		return Outcome{}, err
	}
	defer ready.Close()
	defer readyInner.Close()
	filter, err := memFile("filter", rules)
	if err != nil {
		return Outcome{}, err
	}
	defer filter.Close()
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

	args := append([]string{"bwrap"}, sc.BwrapArgs()...)
	if os.Getuid() == 0 { // to whom bubblewrap leaves all
		args = append(args, "--cap-drop", "ALL")
		for _, c := range rootCaps {
			args = append(args, "--cap-add", c)
		}
	}
	args = append(args, "--seccomp", fmt.Sprint(fdFilter), "--", "/bin/sh", "-c", starter, "sh")
	foreground, terminal := terminalState()
	if terminal {
		args = append(args, s.Exe, InnerVerb, ignoredSignals(), program)
	} else {
		argv = append([]string{program}, argv[1:]...)
	}
	// A file, not a pipe: bubblewrap's last process, which is killed when the
	// first has ended, would keep a pipe open for some time.
	complaint, err := memFile("complaint", nil)
	if err != nil {
		return Outcome{}, err
	}
	defer complaint.Close()
	signals := make(chan os.Signal, 16)
	defer signal.Stop(signals)
	if terminal {
		signal.Ignore(forwarded...) // bubblewrap inherits it
	} else {
		signal.Notify(signals, forwarded...)
	}
	files := []*os.File{stdin, stdout, complaint, filter, readyInner, stderr}
	pid, err := start(s, "", bwrap, append(args, argv...), files, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: !terminal})
	if terminal {
		signal.Notify(signals, forwarded...)
	}
	if err != nil {
		return Outcome{}, err
	}
	readyInner.Close()

	command := func(wait bool) int { return commandPID(ready, wait) }
	c := child{pid: pid, command: command, signals: signals, foreground: foreground, kill: func() { _ = syscall.Kill(pid, syscall.SIGKILL) }}
	out, ran := c.wait(timeout)
	if !ran && !out.TimedOut {
		text, _ := io.ReadAll(io.NewSectionReader(complaint, 0, 4096))
		return Outcome{}, bwrapProblem(string(text), readSysctl)
	}
	return out, nil
}

// rootCaps are what a command of root's keeps: what builds in containers need,
// and what cannot undo a mount or go around it by way of a device, a module or
// a file handle.
var rootCaps = []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_NET_BIND_SERVICE"}

// Inner gives signals back the meaning that they had outside and becomes the
// command. Its arguments are the signals that stay ignored, the program and the
// command's argument vector. It returns only if that fails.
func Inner(s *system.System, args []string) error {
	if len(args) < 3 {
		return problem.New("", InnerVerb, "is for the harness alone")
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} {
		if !strings.Contains(args[0], sig.String()) {
			signal.Notify(make(chan os.Signal, 1), sig) // a caught signal is reset by exec
		}
	}
	program, argv := args[1], args[2:]
	err := syscall.Exec(program, argv, s.Env)
	if errors.Is(err, syscall.ENOEXEC) { // a script without a first line that names its shell
		err = syscall.Exec("/bin/sh", append([]string{"sh", program}, argv[1:]...), s.Env)
	}
	return problem.New("", program, "%w", err)
}

// ignoredSignals names the signals that the caller has ignored, as nohup does.
func ignoredSignals() string {
	var names []string
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			names = append(names, sig.String())
		}
	}
	return strings.Join(names, ",")
}

// memFile is a file without a name that holds data.
func memFile(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.WriteAt(data, 0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readySocket is a pair of connected sockets. The first tells of each message
// which process sent it, by its number out here.
func readySocket() (here, inner *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "ready"), os.NewFile(uintptr(fds[1]), "ready"), nil
}

// commandPID returns the command's process number, or -1 if it never starts.
// Before that is known it waits, or returns 0.
func commandPID(ready *os.File, wait bool) int {
	flags := unix.MSG_DONTWAIT
	if wait {
		flags = 0
	}
	buf, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	n, oobn, _, _, err := unix.Recvmsg(int(ready.Fd()), buf, oob, flags)
	for errors.Is(err, unix.EINTR) {
		n, oobn, _, _, err = unix.Recvmsg(int(ready.Fd()), buf, oob, flags)
	}
	if errors.Is(err, unix.EAGAIN) {
		return 0
	}
	if err != nil || n == 0 {
		return -1
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(msgs) == 0 {
		return -1
	}
	cred, err := unix.ParseUnixCredentials(&msgs[0])
	if err != nil {
		return -1
	}
	return int(cred.Pid)
}

// bwrapProblem explains why bubblewrap could not set the sandbox up.
func bwrapProblem(complaint string, sysctl func(name string) string) error {
	reason := strings.TrimPrefix(strings.TrimSpace(complaint), "bwrap: ")
	p := problem.New("", "bwrap", "cannot set up the sandbox, and nothing runs unconfined: %s", reason)
	switch {
	case strings.Contains(reason, "mount proc"):
		return p.WithHint("in a container, start it with --security-opt systempaths=unconfined")
	case sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
		p.Reason = "AppArmor forbids user namespaces to programs without a profile, and nothing runs unconfined: " + reason
		return p.WithHint("sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")
	case sysctl("kernel/unprivileged_userns_clone") == "0":
		p.Reason = "the kernel forbids user namespaces to users, and nothing runs unconfined: " + reason
		return p.WithHint("sudo sysctl -w kernel.unprivileged_userns_clone=1")
	case sysctl("user/max_user_namespaces") == "0":
		p.Reason = "the kernel allows no user namespaces, and nothing runs unconfined: " + reason
		return p.WithHint("sudo sysctl -w user.max_user_namespaces=15000")
	case strings.Contains(reason, "namespace"), strings.Contains(reason, "uid map"):
		return p.WithHint("allow unprivileged user namespaces; in a container, start it with --security-opt seccomp=unconfined")
	}
	return p
}

func readSysctl(name string) string {
	data, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(data))
}
