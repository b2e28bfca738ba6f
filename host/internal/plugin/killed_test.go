package plugin_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/research-harness/harness/host/internal/plugin"
	"github.com/research-harness/harness/host/internal/plugin/plugintest"
	"github.com/research-harness/harness/host/internal/system"
)

// TestMain runs, in a process that a test starts to kill it, a host that asks
// the plugin named in the environment.
func TestMain(m *testing.M) {
	file := os.Getenv("PLUGIN_TEST_ASK")
	if file == "" {
		os.Exit(m.Run())
	}
	h := plugin.New(system.Host(), os.Getenv("HOME"), nil)
	f, err := h.At(file)
	if err != nil {
		panic(err)
	}
	if os.Getenv("PLUGIN_TEST_BUNDLED") != "" {
		h.Bundled[f.Name] = f.Digest
		f.Bundled = true
	}
	_, err = h.Ask(context.Background(), f)
	fmt.Println("asked:", err)
}

// host is a process that asks the plugin in file, as a bundled one or not.
func host(t *testing.T, file, bundled string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "PLUGIN_TEST_ASK="+file, "PLUGIN_TEST_BUNDLED="+bundled)
	return cmd
}

// On the user's terminal a plugin could type a command that the shell runs
// when the harness is done.
func TestAsk_keeps_the_terminal_from_a_plugin(t *testing.T) {
	file := plugintest.Write(t, t.TempDir(), "bad", plugintest.Stub{Mode: "terminal", Answer: plugintest.Answer("bad")})
	for _, bundled := range []string{"", "yes"} {
		cmd := host(t, file, bundled)
		terminal, err := pty.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		defer terminal.Close()
		screen, _ := io.ReadAll(terminal) // it ends with an error on Linux
		if err := cmd.Wait(); err != nil || string(screen) != "asked: <nil>\r\n" {
			t.Errorf("bundled %q: %v, the terminal shows %q", bundled, err, screen)
		}
	}
}

func TestAsk_leaves_no_plugin_behind_a_host_that_is_killed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with its parent")
	}
	for _, bundled := range []string{"", "yes"} {
		file := plugintest.Write(t, t.TempDir(), "bad", plugintest.Stub{Mode: "hang and mark", Answer: plugintest.Answer("bad")})
		host := host(t, file, bundled)
		if err := host.Start(); err != nil {
			t.Fatal(err)
		}
		count := func() (n int) {
			names, _ := filepath.Glob("/proc/[0-9]*/comm")
			for _, name := range names {
				if comm, _ := os.ReadFile(name); string(comm) == "stub-hangs\n" {
					n++
				}
			}
			return n
		}
		await(t, "the plugin runs", func() bool { return count() > 0 })
		host.Process.Kill()
		host.Wait()
		await(t, "the plugin is gone", func() bool { return count() == 0 })
	}
}

// await polls until cond holds.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
