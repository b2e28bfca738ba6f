// Package plugintest makes real plugin executables for tests.
package plugintest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/research-harness/harness/sdk"
)

// Stub is what a plugin made by [Write] answers and does.
type Stub struct {
	// Mode is how it misbehaves, one of the words in stub/main.go, or empty.
	Mode   string
	Answer sdk.Contribution
	// FromEnv is a variable whose value becomes one more directory of state.
	FromEnv string
}

// Answer is a small valid answer of a frontend called name.
func Answer(name string) sdk.Contribution {
	return sdk.Contribution{
		Name: name, Command: name, Title: "The " + name + " agent",
		State: []sdk.Path{{Path: "~/." + name, Kind: sdk.Dir}},
	}
}

var program = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "plugintest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "stub")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, "github.com/research-harness/harness/host/internal/plugin/plugintest/stub")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
})

// Write writes the plugin of the frontend called name into dir and returns
// its file.
func Write(t testing.TB, dir, name string, s Stub) string {
	t.Helper()
	code, err := program()
	if err != nil {
		t.Fatalf("building the stub plugin: %v", err)
	}
	cfg, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Join([][]byte{code, cfg, binary.BigEndian.AppendUint64(nil, uint64(len(cfg)))}, nil)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "harness-frontend-"+name)
	if err := os.WriteFile(file, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// NothingLeft fails the test when a process of a plugin that this test
// process started is still there.
func NothingLeft(t testing.TB) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Second)
	for {
		left := processes("8643", "/proc/self/fd/3", "harness-frontend-")
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left over: %q", left)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// processes returns the command lines that hold one of the words and belong
// to children of this process, or to nobody any more.
func processes(words ...string) []string {
	var out []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		stat, _ := os.ReadFile(dir + "/stat")
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		fields := strings.Fields(string(rest))
		if len(fields) < 2 || (fields[1] != strconv.Itoa(os.Getpid()) && fields[1] != "1") {
			continue
		}
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		if slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(cmdline, []byte(w)) }) {
			out = append(out, string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))
		}
	}
	return out
}
