// Package ocitest starts real registry processes for tests.
package ocitest

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var program = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "ocitest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "registry")
	cmd := exec.Command("go", "build", "-o", out, "github.com/research-harness/harness/host/internal/oci/ocitest/registry")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
})

// Registry starts a registry, which ends with the test, and returns its
// address. The arguments are those of registry/main.go.
func Registry(t testing.TB, args ...string) string {
	t.Helper()
	code, err := program()
	if err != nil {
		t.Fatalf("building the registry: %v", err)
	}
	file := filepath.Join(t.TempDir(), "registry")
	if err := os.WriteFile(file, code, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file, args...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(addr)
}
