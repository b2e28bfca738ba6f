package warden

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process holds on to one process: its descriptor means this process and no
// later one with the same number.
type process struct{ pid, fd int }

// hold returns the process pid, if its parent is parent.
func hold(pid, parent int) (process, bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return process{}, false
	}
	p := process{pid, fd}
	if st, ok := readStat(pid); !ok || st.parent != parent {
		p.release()
		return process{}, false
	}
	return p, true
}

func (p process) release() { _ = unix.Close(p.fd) }

func (p process) signal(sig unix.Signal) { _ = unix.PidfdSendSignal(p.fd, sig, nil, 0) }

// wait reports whether the process ends within d.
func (p process) wait(d time.Duration) bool { return wait(d, p) == 0 }

// wait returns the index of the first process that has ended within d, or -1.
// A negative d waits for ever.
func wait(d time.Duration, ps ...process) int {
	fds := make([]unix.PollFd, len(ps))
	for i, p := range ps {
		fds[i] = unix.PollFd{Fd: int32(p.fd), Events: unix.POLLIN}
	}
	deadline := time.Now().Add(d)
	for {
		timeout := -1
		if d >= 0 {
			timeout = int(max(0, time.Until(deadline)).Milliseconds())
		}
		_, err := unix.Poll(fds, timeout)
		if err == unix.EINTR {
			continue
		}
		for i, fd := range fds {
			if fd.Revents != 0 {
				return i
			}
		}
		return -1
	}
}

// stat is what the warden needs of /proc/PID/stat.
type stat struct {
	state                              byte // 'T' is stopped
	parent, group, session, foreground int  // foreground is the terminal's foreground group
}

func readStat(pid int) (stat, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, false
	}
	// The name in parentheses may hold anything, a parenthesis included.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 6 {
		return stat{}, false
	}
	n := func(i int) int { v, _ := strconv.Atoi(string(fields[i])); return v }
	return stat{state: fields[0][0], parent: n(1), group: n(2), session: n(3), foreground: n(5)}, true
}

// children returns the child processes of every thread of pid.
func children(pid int) []int {
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	var out []int
	for _, t := range threads {
		tid, _ := strconv.Atoi(t.Name())
		out = append(out, threadChildren(pid, tid)...)
	}
	return out
}

// threadChildren returns the child processes of one thread of pid.
func threadChildren(pid, tid int) []int {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, tid))
	var out []int
	for f := range strings.FieldsSeq(string(data)) {
		if n, err := strconv.Atoi(f); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// namespacePIDs returns the numbers of a process in the process namespaces
// that it is in, outermost first.
func namespacePIDs(pid int) []string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
			return strings.Fields(rest)
		}
	}
	return nil
}

// closePipes closes what a caller left open for its own children. A warden
// that held the end of a pipe would keep the other end waiting.
func closePipes() {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		if fd >= ttyFD && (strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, "socket:")) {
			_ = unix.Close(fd)
		}
	}
}
