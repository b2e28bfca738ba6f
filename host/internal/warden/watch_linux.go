package warden

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	bootTime  = 100 * time.Millisecond // before which no runtime has started anything
	lookEvery = 25 * time.Millisecond  // until the session is found
	tick      = 100 * time.Millisecond // between looks at the terminal
	stopTicks = 5                      // that a stopped session waits for its shell
	grace     = 2 * time.Second        // between SIGTERM and SIGKILL
)

// warden is the state of one watch.
type warden struct {
	self    int
	depth   int     // of process namespaces that this process is in
	runtime process // the sandbox runtime
	started time.Time
	tty     int // the terminal, or -1
	size    unix.Winsize

	helpers []process // what the runtime started outside the sandbox
	// session is the first process in the sandbox. It leads the session's
	// process group, and all in the sandbox end with it.
	session      *process
	program      int // the agent itself, a process number outside, or 0
	placeholders []placeholder

	held    bool // the session is stopped because the runtime is
	stopped int  // ticks since the session stopped itself
}

// watch runs until the runtime and its session are gone.
func watch(runtime int, started time.Time, tty int) {
	closePipes()
	w := &warden{self: os.Getpid(), depth: len(namespacePIDs(os.Getpid())), started: started, tty: tty}
	var ok bool
	// A runtime that is gone already has another parent take its place.
	if w.runtime, ok = holdParent(runtime); !ok {
		return
	}
	w.size, _ = w.windowSize()
	if !w.runtime.wait(bootTime) && w.find() {
		w.attend()
	}
	w.end()
}

func holdParent(pid int) (process, bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	return process{pid, fd}, err == nil && os.Getppid() == pid
}

// find waits for the session to begin. It reports false when the runtime ends
// first.
func (w *warden) find() bool {
	for begin := time.Now(); ; {
		if w.look(); w.session != nil {
			return true
		}
		every := lookEvery
		if time.Since(begin) > time.Minute {
			every = time.Second // something else than a start goes on
		}
		if w.runtime.wait(every) {
			return false
		}
	}
}

// look finds the session and the runtime's helpers among its descendants, as
// far as they have started.
func (w *warden) look() {
	known := map[int]bool{w.self: true}
	queue := []int{w.runtime.pid}
	for _, h := range w.helpers {
		known[h.pid] = true
		if !h.wait(0) {
			queue = append(queue, h.pid)
		}
	}
	if w.runtime.wait(0) {
		queue = queue[1:]
	}
	for i := 0; i < len(queue); i++ {
		// The runtime and its helpers start others from their main thread.
		for _, pid := range threadChildren(queue[i], queue[i]) {
			if known[pid] {
				continue
			}
			p, ok := hold(pid, queue[i])
			if !ok {
				continue
			}
			known[pid] = true
			if len(namespacePIDs(pid)) <= w.depth {
				w.helpers = append(w.helpers, p)
				queue = append(queue, pid)
				continue
			}
			// bubblewrap leads a session of its own from the moment at which
			// all is mounted.
			if st, ok := readStat(pid); !ok || st.session != pid {
				p.release()
				continue
			}
			w.session = &p
			w.placeholders = placeholders(pid, w.started)
		}
	}
}

// attend serves the terminal until the runtime or the session ends.
func (w *warden) attend() {
	for {
		every := tick
		if w.tty < 0 {
			every = -1
		}
		switch wait(every, w.runtime, *w.session) {
		case 0:
			return
		case 1:
			w.runtime.wait(-1)
			return
		}
		if size, ok := w.windowSize(); ok && size != w.size {
			w.size = size
			w.signal(unix.SIGWINCH)
		}
		w.followStops()
	}
}

// windowSize returns the terminal's size. A terminal that is gone is given up.
func (w *warden) windowSize() (unix.Winsize, bool) {
	if w.tty < 0 {
		return unix.Winsize{}, false
	}
	size, err := unix.IoctlGetWinsize(w.tty, unix.TIOCGWINSZ)
	if err != nil {
		_ = unix.Close(w.tty)
		w.tty = -1
		return unix.Winsize{}, false
	}
	return *size, true
}

// signal sends sig to the session's process group.
func (w *warden) signal(sig unix.Signal) {
	if !w.session.wait(0) {
		_ = unix.Kill(-w.session.pid, sig)
	}
}

// followStops keeps the runtime, which the shell's job control knows, and the
// session, which it does not, stopped or running together.
func (w *warden) followStops() {
	rt, ok := readStat(w.runtime.pid)
	if !ok {
		return
	}
	switch {
	case rt.state == 'T':
		if !w.held {
			w.signal(unix.SIGSTOP) // SIGTSTP has no effect in a group without a shell
		}
		w.held, w.stopped = true, 0
	case w.held:
		w.held = false
		w.resume()
	case !w.programStopped():
		w.stopped = 0
	case rt.group != rt.foreground:
		// In the background nobody waits for it.
	case w.stopped == 0:
		w.stopped = 1
		_ = unix.Kill(-rt.group, unix.SIGTSTP) // what the terminal would have sent
	default:
		// Without a shell to continue it, it would stay stopped for ever.
		if w.stopped++; w.stopped > stopTicks {
			w.stopped = 0
			w.resume()
		}
	}
}

// resume continues the session and has a full-screen program draw itself.
func (w *warden) resume() {
	w.signal(unix.SIGCONT)
	w.signal(unix.SIGWINCH)
}

// programStopped reports whether the agent has stopped itself.
func (w *warden) programStopped() bool {
	program := w.program
	if program == 0 {
		inside := w.workload()
		if len(inside) == 0 {
			return false
		}
		program = inside[0].pid
		// Early in a start the innermost namespace is still to come.
		if inside[0].depth > len(namespacePIDs(w.session.pid)) {
			w.program = program
		}
	}
	st, ok := readStat(program)
	return ok && st.state == 'T'
}

// member is a process in the sandbox: its number and its parent's outside, its
// number inside, and how many process namespaces it is in.
type member struct{ pid, parent, inner, depth int }

// workload returns the processes that the user asked for, the agent first:
// those in the innermost process namespace, without its first process. Around
// them are the sandbox's own.
func (w *warden) workload() []member {
	var out []member
	depth := 0
	queue := []int{w.session.pid}
	for i := 0; i < len(queue); i++ {
		for _, pid := range children(queue[i]) {
			queue = append(queue, pid)
			ns := namespacePIDs(pid)
			if len(ns) < depth || len(ns) == 0 {
				continue
			}
			if len(ns) > depth {
				depth, out = len(ns), nil
			}
			if inner, _ := strconv.Atoi(ns[len(ns)-1]); inner > 1 {
				out = append(out, member{pid, queue[i], inner, depth})
			}
		}
	}
	slices.SortFunc(out, func(a, b member) int { return cmp.Compare(a.inner, b.inner) })
	return out
}

// end ends what the runtime left behind.
func (w *warden) end() {
	// A sandbox may still be being built.
	for tries := 0; w.session == nil && tries < 20; tries++ {
		if w.look(); !slices.ContainsFunc(w.helpers, process.running) {
			break
		}
		time.Sleep(lookEvery)
	}
	if w.session != nil && w.session.running() {
		// Only the agent's own processes: the sandbox ends at once with any of
		// those around them.
		for _, m := range w.workload() {
			if p, ok := hold(m.pid, m.parent); ok {
				p.signal(unix.SIGTERM)
				p.signal(unix.SIGCONT)
				p.release()
			}
		}
		w.signal(unix.SIGCONT)
		if !w.session.wait(grace) {
			w.session.signal(unix.SIGKILL)
			w.session.wait(grace)
		}
	}
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		for _, h := range w.helpers {
			h.signal(sig)
			h.signal(unix.SIGCONT)
		}
		for _, h := range w.helpers {
			h.wait(grace / 10)
		}
	}
	remove(w.placeholders)
}

func (p process) running() bool { return !p.wait(0) }
