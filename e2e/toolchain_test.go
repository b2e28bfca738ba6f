package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestClaudeCodeBuildsGo has Claude Code make a Go module and build it, and
// build it again in another session. Nobody has to say where caches are.
func TestClaudeCodeBuildsGo(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Fatal(err)
	}
	a := agents["Claude Code"]
	w := newAgentWorld(t, a,
		"go mod init example.com/hello",
		`printf 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("it runs") }\n' > main.go`,
		"go vet ./... && go build -o hello . && ./hello",
		"cd $(mktemp -d) && pwd",
	)
	w.env["GOTOOLCHAIN"] = "local"
	r := w.agentbox(append([]string{"claude"}, a.print...)...)
	if r.code != 0 || !strings.Contains(r.stdout, "it runs") {
		t.Fatalf("status %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if out, err := exec.Command(filepath.Join(w.work, "hello")).CombinedOutput(); string(out) != "it runs\n" {
		t.Errorf("the program on the disk: %v: %s", err, out)
	}

	// -x prints every command that go runs.
	w.play(a, "touch main.go && go build -x -o hello . && echo built", "go env GOCACHE")
	r = w.agentbox(append([]string{"claude"}, a.print...)...)
	if !strings.Contains(r.stdout, "built") || strings.Contains(r.stdout, "/compile ") {
		t.Errorf("the second build is not warm, status %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if !strings.Contains(r.stdout, w.in(".cache", "go-build")) {
		t.Errorf("the build cache is elsewhere: %s", r.stdout)
	}

	transcripts, err := filepath.Glob(w.in(a.state))
	w.must(err)
	if len(transcripts) != 2 {
		t.Fatalf("%d transcripts", len(transcripts))
	}
	for _, file := range transcripts {
		for _, workaround := range []string{"GOCACHE=", "GOTMPDIR", "Read-only file system", "permission denied"} {
			if strings.Contains(w.read(file), workaround) {
				t.Errorf("%s tells of %s", file, workaround)
			}
		}
	}
}
