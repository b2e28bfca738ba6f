// Package report runs a session as its parent and says afterwards what the
// sandbox kept it from.
//
// The sandbox runtime tells of refused hosts in its debug log alone, on the
// standard error that the session has too. So the runtime gets a pipe there,
// and the session the user's own stream again where another one is the same
// file, as on a terminal; else what is no log goes on from the pipe to the
// user's stream. The runtime keeps no record of refused paths.
package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/research-harness/harness/host/internal/exit"
	"github.com/research-harness/harness/host/internal/launch"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
)

// Verb is the hidden verb that becomes the session's sandbox runtime. Its first
// argument is the redirection that gives the session its standard error, and
// the rest are the launcher's.
const Verb = "report-session"

// Wrap makes the runtime of start write its log, and the session not.
func Wrap(s *system.System, start *launch.Start, redirection string) {
	script := `exec "$@" ` + redirection
	if _, ok := s.LookupEnv(debugVariable); !ok {
		script = "unset " + debugVariable + "; " + script
		start.Env = append(start.Env, debugVariable+"=1")
	}
	program := slices.Index(start.Argv, "--") + 1
	start.Argv = slices.Insert(slices.Clone(start.Argv), program, "/bin/sh", "-c", script, "sh")
}

const debugVariable = "SRT_DEBUG"

// Run runs a session, as agentbox does with args, to its end. Then it writes
// what the session was refused to standard error and returns the session's
// status.
func Run(s *system.System, args []string) error {
	pipe, log, err := os.Pipe()
	if err != nil {
		return err
	}
	defer pipe.Close()
	files, redirection, err := streams(s, log)
	if err != nil {
		return err
	}
	// What a terminal sends goes to the session as well, which decides.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	pid, err := syscall.ForkExec(s.Exe, append([]string{s.Exe, Verb, redirection}, args...),
		&syscall.ProcAttr{Dir: s.Dir, Env: s.Env, Files: files})
	log.Close()
	if err != nil {
		return problem.New(s.Exe, "", "%w", err)
	}
	l := &reader{out: s.Stderr}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(l, pipe)
	}()
	go forward(pid, signals)
	status, err := wait(pid)
	if err != nil {
		return err
	}
	// A process that the session has left may hold the pipe.
	_ = pipe.SetReadDeadline(time.Now().Add(time.Second))
	<-read
	l.close()
	if l.started {
		l.print(s, args[0])
	}
	switch {
	case status.Signaled():
		return exit.Of(128 + int(status.Signal()))
	default:
		return exit.Of(status.ExitStatus())
	}
}

// streams are the session's standard streams, log in place of the third, and
// the redirection of sh that undoes that, or "".
func streams(s *system.System, log *os.File) (files []uintptr, redirection string, err error) {
	var infos []fs.FileInfo
	for _, stream := range []any{s.Stdin, s.Stdout, s.Stderr} {
		f, ok := stream.(*os.File)
		if !ok {
			return nil, "", errors.New("a session needs files for its standard streams")
		}
		info, err := f.Stat()
		if err != nil {
			return nil, "", problem.New(f.Name(), "", "%w", err)
		}
		files, infos = append(files, f.Fd()), append(infos, info)
	}
	files[2] = log.Fd()
	switch {
	case os.SameFile(infos[2], infos[1]):
		redirection = "2>&1"
	case os.SameFile(infos[2], infos[0]) && infos[2].Mode()&fs.ModeCharDevice != 0:
		redirection = "2>&0"
	}
	return files, redirection, nil
}

// forward sends a session the signals that are for it. Those of a terminal's
// keys it has got itself.
func forward(pid int, signals <-chan os.Signal) {
	for sig := range signals {
		if sig == syscall.SIGTERM || sig == syscall.SIGHUP {
			_ = syscall.Kill(pid, sig.(syscall.Signal))
		}
	}
}

// wait waits until pid ends. When it stops, so does this process, for the shell
// to take over, and it goes on when the shell brings this one back.
func wait(pid int) (syscall.WaitStatus, error) {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, problem.New("", "", "waiting for the session: %w", err)
		case status.Stopped():
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			_ = syscall.Kill(pid, syscall.SIGCONT)
		default:
			return status, nil
		}
	}
}

// reader tells the runtime's log from all else that is written to standard
// error, and passes the latter on.
type reader struct {
	out io.Writer

	started bool // the runtime has said something
	hosts   []string

	line []byte // begun, and not passed on
	text bool   // the line is no log and has been passed on so far
	// until is what the line begins with that ends a message of several lines,
	// or "".
	until string
}

// The runtime's log, as srt 0.0.83 writes it.
const (
	mark    = "[SandboxDebug] "
	command = mark + "Original command: " // as long as the user's arguments
	network = mark + "{"                  // the settings as JSON
)

var blocked = regexp.MustCompile(`^\[SandboxDebug\] (?:Connection|HTTP request) blocked to (.+):([0-9]+)$`)

func (r *reader) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		r.piece(line)
	}
	return len(p), nil
}

// piece takes a line or a part of one. What cannot be log is passed on at once.
func (r *reader) piece(p string) {
	// The runtime writes whole lines, after whatever the session has begun.
	if i := strings.Index(p, mark); i >= 0 && r.until == "" && !strings.HasPrefix(string(r.line), mark) {
		_, _ = r.out.Write(append(r.line, p[:i]...))
		r.line, r.text, p = nil, false, p[i:]
	}
	r.line = append(r.line, p...)
	whole := strings.HasSuffix(p, "\n")
	switch {
	case r.until != "" && !whole:
		return
	case r.until != "":
		if strings.HasPrefix(string(r.line), r.until) {
			if r.until = ""; strings.HasPrefix(string(r.line), mark) {
				r.log(strings.TrimSuffix(string(r.line), "\n"))
			}
		}
	case !r.text && strings.HasPrefix(string(r.line), mark):
		if !whole {
			return
		}
		r.log(strings.TrimSuffix(string(r.line), "\n"))
	case !r.text && strings.HasPrefix(mark, string(r.line)):
		return // it may become log
	default:
		_, _ = r.out.Write(r.line)
		r.text = !whole
	}
	r.line = r.line[:0]
}

// close passes on what has begun like log and did not go on.
func (r *reader) close() {
	if r.until == "" && !strings.HasPrefix(string(r.line), mark) {
		_, _ = r.out.Write(r.line)
	}
}

func (r *reader) log(line string) {
	r.started = true
	if strings.HasPrefix(line, command) {
		r.until = mark
		return
	}
	if line == network {
		r.until = "}"
		return
	}
	m := blocked.FindStringSubmatch(line)
	if m == nil {
		return
	}
	host := m[1]
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	if host += ":" + m[2]; !slices.Contains(r.hosts, host) {
		r.hosts = append(r.hosts, host)
	}
}

// limit is how many hosts are listed.
const limit = 20

// print says what the session of a frontend, by its command, was refused.
func (r *reader) print(s *system.System, command string) {
	name := command
	if home, err := s.Home(); err == nil {
		for _, f := range launch.Frontends(layout.Layout{Home: home}) {
			if f.Command == command {
				name = f.Name
			}
		}
	}
	switch len(r.hosts) {
	case 0:
		fmt.Fprintln(s.Stderr, "harness: the session was refused no host")
	case 1:
		fmt.Fprintln(s.Stderr, "harness: the session was refused one host; to see why, type:")
	default:
		fmt.Fprintf(s.Stderr, "harness: the session was refused %d hosts; to see why, type:\n", len(r.hosts))
	}
	for _, host := range r.hosts[:min(len(r.hosts), limit)] {
		fmt.Fprintf(s.Stderr, "  harness explain %s host %s\n", name, problem.OneLine(word(host)))
	}
	if more := len(r.hosts) - limit; more > 0 {
		fmt.Fprintf(s.Stderr, "  and %d more\n", more)
	}
	fmt.Fprintf(s.Stderr, "harness: refused paths are on no record of srt's; to ask about one, type:\n  harness explain %s write PATH\n", name)
}

var plain = regexp.MustCompile(`^[A-Za-z0-9.:_-]+$`)

// word makes one word for sh.
func word(s string) string {
	if plain.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
