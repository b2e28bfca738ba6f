package scope

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/syntax"

	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
)

const (
	// StatusTimeout is the exit status of a command that ran out of time.
	StatusTimeout = 124

	// grace is how long a command has to end after SIGTERM.
	grace = 2 * time.Second

	// captureLimit bounds what is kept of each stream of a captured command.
	captureLimit = 1 << 20
)

// Result is what became of a captured command.
type Result struct {
	Command    string   `json:"command"` // quoted for a shell
	ExitCode   int      `json:"exit_code"`
	Stdout     string   `json:"stdout"`
	Stderr     string   `json:"stderr"`
	DurationMS int64    `json:"duration_ms"`
	TimedOut   bool     `json:"timed_out"`
	Scope      string   `json:"scope"`
	Network    string   `json:"sandbox_network"`
	Writable   []string `json:"sandbox_writable"` // besides the workspace
	Notice     string   `json:"notice"`
}

// Capture runs a command in the scope like [Scope.Run] and keeps what it
// prints, the beginning and the end of each stream where it is long.
func (sc *Scope) Capture(s *system.System, argv []string, timeout time.Duration) (*Result, error) {
	var stdout, stderr capture
	inner := *s
	inner.Stdout, inner.Stderr = &stdout, &stderr
	start := time.Now()
	out, err := sc.Run(&inner, argv, timeout)
	if err != nil {
		return nil, err
	}
	return &Result{
		Command: Quote(argv), ExitCode: out.Status, Stdout: stdout.String(), Stderr: stderr.String(),
		DurationMS: time.Since(start).Milliseconds(), TimedOut: out.TimedOut,
		Scope: "workspace", Network: "allow", Writable: sc.Writable, Notice: sc.Notice(),
	}, nil
}

// Quote joins arguments into one shell string.
func Quote(argv []string) string {
	quoted := make([]string, len(argv))
	for i, arg := range argv {
		q, err := syntax.Quote(arg, syntax.LangBash)
		if err != nil { // a NUL, which no argument can hold
			q = fmt.Sprintf("%q", arg)
		}
		quoted[i] = q
	}
	return strings.Join(quoted, " ")
}

// Outcome is how a command ended.
type Outcome struct {
	Status   int            // 128 and its number where a signal ended it
	TimedOut bool           // Status is [StatusTimeout]
	Signal   syscall.Signal // what ended it, where this process got that too
}

// Run runs a command in the scope with the streams and the environment of s.
// Signals that this process gets go to the command. After timeout, where it is
// not 0, the command is told to end, then killed. Descendants that outlive the
// command are killed too.
//
// An error means that the command never ran.
func (sc *Scope) Run(s *system.System, argv []string, timeout time.Duration) (Outcome, error) {
	program, err := Lookup(s, sc.Dir, argv[0])
	if err != nil {
		return Outcome{}, err
	}
	sc.Create()
	return sc.run(s, program, argv, timeout)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}

// Lookup finds a program as a shell would that stands in dir.
func Lookup(s *system.System, dir, name string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if _, err := os.Stat(path); err != nil {
			return "", problem.New("", name, "does not exist")
		}
		if !executable(path) {
			return "", problem.New("", name, "is not an executable file")
		}
		return path, nil
	}
	for _, elem := range filepath.SplitList(s.Getenv("PATH")) {
		if !filepath.IsAbs(elem) {
			elem = filepath.Join(dir, elem)
		}
		if path := filepath.Join(elem, name); executable(path) {
			return path, nil
		}
	}
	p := problem.New("", name, "no such program on PATH")
	if strings.ContainsAny(name, " \t\n;|&$") {
		p = p.WithHint("harness exec -- sh -c %s", Quote([]string{name}))
	}
	return "", p
}

// forwarded are the signals that go to the command.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// child is a sandbox that was started.
type child struct {
	pid int
	// command returns the command's process number, or -1 if it never runs.
	// Where that is not known yet it waits, or returns 0 without wait.
	command    func(wait bool) int
	signals    <-chan os.Signal
	foreground bool   // the terminal sends its signals to the command too
	kill       func() // ends the command and its descendants
}

// wait forwards signals until the sandbox has ended. Ran is false where the
// command never started.
//
// It waits for the sandbox in the goroutine that started it, and leaves the
// rest to another: each switch between threads costs a short command as much
// as its own start.
func (c child) wait(timeout time.Duration) (out Outcome, ran bool) {
	f := forwarder{child: c, ended: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() { f.run(timeout) })
	var ws syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(c.pid, &ws, 0, nil); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	close(f.ended)
	wg.Wait()

	out = Outcome{Status: statusOf(ws), TimedOut: f.timedOut}
	if out.TimedOut {
		out.Status = StatusTimeout
	}
	for _, sig := range f.got {
		if out.Status == 128+int(sig) {
			out.Signal = sig
		}
	}
	if f.started != nil && f.pid == 0 {
		f.pid = <-f.started
	} else if f.pid == 0 {
		f.pid = c.command(true) // known, as those who could say it have ended
	}
	return out, f.pid > 0
}

// forwarder passes signals and the timeout on to the command.
type forwarder struct {
	child
	ended    chan struct{}
	pid      int              // of the command, where known
	started  chan int         // gives it, once something waits for that
	pending  []syscall.Signal // what does
	got      []syscall.Signal
	timedOut bool
}

func (f *forwarder) run(timeout time.Duration) {
	var deadline, kill <-chan time.Time
	if timeout > 0 {
		deadline = time.After(timeout)
	}
	for {
		select {
		case s := <-f.signals:
			sig := s.(syscall.Signal)
			f.got = append(f.got, sig)
			fromTerminal := f.foreground && (sig == syscall.SIGINT || sig == syscall.SIGQUIT)
			if !fromTerminal || f.running() == 0 {
				f.send(sig)
			}
		case f.pid = <-f.started:
			f.started = nil
			for _, sig := range f.pending {
				f.send(sig)
			}
		case <-deadline:
			f.timedOut = true
			f.send(syscall.SIGTERM)
			kill = time.After(grace)
		case <-kill:
			f.kill()
		case <-f.ended:
			return
		}
	}
}

// running is the command's process number, 0 where it is not known yet.
func (f *forwarder) running() int {
	if f.pid == 0 && f.started == nil {
		f.pid = f.command(false)
	}
	return f.pid
}

// send sends a signal to the command, as soon as that runs.
func (f *forwarder) send(sig syscall.Signal) {
	switch pid := f.running(); {
	case pid > 0:
		_ = syscall.Kill(pid, sig) // it may have ended
	case pid == 0:
		f.pending = append(f.pending, sig)
		if f.started == nil {
			started := make(chan int, 1)
			go func() { started <- f.command(true) }()
			f.started = started
		}
	}
}

// terminalState reports whether this process has a controlling terminal, and
// whether it is in the terminal's foreground.
func terminalState() (foreground, terminal bool) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false, false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp(), true
}

// file returns a file that a child can write to so that it reaches w, and a
// function that closes it here and waits until all has arrived.
func file(w io.Writer) (f *os.File, finish func(), err error) {
	if f, ok := w.(*os.File); ok {
		return f, func() {}, nil
	}
	r, f, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(w, r) // w is a caller's buffer
		r.Close()
	})
	return f, func() { f.Close(); wg.Wait() }, nil
}

// statusOf is the exit status as a shell gives it.
func statusOf(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// source returns a file from which a child reads what r gives, and a function
// that closes it here.
func source(r io.Reader) (f *os.File, finish func(), err error) {
	switch r := r.(type) {
	case *os.File:
		return r, func() {}, nil
	case nil:
		f, err = os.Open(os.DevNull)
	default:
		var w *os.File
		if f, w, err = os.Pipe(); err == nil {
			go func() {
				_, _ = io.Copy(w, r) // the child may stop reading
				w.Close()
			}()
		}
	}
	return f, func() { f.Close() }, err
}

// start starts a program with the environment of s and files as its first open
// files. It goes around os/exec, which probes the kernel with two processes of
// its own before it starts the first.
func start(s *system.System, dir, path string, argv []string, files []*os.File, sys *syscall.SysProcAttr) (pid int, err error) {
	attr := &syscall.ProcAttr{Dir: dir, Env: s.Env, Sys: sys}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	pid, err = syscall.ForkExec(path, argv, attr)
	if err != nil {
		return 0, problem.New("", path, "%w", err)
	}
	return pid, nil
}

// sandboxProgram finds the program that confines. Without it nothing runs.
func sandboxProgram(s *system.System, name, hint string) (string, error) {
	for _, dir := range filepath.SplitList(s.Getenv("PATH")) {
		if path := filepath.Join(dir, name); filepath.IsAbs(dir) && executable(path) {
			return path, nil
		}
	}
	return "", problem.New("", name, "is not installed, and nothing runs unconfined").WithHint("%s", hint)
}

// capture keeps the first and the last half of captureLimit bytes.
type capture struct {
	head, tail bytes.Buffer
	dropped    int
}

func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	room := min(captureLimit/2-c.head.Len(), len(p))
	c.head.Write(p[:room])
	c.tail.Write(p[room:])
	if over := c.tail.Len() - captureLimit/2; over > 0 {
		c.tail.Next(over)
		c.dropped += over
	}
	return n, nil
}

func (c *capture) String() string {
	if c.dropped == 0 {
		return c.head.String() + c.tail.String()
	}
	return fmt.Sprintf("%s\n[harness: %d bytes left out]\n%s", c.head.String(), c.dropped, c.tail.String())
}
