package front

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/research-harness/harness/host/internal/exit"
	"github.com/research-harness/harness/host/internal/scope"
	"github.com/research-harness/harness/host/internal/system"
)

// TestMain makes the test program the harness where a sandbox on a terminal
// starts it as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == scope.InnerVerb {
		os.Exit(Main(system.Host(), os.Args[1:]))
	}
	os.Exit(m.Run())
}

func TestParseExec(t *testing.T) {
	full := ExecOptions{ScopeOptions: ScopeOptions{Workspace: "/w", Source: "s", Profile: "p"}, JSON: true, Timeout: 90 * time.Second}
	for _, tt := range []struct {
		rule, args string
		want       ExecOptions
		command    string // empty: the host reads the arguments
	}{
		{"a command alone", "true", ExecOptions{}, "true"},
		{"all flags, glued", "--json --workspace=/w --source=s --profile=p --timeout=1m30s -- a -b", full, "a -b"},
		{"all flags, apart", "--workspace /w --source s --profile p --timeout 90s --json a -b", full, "a -b"},
		{"what follows the command is the command's", "a --json -- b", ExecOptions{}, "a --json -- b"},
		{"a flag's value may look like a flag", "--workspace --json -- a", ExecOptions{ScopeOptions: ScopeOptions{Workspace: "--json"}}, "a"},
		{"no command", "--json --", ExecOptions{}, ""},
		{"nothing", "", ExecOptions{}, ""},
		{"help", "--help", ExecOptions{}, ""},
		{"a flag that does not exist", "--nope x -- a", ExecOptions{}, ""},
		{"a flag without its value", "--timeout", ExecOptions{}, ""},
		{"a value that is none", "--timeout=soon a", ExecOptions{}, ""},
		{"a switch with a value", "--json=false a", ExecOptions{}, ""},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			o, command, ok := parseExec(strings.Fields(tt.args))
			if ok != (tt.command != "") {
				t.Fatalf("ok = %v", ok)
			}
			if ok && (o != tt.want || !slices.Equal(command, strings.Fields(tt.command))) {
				t.Errorf("parseExec = %+v, %q", o, command)
			}
		})
	}
}

func TestTimeoutIsSaid(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("there is no bubblewrap")
	}
	home := t.TempDir()
	dir := home + "/ws"
	var stderr bytes.Buffer
	s := system.Host()
	s.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin"}
	s.Dir, s.Stdin, s.Stderr = dir, nil, &stderr
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	err := Exec(s, ExecOptions{Timeout: 200 * time.Millisecond}, []string{"sleep", "1000"})
	if !errors.Is(err, exit.Status(scope.StatusTimeout)) {
		t.Errorf("Exec = %v", err)
	}
	if want := "harness: timed out after 200ms"; !strings.HasPrefix(stderr.String(), want) || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("standard error %q, want one line that begins %q", stderr.String(), want)
	}
}

func TestHomeMustExist(t *testing.T) {
	for rule, tt := range map[string]struct{ env, want string }{
		"no HOME":                    {"", "HOME: is not set"},
		"a HOME that is not there":   {"HOME=/nonexistent/home", "no such file"},
		"a HOME that is no path":     {"HOME=home", "is not an absolute path"},
		"the root directory as HOME": {"HOME=/", "is the root directory"},
	} {
		t.Run(rule, func(t *testing.T) {
			s := system.Host()
			s.Dir, s.Env = t.TempDir(), []string{"PATH=/usr/bin:/bin", tt.env}
			err := Exec(s, ExecOptions{}, []string{"touch", "made"})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Exec = %v, want %q", err, tt.want)
			}
			if _, err := os.Stat(s.Dir + "/made"); err == nil {
				t.Error("the command ran")
			}
		})
	}
}

// What the embedded template names as a credential cannot be read, in a cache
// or elsewhere.
func TestCredentialsAreHidden(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("there is no bubblewrap")
	}
	home := t.TempDir()
	files := []string{
		".cache/huggingface/token", ".npmrc", ".cargo/credentials.toml", ".ssh/id_ed25519", ".aws/credentials", ".netrc", ".git-credentials",
		".docker/config.json", ".config/gh/hosts.yml", ".pypirc", ".kube/config",
	}
	var script strings.Builder
	for _, f := range files {
		path := filepath.Join(home, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("secret of "+f+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		script.WriteString("cat ~/" + f + "; ")
	}
	var stdout bytes.Buffer
	s := system.Host()
	s.Env, s.Dir = []string{"HOME=" + home, "PATH=/usr/bin:/bin"}, home+"/ws"
	s.Stdin, s.Stdout, s.Stderr = nil, &stdout, io.Discard
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Exec(s, ExecOptions{}, []string{"sh", "-c", script.String() + "echo end"}); err != nil {
		t.Error(err)
	}
	if got := stdout.String(); got != "end\n" {
		t.Errorf("the command read %q", got)
	}
}
