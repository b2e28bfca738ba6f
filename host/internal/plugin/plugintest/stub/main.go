// Stub is a plugin for tests. What it answers, and how it misbehaves, stands
// in JSON behind its own program code, so that one build gives any plugin.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/research-harness/harness/sdk"
)

type config struct {
	Mode   string
	Answer sdk.Contribution
	// FromEnv is a variable whose value becomes one more directory of state.
	FromEnv string
}

func main() {
	cfg := load()
	handshake := sdk.Handshake()
	socket := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s")
	switch cfg.Mode {
	case "exit":
		fmt.Fprintln(os.Stderr, "license expired")
		os.Exit(3)
	case "silent":
		os.Exit(0)
	case "garbage":
		fmt.Print("\x1b[2Jhello|there\nmore\n")
		hang()
	case "long line":
		_, _ = io.Copy(os.Stdout, endless{})
	case "half a line":
		fmt.Print("1|1|un")
		hang()
	case "cookie":
		handshake.MagicCookieValue = "another"
	case "protocol 0":
		fmt.Println("1|0|unix|" + socket + "|grpc")
		hang()
	case "protocol 2":
		fmt.Println("1|2|unix|" + socket + "|grpc")
		hang()
	case "net/rpc":
		fmt.Println("1|1|unix|" + socket)
		hang()
	case "tcp":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check(err)
		fmt.Println("1|1|tcp|" + l.Addr().String() + "|grpc")
		hang()
	case "foreign socket":
		fmt.Println("1|1|unix|/run/other.sock|grpc")
		hang()
	case "not grpc":
		l, err := net.Listen("unix", socket)
		check(err)
		fmt.Println("1|1|unix|" + socket + "|grpc")
		for {
			c, err := l.Accept()
			check(err)
			fmt.Fprintln(c, "220 mail.example ESMTP")
		}
	case "no socket":
		fmt.Println("1|1|unix|" + socket + "|grpc")
		hang()
	case "hang and mark":
		check(os.WriteFile("/proc/self/comm", []byte("stub-hangs"), 0))
		hang()
	case "hang":
		hang()
	case "stderr alone":
		pour(endless{newline: true})
	case "stderr":
		go pour(endless{})
	case "stderr line":
		go pour(endless{newline: true})
	case "escapes":
		fmt.Fprintln(os.Stderr, "\x1b[2Jraw")
		sdk.Logger().Info("\x1b[2Jlogged", "key", "\x1b[2Jvalue")
	case "child":
		sleeper(false)
	case "child and exit":
		sleeper(false)
		os.Exit(4)
	case "daemon":
		sleeper(true)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: handshake,
		Plugins:         plugin.PluginSet{sdk.PluginName: &sdk.GRPCPlugin{Frontend: sdk.Func(cfg.describe)}},
		GRPCServer:      func(opts []grpc.ServerOption) *grpc.Server { return grpc.NewServer(opts...) },
		Logger:          sdk.Logger(),
	})
}

func (cfg config) describe(_ context.Context, req sdk.Request) (sdk.Contribution, error) {
	c := cfg.Answer
	switch cfg.Mode {
	case "hang in describe":
		hang()
	case "panic":
		panic("boom")
	case "crash":
		os.Exit(5)
	case "write":
		check(os.WriteFile(req.Home+"/.crow", nil, 0o600))
	case "refuse":
		return c, errors.New("XYZ_HOME is relative\n\x1b[31m")
	case "long refusal":
		return c, errors.New(strings.Repeat("x", 10<<20))
	case "huge":
		c.Overrides = []sdk.Override{{Name: "x", Content: make([]byte, 100<<20)}}
	case "env":
		dir, _ := os.Getwd()
		return c, fmt.Errorf("%q in %s", os.Environ(), dir)
	case "environ changes":
		if len(req.Env) > 0 {
			c.Env = append(c.Env, "MORE")
		}
	case "terminal":
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			_, _ = tty.WriteString("written by the plugin")
			return c, errors.New("could open the terminal")
		}
	case "spy":
		return c, errors.New(spy(req.Home, c.Title))
	}
	if dir := req.Env[cfg.FromEnv]; cfg.FromEnv != "" && dir != "" {
		c.State = append(c.State, sdk.Path{Path: dir, Kind: sdk.Dir})
	}
	return c, nil
}

// spy tries what a plugin must not be able to do and tells what went well.
func spy(home, addr string) string {
	var done []string
	try := func(what string, err error) {
		if err == nil {
			done = append(done, what)
		}
	}
	_, err := os.ReadFile(home + "/.ssh/id")
	try("read ~/.ssh", err)
	try("write home", os.WriteFile(home+"/spy", nil, 0o600))
	try("write /tmp", os.WriteFile("/tmp/harness-spy", nil, 0o600))
	try("write /dev/shm", os.WriteFile("/dev/shm/harness-spy", nil, 0o600))
	try("write to the root", os.WriteFile("/harness-spy", nil, 0o600))
	_, err = net.DialTimeout("tcp", addr, time.Second)
	try("connect", err)
	procs, _ := filepath.Glob("/proc/[0-9]*")
	if len(procs) > 5 {
		done = append(done, fmt.Sprintf("sees %d processes", len(procs)))
	}
	sleeper(true)
	return "done: " + strings.Join(done, ", ")
}

// sleeper leaves a child that keeps the pipes, as a daemon in a session of
// its own.
func sleeper(daemon bool) {
	cmd := exec.Command("/bin/sleep", "8643")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: daemon}
	check(cmd.Start())
}

func hang() { select {} }

// pour writes to standard error for as long as it is read.
func pour(r endless) { _, _ = io.Copy(os.Stderr, r) }

type endless struct{ newline bool }

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
		if e.newline && i%100 == 99 {
			b[i] = '\n'
		}
	}
	return len(b), nil
}

// load reads the configuration: its length stands in the last eight bytes.
func load() (cfg config) {
	exe, err := os.Executable()
	check(err)
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		exe = "/proc/self/exe" // the name of a file in memory cannot be opened
	}
	f, err := os.Open(exe)
	check(err)
	defer f.Close()
	info, err := f.Stat()
	check(err)
	tail := make([]byte, 8)
	_, err = f.ReadAt(tail, info.Size()-8)
	check(err)
	data := make([]byte, binary.BigEndian.Uint64(tail))
	_, err = f.ReadAt(data, info.Size()-8-int64(len(data)))
	check(err)
	check(json.Unmarshal(data, &cfg))
	return cfg
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "stub:", err)
		os.Exit(1)
	}
}
