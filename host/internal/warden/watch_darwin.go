package warden

import (
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// grace is the time between SIGTERM and SIGKILL.
const grace = 2 * time.Second

// process is one process: no later one with its number started when it did.
type process struct {
	pid   int32
	start unix.Timeval
}

// watch ends the session when the runtime is gone. The rest of a warden's work
// has no object here: the sandbox is part of the terminal's session, and
// leaves no placeholders.
func watch(runtime int, _ time.Time, _ int) {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	interest := []unix.Kevent_t{{
		Ident: uint64(runtime), Filter: unix.EVFILT_PROC,
		Flags: unix.EV_ADD | unix.EV_CLEAR, Fflags: unix.NOTE_FORK | unix.NOTE_EXIT,
	}}
	if _, err := unix.Kevent(queue, interest, nil, nil); err != nil || os.Getppid() != runtime {
		return
	}
	var kids []process
	for {
		// What the runtime has started is known by its parent only as long as
		// that lives.
		if now := children(table(), int32(runtime)); len(now) > 0 {
			kids = now
		}
		events := make([]unix.Kevent_t, 1)
		n, err := unix.Kevent(queue, nil, events, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n > 0 && events[0].Fflags&unix.NOTE_EXIT != 0 {
			break
		}
	}
	end(kids)
}

// end ends roots and what they have started.
func end(roots []process) {
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		all := table()
		targets := alive(all, roots)
		for i := 0; i < len(targets); i++ {
			targets = append(targets, children(all, targets[i].pid)...)
		}
		for _, p := range targets {
			_ = unix.Kill(int(p.pid), sig)
		}
		for deadline := time.Now().Add(grace); len(alive(table(), roots)) > 0 && time.Now().Before(deadline); {
			time.Sleep(grace / 20)
		}
	}
}

// alive returns those of ps that are in the table of all processes.
func alive(all []unix.KinfoProc, ps []process) []process {
	return slices.DeleteFunc(slices.Clone(ps), func(p process) bool {
		return !slices.ContainsFunc(all, func(k unix.KinfoProc) bool {
			return p == process{k.Proc.P_pid, k.Proc.P_starttime}
		})
	})
}

// table returns this user's processes.
func table() []unix.KinfoProc {
	all, _ := unix.SysctlKinfoProcSlice("kern.proc.uid", os.Geteuid())
	return all
}

// children returns the child processes of pid without this one.
func children(all []unix.KinfoProc, pid int32) []process {
	var out []process
	for _, k := range all {
		if k.Eproc.Ppid == pid && int(k.Proc.P_pid) != os.Getpid() {
			out = append(out, process{k.Proc.P_pid, k.Proc.P_starttime})
		}
	}
	return out
}

// MountPoints is empty: srt mounts nothing on macOS.
func MountPoints() map[string]bool { return nil }
