package sdktest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/research-harness/harness/sdk"
	frontendv1 "github.com/research-harness/harness/sdk/proto/frontend/v1"
	"github.com/research-harness/harness/sdk/sdktest"
)

// recorder is a test that keeps its errors.
type recorder struct {
	*testing.T
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// record runs f with a test that keeps its errors.
func record(t *testing.T, f func(sdktest.T)) string {
	t.Helper()
	r := &recorder{T: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return strings.Join(r.errors, "\n")
}

func answer(req sdk.Request) sdk.Contribution {
	dir := req.Env["CROW_HOME"]
	if dir == "" || dir[0] != '/' {
		dir = "~/.crow"
	}
	return sdk.Contribution{
		Name: "crow", Command: "crow", Title: "Crow", Env: []string{"CROW_HOME"},
		State: []sdk.Path{{Path: strings.TrimSuffix(dir, "/"), Kind: sdk.Dir}},
	}
}

func TestRun_names_the_rule_that_a_frontend_breaks(t *testing.T) {
	calls := 0
	for _, tt := range []struct {
		want     string // empty for a frontend that keeps every rule
		frontend func(context.Context, sdk.Request) (sdk.Contribution, error)
	}{
		{"", func(_ context.Context, r sdk.Request) (sdk.Contribution, error) { return answer(r), nil }},
		{"", func(_ context.Context, r sdk.Request) (sdk.Contribution, error) {
			if r.Env["CROW_HOME"] == "relative" {
				return sdk.Contribution{}, errors.New("CROW_HOME is relative")
			}
			return answer(r), nil
		}},
		{"gives an answer: no mac", func(_ context.Context, r sdk.Request) (sdk.Contribution, error) {
			if r.OS == "darwin" {
				return sdk.Contribution{}, errors.New("no mac")
			}
			return answer(r), nil
		}},
		{"gives an answer: panic: boom", func(context.Context, sdk.Request) (sdk.Contribution, error) { panic("boom") }},
		{`title: "" is empty; give one line of text`, func(_ context.Context, r sdk.Request) (sdk.Contribution, error) {
			c := answer(r)
			c.Title = ""
			return c, nil
		}},
		{"gives the same answer twice", func(_ context.Context, r sdk.Request) (sdk.Contribution, error) {
			calls++
			c := answer(r)
			c.Title = fmt.Sprint(calls)
			return c, nil
		}},
		{"writes nothing: it wrote ~/.crow", func(_ context.Context, r sdk.Request) (sdk.Contribution, error) {
			os.Mkdir(r.Home+"/.crow", 0o700)
			return answer(r), nil
		}},
		{"has one name, command and list of variables: they change on darwin/arm64", func(_ context.Context, r sdk.Request) (sdk.Contribution, error) {
			c := answer(r)
			if r.OS == "darwin" {
				c.Command = "crow-mac"
			}
			return c, nil
		}},
		{"is absolute and follows from no variable", func(_ context.Context, r sdk.Request) (sdk.Contribution, error) {
			c := answer(r)
			if r.Env["CROW_HOME"] != "" {
				c.State[0].Path = "/elsewhere"
			}
			return c, nil
		}},
		{"gives a small answer", func(_ context.Context, r sdk.Request) (sdk.Contribution, error) {
			c := answer(r)
			c.Overrides = []sdk.Override{{Name: "crow-big.json", Content: []byte(`"` + strings.Repeat("x", sdktest.MaxAnswer) + `"`)}}
			return c, nil
		}},
	} {
		name := tt.want
		if name == "" {
			name = "none"
		}
		t.Run(name, func(t *testing.T) {
			got := record(t, func(r sdktest.T) { sdktest.Run(r, sdk.Func(tt.frontend)) })
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("findings are %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCheck_gives_up_on_a_frontend_that_hangs(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		defer close(ended)
		findings := sdktest.Check(t.Context(), sdk.Func(func(context.Context, sdk.Request) (sdk.Contribution, error) {
			<-ended
			return sdk.Contribution{}, nil
		}), home)
		if len(findings) == 0 || findings[0].Rule != "gives an answer" || !strings.Contains(findings[0].Message, "no answer within 10s") || findings[0].Fix == "" {
			t.Errorf("findings are %q", findings)
		}
	})
}

// strict is a connection to a plugin that refuses fields it does not know.
type strict struct{ grpc.ClientConnInterface }

func (s strict) Invoke(_ context.Context, _ string, req, resp any, _ ...grpc.CallOption) error {
	if len(req.(proto.Message).ProtoReflect().GetUnknown()) > 0 {
		return errors.New("unknown field")
	}
	proto.Merge(resp.(proto.Message), &frontendv1.DescribeResponse{
		Name: "crow", Command: "crow", Title: "Crow", State: []*frontendv1.Path{{Path: "~/.crow", Kind: frontendv1.Kind_KIND_DIR}},
	})
	return nil
}

func TestCheckConn_names_a_plugin_that_refuses_unknown_fields(t *testing.T) {
	findings := sdktest.CheckConn(t.Context(), strict{}, t.TempDir())
	if len(findings) != 1 || findings[0].Rule != "ignores fields that it does not know" || findings[0].Fix == "" {
		t.Errorf("findings are %q", findings)
	}
}

func TestRunExecutable_names_the_rule_that_a_plugin_breaks(t *testing.T) {
	plugin := filepath.Join(t.TempDir(), "plugin")
	if out, err := exec.Command("go", "build", "-o", plugin, "./testdata/harness-frontend-crow").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, tt := range []struct{ mode, file, want string }{
		{"works", "harness-frontend-crow", ""},
		{"works", "harness-frontend-raven", "is called harness-frontend-<name>"},
		{"exits", "harness-frontend-crow", "does the handshake"},
		{"leaves a child", "harness-frontend-crow", "leaves no process behind"},
		{"writes", "harness-frontend-crow", "writes nothing: it wrote ~/.crow"},
	} {
		t.Run(tt.mode+", "+tt.file, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), tt.mode, tt.file)
			if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Link(plugin, file); err != nil {
				t.Fatal(err)
			}
			got := record(t, func(r sdktest.T) { sdktest.RunExecutable(r, file) })
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("findings are %q, want %q", got, tt.want)
			}
		})
	}
}
