package plugin_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

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
	h.Ask(context.Background(), f)
}

func TestAsk_leaves_no_plugin_behind_a_host_that_is_killed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with its parent")
	}
	for _, bundled := range []string{"", "yes"} {
		dir := t.TempDir()
		file := plugintest.Write(t, dir, "bad", plugintest.Stub{Mode: "hang and mark", Answer: plugintest.Answer("bad")})
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		host := exec.Command(exe)
		host.Env = append(os.Environ(), "HOME="+dir, "PLUGIN_TEST_ASK="+file, "PLUGIN_TEST_BUNDLED="+bundled)
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
