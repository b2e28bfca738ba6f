package plugin_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/research-harness/harness/host/internal/plugin"
	"github.com/research-harness/harness/host/internal/plugin/plugintest"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/sdk"
)

// newHost returns a host whose program and plugins are in a directory of its
// own, and that directory of plugins.
func newHost(t testing.TB, env ...string) (*plugin.Host, string) {
	t.Helper()
	home, root := t.TempDir(), t.TempDir()
	s := &system.System{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Dir: home, Exe: filepath.Join(root, "bin", "harness"),
		Env: append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=secret"}, env...),
		Now: time.Now,
	}
	h := plugin.New(s, home, nil)
	h.Bundled = map[string]string{}
	return h, h.Dir()
}

// bundle writes a plugin and makes it a bundled one, which needs no trust.
func bundle(t testing.TB, h *plugin.Host, dir, name string, s plugintest.Stub) string {
	t.Helper()
	file := plugintest.Write(t, dir, name, s)
	h.Bundled[name] = sha(t, file)
	return file
}

// needBwrap skips a test of confinement where bubblewrap is not installed.
func needBwrap(t *testing.T, h *plugin.Host) {
	t.Helper()
	switch {
	case h.Confines():
	case os.Getenv("CI") == "true" && !testing.Short():
		t.Fatal("bubblewrap does not work here")
	default:
		t.Skip("bubblewrap does not work here")
	}
}

func sha(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func TestLoad_asks_all_plugins_in_the_documented_order(t *testing.T) {
	h, dir := newHost(t)
	for _, name := range []string{"zeta", "antigravity", "alpha", "omp", "claude", "opencode"} {
		bundle(t, h, dir, name, plugintest.Stub{Answer: plugintest.Answer(name)})
	}
	var log bytes.Buffer
	h.Log = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Info})
	start := time.Now()
	got, warnings, err := h.Load(t.Context(), []string{"claude"})
	t.Logf("six plugins in %s", time.Since(start))
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	var names []string
	for _, f := range got {
		names = append(names, f.Name)
	}
	if want := "claude opencode omp antigravity alpha zeta"; strings.Join(names, " ") != want {
		t.Errorf("order is %v, want %s", names, want)
	}
	if got[0].Title != "The claude agent" || got[0].SDKVersion != sdk.Version || !got[0].Plugin.Bundled {
		t.Errorf("answer is %+v", got[0])
	}
	for _, bad := range []string{"[WARN]", "[ERROR]"} {
		if strings.Contains(log.String(), bad) {
			t.Errorf("a run without a fault logs %s", log.String())
		}
	}
	plugintest.NothingLeft(t)
}

func TestLoad_names_what_is_wrong_with_a_plugin(t *testing.T) {
	for _, tt := range []struct {
		mode, want string
		slow       bool // ends with the time limit
	}{
		{mode: "exit", want: "exited with status 3 before it gave a handshake: license expired"},
		{mode: "silent", want: "exited with status 0 before it gave a handshake"},
		{mode: "garbage", want: `is not a frontend plugin: it printed "\x1b[2Jhello|there" instead of a handshake`},
		{mode: "long line", want: "is not a frontend plugin"},
		{mode: "half a line", want: "gave no answer within", slow: true},
		{mode: "cookie", want: "exited with status 1 before it gave a handshake"},
		{mode: "protocol 0", want: "speaks plugin protocol 0, and this harness (version 0.0.0-dev) speaks 1"},
		{mode: "protocol 2", want: "speaks plugin protocol 2, and this harness (version 0.0.0-dev) speaks 1"},
		{mode: "net/rpc", want: "does not speak gRPC"},
		{mode: "tcp", want: "listens on tcp, not on a unix socket"},
		{mode: "foreign socket", want: "its socket is not in PLUGIN_UNIX_SOCKET_DIR"},
		{mode: "not grpc", want: "gave no valid answer"},
		{mode: "no socket", want: "gave no valid answer"},
		{mode: "hang", want: "gave no handshake within", slow: true},
		{mode: "hang in describe", want: "gave no answer within", slow: true},
		{mode: "panic", want: "exited with status 2 while it was asked: panic: boom"},
		{mode: "crash", want: "exited with status 5 while it was asked"},
		{mode: "refuse", want: `XYZ_HOME is relative\n\x1b[31m`},
		{mode: "long refusal", want: ""},
		{mode: "huge", want: "gave an answer of more than 1 MiB"},
		{mode: "child and exit", want: "exited with status 4 before it gave a handshake"},
	} {
		for _, confined := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, confined %v", tt.mode, confined), func(t *testing.T) {
				t.Parallel()
				h, dir := newHost(t)
				h.Timeout = 8 * time.Second
				if tt.slow {
					h.Timeout = time.Second
				}
				file := plugintest.Write(t, dir, "bad", plugintest.Stub{Mode: tt.mode, Answer: plugintest.Answer("bad")})
				start := time.Now()
				err := loadOne(t, h, file, confined)
				if err == nil {
					t.Fatal("no error")
				}
				if d := time.Since(start); d > h.Timeout+2*time.Second {
					t.Errorf("took %s", d)
				}
				text := err.Error()
				if !strings.HasPrefix(text, file+": ") || !strings.Contains(text, tt.want) || strings.Contains(text, "\n") || len(text) > 1000 {
					t.Errorf("error is %q, want the file and %q", text, tt.want)
				}
			})
		}
	}
}

// loadOne runs the plugin in file as a bundled one or as one that is confined.
func loadOne(t *testing.T, h *plugin.Host, file string, confined bool) error {
	t.Helper()
	if confined {
		needBwrap(t, h)
	} else {
		h.Bundled["bad"] = sha(t, file)
	}
	f, err := h.At(file)
	if err != nil {
		return err
	}
	_, err = h.Ask(t.Context(), f)
	return err
}

func TestLoad_bears_noise_on_standard_error(t *testing.T) {
	for _, mode := range []string{"stderr", "stderr line", "child", "daemon"} {
		t.Run(mode, func(t *testing.T) {
			h, dir := newHost(t)
			var log bytes.Buffer
			h.Log = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Debug})
			file := plugintest.Write(t, dir, "bad", plugintest.Stub{Mode: mode, Answer: plugintest.Answer("bad")})
			if err := loadOne(t, h, file, true); err != nil {
				t.Fatal(err)
			}
			if log.Len() > 256<<10 {
				t.Errorf("the log has %d bytes", log.Len())
			}
		})
	}
	plugintest.NothingLeft(t)
}

func TestDiscover_refuses_what_is_no_plugin(t *testing.T) {
	h, dir := newHost(t)
	if err := os.MkdirAll(filepath.Join(dir, "harness-frontend-dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name string, mode os.FileMode, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("harness-frontend-plain", 0o644, "")
	write("harness-frontend-Upper", 0o755, "")
	write("harness-frontend-new\nline", 0o755, "")
	write("harness-frontend-", 0o755, "")
	write("other", 0o755, "")
	write("harness-frontend-script", 0o755, "#!/no/such/interpreter\n")
	write("harness-frontend-text", 0o755, "no program")
	if err := os.Symlink("/no/such", filepath.Join(dir, "harness-frontend-dangling")); err != nil {
		t.Fatal(err)
	}
	found, err := h.Discover()
	if err != nil || len(found) != 2 {
		t.Fatalf("found %v, %v", found, err)
	}
	for name, want := range map[string]string{
		"dir": "is a directory", "plain": "is not executable", "dangling": "no such file or directory",
		"absent": "no plugin serves this frontend; there are script, text",
	} {
		_, _, err := h.Load(t.Context(), []string{name})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %s", name, err, want)
		}
	}
	for _, f := range found {
		for _, bundled := range []bool{true, false} {
			want := "cannot be started: the interpreter in its first line, or its loader, does not exist"
			if f.Name == "text" {
				want = "cannot be started: it is not a program for " + runtime.GOOS + "/" + runtime.GOARCH
				if !bundled { // bubblewrap has it run by the shell
					want = "before it gave a handshake"
				}
			}
			f.Bundled = bundled
			if _, err := h.Ask(t.Context(), f); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, bundled %v: error is %v, want %s", f.Name, bundled, err, want)
			}
		}
	}
}

func TestLoad_refuses_two_plugins_that_collide(t *testing.T) {
	override := func(name, file string) sdk.Contribution {
		c := plugintest.Answer(name)
		c.Overrides = []sdk.Override{{Name: file, Content: []byte("{}")}}
		return c
	}
	sameCommand := plugintest.Answer("two")
	sameCommand.Command = "one"
	for _, tt := range []struct {
		rule, want string
		one, two   sdk.Contribution
	}{
		{"one command", "is also the command of", plugintest.Answer("one"), sameCommand},
		{"an override with the name of another's settings", "writes the file a-b.json", override("a", "a-b.json"), plugintest.Answer("a-b")},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			h, dir := newHost(t)
			one := bundle(t, h, dir, tt.one.Name, plugintest.Stub{Answer: tt.one})
			two := bundle(t, h, dir, tt.two.Name, plugintest.Stub{Answer: tt.two})
			_, _, err := h.Load(t.Context(), nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), one) || !strings.Contains(err.Error(), two) {
				t.Errorf("error is %v, want %s and both files", err, tt.want)
			}
		})
	}
	t.Run("one name", func(t *testing.T) {
		h, dir := newHost(t)
		other := t.TempDir()
		one := bundle(t, h, dir, "one", plugintest.Stub{Answer: plugintest.Answer("one")})
		two := plugintest.Write(t, other, "one", plugintest.Stub{Answer: plugintest.Answer("one")})
		h.Dirs = []string{other, other}
		_, err := h.Discover()
		if err == nil || !strings.Contains(err.Error(), one) || !strings.Contains(err.Error(), two) {
			t.Errorf("error is %v, want both files", err)
		}
		h.Dirs = []string{dir}
		if _, err := h.Discover(); err != nil {
			t.Errorf("one file in a directory that is named twice: %v", err)
		}
	})
}

func TestAsk_gives_a_minimal_environment(t *testing.T) {
	for _, bundled := range []bool{true, false} {
		h, dir := newHost(t)
		file := plugintest.Write(t, dir, "bad", plugintest.Stub{Mode: "env", Answer: plugintest.Answer("bad")})
		err := loadOne(t, h, file, !bundled)
		if err == nil || !strings.Contains(err.Error(), "PATH=/usr/local/bin:/usr/bin:/bin") || !strings.HasSuffix(err.Error(), " in /") {
			t.Fatal(err)
		}
		for _, bad := range []string{"secret", "API_KEY", "HOME="} {
			if strings.Contains(err.Error(), bad) {
				t.Errorf("the environment holds %s: %v", bad, err)
			}
		}
	}
}

func TestAsk_confines_a_plugin_that_is_not_bundled(t *testing.T) {
	h, dir := newHost(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	os.MkdirAll(filepath.Join(h.Home, ".ssh"), 0o700)
	os.WriteFile(filepath.Join(h.Home, ".ssh", "id"), []byte("key"), 0o600)
	file := plugintest.Write(t, dir, "bad", plugintest.Stub{Mode: "spy", Answer: sdk.Contribution{Title: l.Addr().String()}})
	err = loadOne(t, h, file, true)
	if err == nil || !strings.HasSuffix(err.Error(), ": done: ") {
		t.Errorf("the plugin could: %v", err)
	}
	for _, f := range []string{filepath.Join(h.Home, "spy"), "/tmp/harness-spy", "/dev/shm/harness-spy", "/harness-spy"} {
		if _, err := os.Stat(f); err == nil {
			t.Errorf("it wrote %s", f)
		}
	}
	plugintest.NothingLeft(t)
}

func TestAsk_passes_the_values_of_named_variables(t *testing.T) {
	h, dir := newHost(t, "STUB_HOME=/data/stub")
	c := plugintest.Answer("bad")
	c.Env = []string{"STUB_HOME", "STUB_UNSET"}
	file := plugintest.Write(t, dir, "bad", plugintest.Stub{Answer: c, FromEnv: "STUB_HOME"})
	f, err := h.At(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.Ask(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if got.State[1].Path != "/data/stub" || len(got.Request.Env) != 1 {
		t.Errorf("state is %v, request %v", got.State, got.Request)
	}
}

func TestAsk_works_whatever_TMPDIR_is(t *testing.T) {
	for _, dir := range []string{"/no/such/dir", strings.Repeat("/x", 100), "/proc", "", "relative"} {
		h, plugins := newHost(t, "TMPDIR="+dir)
		file := plugintest.Write(t, plugins, "bad", plugintest.Stub{Answer: plugintest.Answer("bad")})
		if err := loadOne(t, h, file, true); err != nil {
			t.Errorf("TMPDIR=%s: %v", dir, err)
		}
	}
}

func TestAsk_refuses_a_file_that_was_replaced(t *testing.T) {
	h, dir := newHost(t)
	file := plugintest.Write(t, dir, "bad", plugintest.Stub{Answer: plugintest.Answer("bad")})
	f, err := h.At(file)
	if err != nil {
		t.Fatal(err)
	}
	plugintest.Write(t, dir, "bad", plugintest.Stub{Mode: "crash"})
	if _, err := h.Ask(t.Context(), f); err == nil || !strings.Contains(err.Error(), "was replaced") {
		t.Errorf("error is %v", err)
	}
}

func TestAsk_follows_links_into_protected_paths(t *testing.T) {
	h, dir := newHost(t)
	if err := os.Mkdir(filepath.Join(h.Home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".ssh", filepath.Join(h.Home, ".bad")); err != nil {
		t.Fatal(err)
	}
	file := plugintest.Write(t, dir, "bad", plugintest.Stub{Answer: plugintest.Answer("bad")})
	err := loadOne(t, h, file, true)
	if err == nil || !strings.Contains(err.Error(), "leads to ~/.ssh") {
		t.Errorf("error is %v", err)
	}
}

func TestAsk_ends_with_its_context(t *testing.T) {
	h, dir := newHost(t)
	file := plugintest.Write(t, dir, "bad", plugintest.Stub{Mode: "hang", Answer: plugintest.Answer("bad")})
	f, err := h.At(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := h.Ask(ctx, f); err == nil || time.Since(start) > 3*time.Second {
		t.Errorf("ended after %s with %v", time.Since(start), err)
	}
	plugintest.NothingLeft(t)
}

func TestLoad_runs_what_is_trusted_alone(t *testing.T) {
	h, dir := newHost(t)
	bundle(t, h, dir, "one", plugintest.Stub{Answer: plugintest.Answer("one")})
	file := plugintest.Write(t, dir, "two", plugintest.Stub{Mode: "crash"})
	got, warnings, err := h.Load(t.Context(), []string{"one"})
	if err != nil || len(got) != 1 || len(warnings) != 1 || !strings.Contains(warnings[0], file) {
		t.Fatal(got, warnings, err)
	}
	_, _, err = h.Load(t.Context(), []string{"two"})
	if err == nil || !strings.Contains(err.Error(), "is not trusted") || problem.HintOf(err) != "harness frontend trust two" {
		t.Errorf("error is %v", err)
	}
}
