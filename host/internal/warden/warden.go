// Package warden mends from outside what a session's sandbox breaks.
//
// On Linux the sandbox gives the session a terminal session of its own, so
// that the kernel tells it neither of a new window size nor of Ctrl-Z, and
// nothing ends it when the sandbox runtime dies by a signal. The warden is a
// small process beside the runtime, which started as its parent. It
//
//   - sends the session SIGWINCH when the terminal's size changes,
//   - stops the session when the runtime is stopped and continues it with it,
//     and stops the runtime when the session stopped itself, so that the shell
//     takes over,
//   - ends the session when the runtime is gone and the session is not, and
//     removes the placeholder files that the runtime could not remove.
//
// It ends with the runtime, reads nothing of the session, writes nothing but
// those removals, and where it fails all is as without it.
//
// An agent that wants to stop itself by SIGTSTP alone, as Claude Code and
// OpenCode do at Ctrl-Z, goes on, because the kernel drops that signal in a
// group without a shell, and nothing outside can tell. It has given the
// terminal back by then, so a second Ctrl-Z stops the runtime and, through the
// warden, the session.
package warden

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/research-harness/harness/host/internal/system"
)

// ttyFD is the warden's descriptor of the terminal, where there is one.
const ttyFD = 3

// Start starts the warden of this process, which is about to become the
// sandbox runtime by an exec. It waits for nothing but the fork.
func Start(s *system.System) {
	now := time.Now()
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer syscall.Close(null)
	// None of the caller's streams: a warden that held one would keep the
	// other end of a pipe waiting.
	files := []uintptr{uintptr(null), uintptr(null), uintptr(null)}
	if tty, ok := terminal(s); ok {
		files = append(files, tty)
	}
	argv := []string{s.Exe, "warden", strconv.Itoa(os.Getpid()), strconv.FormatInt(now.UnixNano(), 10), strconv.Itoa(len(files))}
	// Not os.StartProcess, which starts a second process to see what the
	// kernel can do. A session of its own keeps the terminal's signals and
	// those for the runtime's process group away.
	_, _ = syscall.ForkExec(s.Exe, argv, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// terminal returns the first of the standard streams that is a terminal.
func terminal(s *system.System) (uintptr, bool) {
	for _, stream := range []any{s.Stdin, s.Stdout, s.Stderr} {
		if f, ok := stream.(*os.File); ok {
			if _, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
				return f.Fd(), true
			}
		}
	}
	return 0, false
}

// Main is the warden. args are those that [Start] gives it.
func Main(args []string) int {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	if len(args) != 3 {
		return 2
	}
	runtime, err1 := strconv.Atoi(args[0])
	started, err2 := strconv.ParseInt(args[1], 10, 64)
	files, err3 := strconv.Atoi(args[2])
	if err1 != nil || err2 != nil || err3 != nil {
		return 2
	}
	tty := -1
	if files > ttyFD {
		tty = ttyFD
	}
	watch(runtime, time.Unix(0, started), tty)
	return 0
}
