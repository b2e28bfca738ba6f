package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestWorkspaceAdd goes the way that the launcher's refusal shows.
func TestWorkspaceAdd(t *testing.T) {
	w := newWorld(t)
	w.install()
	harness := w.in(".local", "bin", "harness")
	w.work = w.in("src", "my project")
	w.write(filepath.Join(w.work, "file"), "")
	if r := w.shell("claude", "true"); r.code != 2 || !strings.Contains(r.stderr, "harness workspace add && harness install --apply") {
		t.Fatalf("status %d: %s", r.code, r.stderr)
	}
	for range 2 { // the second changes nothing
		if r := w.run(harness, "workspace", "add"); r.code != 0 {
			t.Fatalf("status %d: %s", r.code, r.stderr)
		}
	}
	if r := w.run(harness, "workspace", "list"); r.stdout != "~/Research\n~/src/my project\n" {
		t.Errorf("the workspaces are %q", r.stdout)
	}
	w.install()
	if r := w.shell("claude", "echo written > file"); r.code != 0 || w.read(filepath.Join(w.work, "file")) != "written\n" {
		t.Errorf("status %d: %s", r.code, r.stderr)
	}
	for range 2 {
		if r := w.run(harness, "workspace", "remove", "~/src/my project"); r.code != 0 {
			t.Fatalf("status %d: %s", r.code, r.stderr)
		}
	}
	w.install()
	if r := w.shell("claude", "true"); r.code != 2 {
		t.Errorf("status %d once it is no workspace any more", r.code)
	}
}
