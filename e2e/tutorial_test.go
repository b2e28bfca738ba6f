package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTutorial does what the tutorial of frontends says, command for command:
// its shell blocks are run one after the other in one place, and each line of
// a text block must be in what the block before printed.
func TestTutorial(t *testing.T) {
	data, err := os.ReadFile("../docs/frontend-tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.stub("codex", `echo codex-cli 0.171.0 "$@"`)
	w.install() // as make install does
	w.env["PATH"] = w.in(".local", "bin") + ":" + w.env["PATH"]
	w.env["HARNESS_SOURCE"], err = filepath.Abs("..")
	w.must(err)
	w.env["REGISTRY"] = w.registry() + "/you"
	// Go keeps its caches.
	goenv, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	w.must(err)
	dirs := lines(string(goenv))
	w.write(w.in(".config", "go", "env"), "GOCACHE="+dirs[0]+"\nGOMODCACHE="+dirs[1]+"\nGOWORK=off\n")

	dir, output := w.work, ""
	blocks := regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$").FindAllStringSubmatch(string(data), -1)
	for _, block := range blocks {
		switch lang, text := block[1], block[2]; lang {
		case "sh":
			r := w.run("bash", "-c", "cd \"$1\" && set -e\n"+text+"pwd >\"$2\"", "sh", dir, filepath.Join(w.root, "pwd"))
			output = r.stdout + r.stderr
			if r.code != 0 {
				t.Fatalf("status %d of\n%s\n%s", r.code, text, output)
			}
			dir = strings.TrimSuffix(w.read(filepath.Join(w.root, "pwd")), "\n")
		case "text":
			for _, line := range lines(text) {
				if !strings.Contains(output, line) {
					t.Errorf("the tutorial says %q, the output is\n%s", line, output)
				}
			}
		case "go":
			if example := w.read("../examples/codex/frontend.go"); example != text {
				t.Error("the tutorial's frontend.go is not that of examples/codex")
			}
			w.write(filepath.Join(dir, "frontend.go"), text)
		case "toml":
			w.write(w.in(".config", "research-harness", "profile.toml"), text)
		default:
			t.Errorf("what is a block of %s?", lang)
		}
	}
}

// registry starts an OCI registry and returns its address.
func (w *world) registry() string {
	w.t.Helper()
	file := filepath.Join(w.root, "registry")
	out, err := exec.Command("go", "build", "-o", file, "github.com/research-harness/harness/host/internal/oci/ocitest/registry").CombinedOutput()
	if err != nil {
		w.t.Fatalf("%v\n%s", err, out)
	}
	cmd := w.command(file)
	stdin, err := cmd.StdinPipe()
	w.must(err)
	stdout, err := cmd.StdoutPipe()
	w.must(err)
	w.must(cmd.Start())
	w.t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	w.must(err)
	return strings.TrimSpace(addr)
}

// TestExamplePython builds the example in Python and takes it to the launcher.
func TestExamplePython(t *testing.T) {
	for _, needed := range [][]string{{"/usr/bin/python3", "-c", "import grpc, google.protobuf"}, {"protoc", "--version"}, {"make", "--version"}} {
		if err := exec.Command(needed[0], needed[1:]...).Run(); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%q: %v", needed, err)
			}
			t.Skipf("%q: %v", needed, err)
		}
	}
	w := newWorld(t)
	w.stub("crush", `echo crush "$@"`)
	w.install()
	w.env["PATH"] = w.in(".local", "bin") + ":" + w.env["PATH"]
	source, err := filepath.Abs("..")
	w.must(err)
	w.write(w.in(".config", "research-harness", "profile.toml"), "[setup]\nfrontends = [\"crush\"]\n")
	r := w.run("bash", "-ec", `
		mkdir -p examples sdk/proto/frontend
		cp -r "$1/examples/crush-python" examples/
		cp -r "$1/sdk/proto/frontend/v1" sdk/proto/frontend/
		cd examples/crush-python
		make PYTHON=/usr/bin/python3 test
		harness frontend add ./harness-frontend-crush
		harness frontend trust crush --yes
		harness install --apply
		agentbox crush hello
		agentbox --help | grep Crush
		(agentbox nothing || true) 2>&1 | grep crush
		harness frontend remove crush
		sed -i 's/"crush"//' "$HOME/.config/research-harness/profile.toml"
		harness install --apply
		! find "$HOME/.config/research-harness" "$HOME/.local/libexec" -name '*crush*' | grep .`, "sh", source)
	if r.code != 0 || !strings.Contains(r.stdout, "\ncrush --yolo hello\n") {
		t.Fatalf("status %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
