package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/system"
)

// process is a plugin's process, as go-plugin wants it. Unlike go-plugin's
// own it dies with the host, takes its children with it, and cannot be kept
// alive by a pipe that a grandchild holds.
type process struct {
	file    string
	image   *image
	system  *system.System
	home    string
	confine string   // the bwrap program, or empty
	scratch string   // one more writable directory, or empty
	env     []string // what go-plugin gives the plugin
	dir     string   // the directory of its socket

	stdout, stderr *capture

	mu     sync.Mutex
	pid    int  // 0 before the start
	killed bool // by us

	exited chan struct{} // closed once waited for
	state  *os.ProcessState
}

// Start starts the process. It has no environment but what it needs to speak,
// no standard input, and the root as its working directory.
func (p *process) Start(context.Context) error {
	outR, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer outW.Close()
	errR, errW, err := os.Pipe()
	if err != nil {
		outR.Close()
		return err
	}
	defer errW.Close()
	p.stdout = &capture{file: outR, ended: make(chan struct{})}
	p.stderr = &capture{file: errR, ended: make(chan struct{}), limit: maxLogged}

	cmd := p.command()
	cmd.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "TMPDIR=" + p.dir}, p.env...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = outW, errW
	cmd.ExtraFiles = p.image.files()
	// Its own session, in which it has no terminal: on the user's it could type.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	dieWithHost(cmd.SysProcAttr)

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		return &startError{context.Canceled}
	}
	started := make(chan error)
	go func() {
		// The kernel ends the process with the thread that started it, so
		// the thread lives as long as the process.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.wait(cmd)
		}
	}()
	if err := <-started; err != nil {
		outR.Close()
		errR.Close()
		close(p.exited)
		return &startError{err}
	}
	p.pid = cmd.Process.Pid
	return nil
}

// command is what is started: the plugin, or bubblewrap around it.
func (p *process) command() *exec.Cmd {
	if p.confine == "" {
		return &exec.Cmd{Path: p.image.path, Args: []string{p.file}}
	}
	return &exec.Cmd{Path: p.confine, Args: append([]string{"bwrap"}, confinement(p.home, []string{p.dir, p.scratch}, p.image.path)...)}
}

// wait reaps the process and ends what is left of its group.
func (p *process) wait(cmd *exec.Cmd) {
	_ = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	p.state = cmd.ProcessState
	close(p.exited)
	// What the process wrote is still read; what a child that kept the pipe
	// may write is not waited for.
	p.stdout.expire(200 * time.Millisecond)
	p.stderr.expire(200 * time.Millisecond)
}

// Kill is end, for go-plugin.
func (p *process) Kill(context.Context) error {
	p.end()
	return nil
}

// end ends the process and its group, and the reading of its output.
func (p *process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	if p.pid == 0 {
		return
	}
	select {
	case <-p.exited:
	default:
		_ = syscall.Kill(-p.pid, syscall.SIGKILL) // it may have ended by itself
		<-p.exited
	}
	p.stdout.expire(0)
	p.stderr.expire(0)
}

// Wait waits for the end of the process. An end that the host brought about
// is no error.
func (p *process) Wait(context.Context) error {
	<-p.exited
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed || p.state.Success() {
		return nil
	}
	return errors.New(p.state.String())
}

// waitExit reports whether the process ends within d.
func (p *process) waitExit(d time.Duration) bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(d):
		return false
	}
}

// ending says how the process ended and what it said.
func (p *process) ending(when string) string {
	if !p.waitExit(time.Second) || p.state == nil {
		return "closed its standard output " + when
	}
	how := fmt.Sprintf("exited with status %d", p.state.ExitCode())
	if ws, ok := p.state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		how = "was ended by " + ws.Signal().String()
	}
	<-p.stderr.ended
	said := message(p.stderr.text())
	if rest, ok := strings.CutPrefix(said, "bwrap: execvp "+p.image.path+": "); ok {
		for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.ENOEXEC, syscall.EACCES} {
			if strings.EqualFold(rest, errno.Error()) {
				return (&startError{errno}).reason(p.system.OS, p.system.Arch)
			}
		}
	}
	if said == "" {
		return how + " " + when
	}
	return how + " " + when + ": " + shorten(said, 200)
}

// firstLine is the first line on standard output, the handshake.
func (p *process) firstLine() string {
	if p.stdout == nil {
		return ""
	}
	line, _, _ := strings.Cut(p.stdout.text(), "\n")
	return strings.TrimSpace(line)
}

// PluginToHost checks the address that the plugin gave: only a socket in its
// own directory is connected to.
func (p *process) PluginToHost(network, addr string) (string, string, error) {
	if network != "unix" {
		return "", "", fmt.Errorf("listens on %s, not on a unix socket", network)
	}
	if !paths.Below(paths.Real(addr), p.dir) {
		return "", "", fmt.Errorf("its socket is not in PLUGIN_UNIX_SOCKET_DIR")
	}
	return network, addr, nil
}

// HostToPlugin is the identity: both see one file system.
func (p *process) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

// Stdout is where the handshake comes from.
func (p *process) Stdout() io.ReadCloser { return p.stdout }

// Stderr is what goes to the log.
func (p *process) Stderr() io.ReadCloser { return p.stderr }

// Name is the name in the log.
func (p *process) Name() string { return filepath.Base(p.file) }

// ID is the process number, empty before the start.
func (p *process) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == 0 {
		return ""
	}
	return fmt.Sprint(p.pid)
}

// Diagnose adds nothing: explain says what is wrong.
func (p *process) Diagnose(context.Context) string { return "" }

// capture reads a pipe, keeps the first bytes of it for a message, and gives
// no more than limit to the reader, while it goes on emptying the pipe.
type capture struct {
	file  *os.File
	limit int           // 0 for none
	ended chan struct{} // closed once all is read
	once  sync.Once
	late  int // bytes that were read after the time to read

	mu   sync.Mutex
	kept []byte
	seen int
}

const (
	maxPipe   = 64 << 10 // bytes that a pipe holds
	maxKept   = 16 << 10 // bytes of a stream that are kept for a message
	maxLogged = 64 << 10 // bytes of standard error that reach the log
)

func (c *capture) Read(b []byte) (int, error) {
	for {
		n, err := c.file.Read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			n, err = c.rest(b)
		}
		if errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
		c.mu.Lock()
		c.kept = append(c.kept, b[:min(n, maxKept-len(c.kept))]...)
		c.seen += n
		over := c.limit > 0 && c.seen > c.limit
		c.mu.Unlock()
		if err != nil {
			c.once.Do(func() { close(c.ended) })
		}
		if err != nil || !over {
			return n, err
		}
	}
}

// rest reads, once the time to read is over, what the process had written
// before: on a busy machine nobody may have come to read it. It does not wait.
func (c *capture) rest(b []byte) (n int, err error) {
	raw, err := c.file.SyscallConn()
	if err != nil || c.late >= maxPipe {
		return 0, io.EOF
	}
	_ = c.file.SetReadDeadline(time.Time{}) // or the next line fails
	err = raw.Read(func(fd uintptr) bool {
		n, _ = syscall.Read(int(fd), b)
		return true
	})
	c.expire(0)
	if err != nil || n <= 0 {
		return 0, io.EOF
	}
	c.late += n
	return n, nil
}

func (c *capture) Close() error { return c.file.Close() }

// expire ends the reading after d.
func (c *capture) expire(d time.Duration) { _ = c.file.SetReadDeadline(time.Now().Add(d)) }

// text is what was kept.
func (c *capture) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(bytes.ToValidUTF8(c.kept, []byte("\uFFFD")))
}
