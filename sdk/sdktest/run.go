package sdktest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/research-harness/harness/sdk"
)

// T is what the checks use of a *testing.T.
type T interface {
	Helper()
	Context() context.Context
	TempDir() string
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Run checks f in memory and over gRPC within this process. Each broken rule
// is an error of t that names the rule and the fix.
func Run(t T, f sdk.Frontend) {
	t.Helper()
	findings := Check(t.Context(), f, home(t))
	if len(findings) == 0 {
		conn, stop := serve(t, f)
		defer stop()
		findings = CheckConn(t.Context(), conn, home(t))
	}
	report(t, findings)
}

// RunExecutable checks the plugin at path as the host starts it.
func RunExecutable(t T, path string) {
	t.Helper()
	sockets, err := os.MkdirTemp("/tmp", "sdktest-") // short, as a socket's name must be
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer os.RemoveAll(sockets)

	cmd := exec.Command(path)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "TMPDIR=" + sockets, "PLUGIN_UNIX_SOCKET_DIR=" + sockets}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  sdk.Handshake(),
		Plugins:          plugin.PluginSet{sdk.PluginName: &sdk.GRPCPlugin{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd:              cmd,
		SkipHostEnv:      true,
		StartTimeout:     Limit,
		Logger:           hclog.NewNullLogger(),
	})
	defer client.Kill()
	rpc, err := client.Client()
	if err != nil {
		t.Fatalf("does the handshake within %s: %v; print nothing before sdk.Serve, and call it at once", Limit, err)
	}
	conn := rpc.(*plugin.GRPCClient).Conn
	report(t, CheckConn(t.Context(), conn, home(t)))
	if answer, err := sdk.NewClient(conn).Describe(t.Context(), sdk.Request{OS: "linux", Arch: "amd64", Home: home(t)}); err == nil {
		if want := "harness-frontend-" + answer.Name; filepath.Base(path) != want {
			t.Errorf("is called harness-frontend-<name>: the file is %s; call it %s", filepath.Base(path), want)
		}
	}

	client.Kill()
	for deadline := time.Now().Add(2 * time.Second); syscall.Kill(-cmd.Process.Pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			t.Errorf("leaves no process behind: one still runs; end what the plugin starts before it answers")
			return
		}
	}
}

// home is an empty home directory with a name that few programs expect.
func home(t T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "Zoë Müller")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatalf("%v", err)
	}
	return dir
}

// serve serves f in memory.
func serve(t T, f sdk.Frontend) (*grpc.ClientConn, func()) {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	s := grpc.NewServer()
	if err := (&sdk.GRPCPlugin{Frontend: f}).GRPCServer(nil, s); err != nil {
		t.Fatalf("%v", err)
	}
	go func() { _ = s.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64*MaxAnswer)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return conn, func() {
		conn.Close()
		s.Stop()
	}
}

func report(t T, findings []Finding) {
	t.Helper()
	for _, f := range findings {
		t.Errorf("%s", fmt.Sprint(f))
	}
}
