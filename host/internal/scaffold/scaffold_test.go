package scaffold_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/internal/plugin"
	"github.com/research-harness/harness/host/internal/scaffold"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/sdk"
)

// create writes a plugin and returns its directory and the world.
func create(t *testing.T, o scaffold.Options) (string, *system.System) {
	t.Helper()
	dir := t.TempDir()
	s := system.Host()
	s.Dir, s.Exe = dir, filepath.Join(dir, "bin", "harness")
	got, err := scaffold.New(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return got, s
}

// run runs a command in dir.
func run(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

// conforms runs a built plugin through the conformance kit.
func conforms(t *testing.T, s *system.System, file string) {
	t.Helper()
	h := plugin.New(s, t.TempDir(), nil)
	f, err := h.At(file)
	if err != nil {
		t.Fatal(err)
	}
	findings, err := h.Test(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range findings {
		t.Error(finding)
	}
}

func sdkDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../sdk")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestNew_go_builds_and_passes_its_tests_as_it_is(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module")
	}
	dir, s := create(t, scaffold.Options{Name: "blue-heron", Lang: "go", SDK: sdkDir(t)})
	if dir != filepath.Join(s.Dir, "harness-frontend-blue-heron") {
		t.Errorf("directory is %s", dir)
	}
	if out, err := exec.Command("gofmt", "-l", dir).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("gofmt: %v, %s", err, out)
	}
	run(t, dir, "go", "vet", "./...")
	run(t, dir, "go", "test", "./...")
	run(t, dir, "go", "build", "-o", "harness-frontend-blue-heron", ".")
	conforms(t, s, filepath.Join(dir, "harness-frontend-blue-heron"))
}

// Without --sdk the module requires the SDK's released version. The release is
// one of this test's, beside the modules that this machine has already.
func TestNew_go_with_a_released_SDK(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module")
	}
	goenv, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOPROXY", "file://"+release(t)+",file://"+strings.TrimSpace(string(goenv))+"/cache/download")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw -trimpath")
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("CGO_ENABLED", "0")
	dir, s := create(t, scaffold.Options{Name: "heron", Lang: "go"})
	run(t, dir, "go", "build", "-o", "harness-frontend-heron", ".")
	conforms(t, s, filepath.Join(dir, "harness-frontend-heron"))
}

// release makes a module proxy that has this SDK as its version and returns
// its directory.
func release(t *testing.T) string {
	t.Helper()
	const module = "github.com/research-harness/harness/sdk"
	proxy := t.TempDir()
	dir := filepath.Join(proxy, module, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	root := os.DirFS(sdkDir(t))
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		w, err := z.Create(module + "@v" + sdk.Version + "/" + path)
		if err != nil {
			return err
		}
		data, err := fs.ReadFile(root, path)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	mod, err := fs.ReadFile(root, "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for ext, data := range map[string][]byte{
		".info": fmt.Appendf(nil, `{"Version": "v%s"}`, sdk.Version), ".mod": mod, ".zip": b.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, "v"+sdk.Version+ext), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return proxy
}

func TestNew_leaves_nothing_when_it_fails(t *testing.T) {
	dir := t.TempDir()
	s := system.Host()
	s.Dir = dir
	s.Env = append(s.Env, "GOFLAGS=-nonsense")
	if _, err := scaffold.New(t.Context(), s, scaffold.Options{Name: "crow", Lang: "go", SDK: sdkDir(t)}); err == nil {
		t.Fatal("no error")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// needPython skips a test where Debian's Python cannot serve gRPC.
func needPython(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs Python")
	}
	err := exec.Command("/usr/bin/python3", "-c", "import grpc, google.protobuf").Run()
	if err == nil {
		err = exec.Command("protoc", "--version").Run()
	}
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("install python3-grpcio and protobuf-compiler: %v", err)
	}
	t.Skipf("python3-grpcio and protobuf-compiler are not installed: %v", err)
}

func TestNew_python_builds_and_passes_its_tests_as_it_is(t *testing.T) {
	needPython(t)
	dir, s := create(t, scaffold.Options{Name: "heron", Lang: "python"})
	run(t, dir, "make", "PYTHON=/usr/bin/python3")
	run(t, dir, "make", "PYTHON=/usr/bin/python3", "HARNESS=true", "test")
	conforms(t, s, filepath.Join(dir, "harness-frontend-heron"))
}

// A plugin that was built from another state of the protocol works: fields
// that one side does not know are ignored, those that are missing are empty.
func TestNew_python_with_another_proto(t *testing.T) {
	needPython(t)
	edit := func(t *testing.T, file string, oldNew ...string) {
		t.Helper()
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		for i := 0; i < len(oldNew); i += 2 {
			if !strings.Contains(text, oldNew[i]) {
				t.Fatalf("%s does not hold %q", file, oldNew[i])
			}
			text = strings.ReplaceAll(text, oldNew[i], oldNew[i+1])
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		age                   string
		proto, frontendPython []string
	}{
		{
			"older",
			[]string{
				"repeated string deny_write = 8;", "", "repeated Path ensure = 9;", "", "repeated Arg args = 10;", "",
				"repeated Override overrides = 11;", "", "repeated RefusedArg refused_args = 12;", "",
				"string tested_versions = 13;", "", "string settings_file = 14;", "",
				"string harness_version = 4;", "", "bytes content = 3;", "",
			},
			[]string{
				"        deny_write=[settings],\n", "",
				"        ensure=[Path(path=settings, kind=KIND_FILE, content=b\"{}\\n\")],\n", "",
			},
		},
		{
			"newer",
			[]string{
				"string settings_file = 14;", "string settings_file = 14;\n  message Icon { bytes png = 1; }\n  Icon icon = 15;",
				"bytes content = 3;", "bytes content = 3;\n  int32 mode = 4;",
				"map<string, string> env = 5;", "map<string, string> env = 5;\n  repeated string features = 6;",
			},
			[]string{
				"title=", "icon=DescribeResponse.Icon(png=b\"png\"),\n        title=",
				"kind=KIND_DIR", "kind=KIND_DIR, mode=0o700",
				"directory = os.path", "assert not request.features\n    directory = os.path",
			},
		},
	} {
		t.Run(tt.age, func(t *testing.T) {
			dir, s := create(t, scaffold.Options{Name: "heron", Lang: "python"})
			edit(t, filepath.Join(dir, "frontend.proto"), tt.proto...)
			edit(t, filepath.Join(dir, "app/frontend.py"), tt.frontendPython...)
			run(t, dir, "make", "PYTHON=/usr/bin/python3")
			conforms(t, s, filepath.Join(dir, "harness-frontend-heron"))
		})
	}
}
