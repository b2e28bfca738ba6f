package e2e

import (
	"os"
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

// TestToolchains builds and installs in one session, and once more in another,
// which has to find everything in the caches. Nobody says where they are.
func TestToolchains(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	npm := quote(exe) + " " + probeArg + " npm dep-1.0.0.tgz"
	for name, tt := range map[string]struct {
		needs         string // a program, and how it is tried
		prepare       func(w *world)
		files         map[string]string
		first, second string
		want          string   // the second session prints
		cold          []string // and would print if it had found nothing
	}{
		"Go": {
			needs: "go version",
			files: map[string]string{
				"go.mod":      "module example.com/x\n\ngo 1.21\n",
				"main.go":     "package main\n\nfunc main() { println(x()) }\n\nfunc x() int { return 42 }\n",
				"x/x_test.go": "package x\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n",
			},
			first:  "go build ./... && go test ./...",
			second: "go build -x ./... 2>&1 && go test ./... && go run . 2>&1",
			want:   "(cached)",
			cold:   []string{"/compile "},
		},
		"Go, its caches elsewhere": {
			needs: "go version",
			prepare: func(w *world) {
				w.env["GOCACHE"] = filepath.Join(w.root, "go cache")
				w.env["GOPATH"] = w.in("go a") + ":" + w.in("go b")
				w.env["GOFLAGS"] = "-modcacherw"
				w.must(os.Mkdir(w.env["GOCACHE"], 0o755))
			},
			files: map[string]string{
				"go.mod":  "module example.com/x\n\ngo 1.21\n",
				"main.go": "package main\n\nfunc main() { println(42) }\n",
			},
			first:  `go build ./... && touch "$(go env GOMODCACHE)-x"`,
			second: `go build -x . 2>&1 && ls "$(go env GOMODCACHE)-x" && go run . 2>&1`,
			want:   "42",
			cold:   []string{"/compile "},
		},
		"npm": {
			needs: "npm --version",
			prepare: func(w *world) {
				w.must(os.Mkdir(w.in(".npm"), 0o755))
				w.write(w.in(".npmrc"), "//registry.example/:_authToken=secret\n") // hidden, which npm has to bear
			},
			files: map[string]string{
				"package.json":     `{"name": "x", "version": "1.0.0"}`,
				"dep/package.json": `{"name": "dep", "version": "1.0.0"}`,
				"dep/index.js":     "module.exports = 6 * 7\n",
			},
			first:  "npm pack --silent ./dep && " + npm + " install dep",
			second: "rm -r node_modules package-lock.json && " + npm + " install --offline dep && node -p 'require(\"dep\")'",
			want:   "42",
		},
		"pip": {
			needs: "/usr/bin/python3 -m ensurepip --version",
			files: map[string]string{"wheel.py": `import zipfile
with zipfile.ZipFile("dep-1.0-py3-none-any.whl", "w") as z:
    z.writestr("dep.py", "x = 6 * 7")
    z.writestr("dep-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: dep\nVersion: 1.0\n")
    z.writestr("dep-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("dep-1.0.dist-info/RECORD", "")
`},
			first:  "/usr/bin/python3 wheel.py && /usr/bin/python3 -m venv .venv && .venv/bin/pip install --no-index ./dep-1.0-py3-none-any.whl",
			second: ".venv/bin/pip cache dir && .venv/bin/python -c 'import dep; print(dep.x)'",
			want:   "/.cache/pip\n42",
		},
		"cargo": {
			needs:   "/usr/bin/cargo --version",
			prepare: func(w *world) { w.env["PATH"] = w.bin + ":/usr/bin:/bin" }, // Debian's, for rustup's looks into home
			files: map[string]string{
				"Cargo.toml":     "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\ndep = { path = \"dep\" }\n",
				"src/main.rs":    "fn main() { println!(\"{}\", dep::answer()) }\n",
				"dep/Cargo.toml": "[package]\nname = \"dep\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
				"dep/src/lib.rs": "pub fn answer() -> i32 { 6 * 7 }\n",
			},
			first:  "cargo run",
			second: "cargo run -v 2>&1",
			want:   "42",
			cold:   []string{"Compiling"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			needs := strings.Fields(tt.needs)
			if out, err := exec.Command(needs[0], needs[1:]...).CombinedOutput(); err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatalf("%s: %v: %s", tt.needs, err, out)
				}
				t.Skipf("%s: %v: %s", tt.needs, err, out)
			}
			w := newWorld(t)
			if tt.prepare != nil {
				tt.prepare(w)
			}
			w.install()
			for file, content := range tt.files {
				w.write(filepath.Join(w.work, file), content)
			}
			if r := w.shell("claude", tt.first); r.code != 0 {
				t.Fatalf("status %d:\n%s%s", r.code, r.stdout, r.stderr)
			}
			r := w.shell("claude", tt.second)
			if r.code != 0 || !strings.Contains(r.stdout, tt.want) {
				t.Errorf("status %d, want %q:\n%s%s", r.code, tt.want, r.stdout, r.stderr)
			}
			for _, cold := range tt.cold {
				if strings.Contains(r.stdout, cold) {
					t.Errorf("%q in the second session:\n%s", cold, r.stdout)
				}
			}
		})
	}
}
