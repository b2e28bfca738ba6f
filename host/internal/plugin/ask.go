package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/version"
	"github.com/research-harness/harness/sdk"
)

const (
	maxAnswer = 1 << 20 // bytes
	maxHeader = 64 << 10
)

// ask runs the plugin and returns its checked answer. When it returns, no
// process of the plugin is left.
func (h *Host) ask(ctx context.Context, f Found, img *image, sockets string) (front Frontend, err error) {
	p := h.process(f, img)
	err = h.session(ctx, p, sockets, h.Timeout, func(ctx context.Context, conn *grpc.ClientConn) error {
		front, err = h.describe(ctx, p, f, sdk.NewClient(conn))
		return err
	})
	return front, err
}

// process is the process of a plugin, not started. One that is not bundled
// is confined where that works.
func (h *Host) process(f Found, img *image) *process {
	p := &process{file: f.File, image: img, system: h.System, home: h.Home, exited: make(chan struct{})}
	if !f.Bundled {
		p.confine = h.bwrap()
	}
	return p
}

// session starts p, gives use a connection to it, and ends it, after the time
// limit at the latest.
func (h *Host) session(ctx context.Context, p *process, sockets string, limit time.Duration, use func(context.Context, *grpc.ClientConn) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	log := h.Log
	if !log.IsDebug() {
		log = hclog.NewNullLogger() // what is wrong is said once, by explain
	}
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  sdk.Handshake(),
		Plugins:          goplugin.PluginSet{sdk.PluginName: &sdk.GRPCPlugin{}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		SkipHostEnv:      true,
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: sockets},
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, dir string) (runner.Runner, error) {
			p.env, p.dir = spec.Env, dir
			return p, nil
		},
		// Time runs out through ctx alone, which kills the process.
		StartTimeout: 2 * limit,
		Logger:       log,
		SyncStderr:   log.StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
			grpc.WithMaxHeaderListSize(maxHeader),
		},
	})
	stop := context.AfterFunc(ctx, p.end)
	defer func() {
		stop()
		p.end()
		client.Kill()
	}()
	rpc, err := client.Client()
	if err != nil {
		return h.explain(ctx, p, err)
	}
	return use(ctx, rpc.(*goplugin.GRPCClient).Conn)
}

// describe asks a running plugin, once more with the values of the variables
// that its first answer names, and checks the answers.
func (h *Host) describe(ctx context.Context, p *process, f Found, frontend sdk.Frontend) (Frontend, error) {
	req := sdk.Request{OS: h.System.OS, Arch: h.System.Arch, Home: h.Home, HarnessVersion: version.Get().Version}
	first, err := frontend.Describe(ctx, req)
	if err != nil {
		return Frontend{}, h.explain(ctx, p, err)
	}
	if err := h.check(f, first, req); err != nil {
		return Frontend{}, err
	}
	if len(first.Env) == 0 {
		return Frontend{Contribution: first, Plugin: f, Request: req}, nil
	}
	req.Env = map[string]string{}
	for _, name := range first.Env {
		if v, ok := h.System.Choice(name); ok {
			req.Env[name] = strings.ToValidUTF8(v, "\uFFFD")
		}
	}
	c, err := frontend.Describe(ctx, req)
	if err != nil {
		return Frontend{}, h.explain(ctx, p, err)
	}
	if c.Command != first.Command || !slices.Equal(c.Env, first.Env) {
		return Frontend{}, problem.New(f.File, "env", "command and env change with the values of the variables")
	}
	if err := h.check(f, c, req); err != nil {
		return Frontend{}, err
	}
	return Frontend{Contribution: c, Plugin: f, Request: req}, nil
}

// explain turns a failure of go-plugin or gRPC into what the user can act on.
func (h *Host) explain(ctx context.Context, p *process, err error) error {
	broken := func(format string, args ...any) error {
		return problem.New(p.file, "", format, args...).
			WithHint("remove the file or install another version of the plugin")
	}
	h.Log.Debug("plugin failed", "file", p.file, "error", err)
	switch {
	// gRPC has a clock of its own, which may be ahead of the context's.
	case errors.Is(ctx.Err(), context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		if p.firstLine() == "" {
			return broken("gave no handshake within %s", h.Timeout)
		}
		return broken("gave no answer within %s", h.Timeout)
	case ctx.Err() != nil:
		return problem.New(p.file, "", "%w", context.Cause(ctx))
	}
	if start, ok := errors.AsType[*startError](err); ok {
		return broken("%s", start.reason(h.System.OS, h.System.Arch))
	}

	st, isRPC := status.FromError(err)
	if !isRPC {
		line := p.firstLine()
		parts := strings.Split(line, "|")
		switch {
		case line == "":
			return broken("%s", p.ending("before it gave a handshake"))
		case len(parts) < 4 || parts[0] != fmt.Sprint(goplugin.CoreProtocolVersion):
			return broken("is not a frontend plugin: it printed %q instead of a handshake", shorten(line, 60))
		case parts[1] != fmt.Sprint(sdk.ProtocolVersion):
			return broken("speaks plugin protocol %s, and this harness (version %s) speaks %d", shorten(parts[1], 20), version.Get().Version, sdk.ProtocolVersion)
		case parts[2] != "unix":
			return broken("listens on %s, not on a unix socket", shorten(parts[2], 20))
		case len(parts) < 5 || parts[4] != string(goplugin.ProtocolGRPC):
			return broken("does not speak gRPC")
		}
		return broken("%s", shorten(err.Error(), 200))
	}
	switch st.Code() {
	case codes.Unknown: // the frontend's own error
		return problem.New(p.file, "", "%s", shorten(st.Message(), 500))
	case codes.ResourceExhausted:
		return broken("gave an answer of more than 1 MiB")
	case codes.Unimplemented:
		return broken("does not serve harness.frontend.v1.Frontend")
	}
	if p.waitExit(time.Second) {
		return broken("%s", p.ending("while it was asked"))
	}
	return broken("gave no valid answer: %s", shorten(st.Message(), 200))
}

// shorten cuts s to n bytes.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// startError is a process that could not be started.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }

func (e *startError) reason(goos, arch string) string {
	switch {
	case errors.Is(e.err, syscall.ENOENT):
		return "cannot be started: the interpreter in its first line, or its loader, does not exist"
	case errors.Is(e.err, syscall.ENOEXEC):
		return fmt.Sprintf("cannot be started: it is not a program for %s/%s", goos, arch)
	}
	return fmt.Sprintf("cannot be started: %v", cause(e.err))
}

// newSocketDir makes a private directory whose name is short, because the
// name of a unix socket has at most 104 bytes on some systems. The user's
// TMPDIR is used last: it may be long, missing or read-only.
func newSocketDir(s *system.System) (string, error) {
	const room = len("/plugin-dir1234567890/plugin1234567890") + len("/harness-1234567890")
	var errs []error
	for _, base := range []string{"/tmp", s.Getenv("XDG_RUNTIME_DIR"), "/var/tmp", "/dev/shm", s.Getenv("TMPDIR")} {
		if !filepath.IsAbs(base) || len(base)+room > 100 {
			continue
		}
		dir, err := os.MkdirTemp(base, "harness-")
		if err == nil {
			// A link such as macOS's /tmp would hide the directory from the
			// comparison with what the plugin answers.
			return filepath.EvalSymlinks(dir)
		}
		errs = append(errs, err)
	}
	return "", problem.New("", "", "no directory for the plugins' sockets: %w", errors.Join(errs...)).
		WithHint("make /tmp writable, or set TMPDIR to a short path")
}

// message picks the line of a plugin's standard error that says why it ended.
func message(stderr string) string {
	var last string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		var entry struct {
			Message string `json:"@message"`
			Error   string `json:"error"`
		}
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Message != "" {
			line = strings.TrimSuffix(entry.Message+": "+entry.Error, ": ")
		}
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
		if line != "" {
			last = line
		}
	}
	return last
}
