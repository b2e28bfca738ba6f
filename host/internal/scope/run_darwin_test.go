package scope

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// run runs a shell script in the scope and returns what became of it.
func (p *place) run(o Options, script string) *Result {
	p.t.Helper()
	if _, err := exec.LookPath("sandbox-exec"); err != nil {
		p.t.Skip("there is no sandbox-exec")
	}
	s := p.system()
	r, err := p.scope(s, o).Capture(s, []string{"sh", "-c", script}, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func TestWorkspaceScope_GoBuildCacheWritable(t *testing.T) {
	p := newPlace(t)
	p.mkdir(p.home + "/Library/Caches")
	p.write(p.ws+"/go.mod", "module example.com/x\n\ngo 1.21\n")
	p.write(p.ws+"/x.go", "package x\n")
	p.write(p.ws+"/x_test.go", "package x\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n")
	for range 2 {
		r := p.run(Options{}, "go env GOCACHE && go build ./... && go test ./...")
		if r.ExitCode != 0 || !strings.HasPrefix(r.Stdout, p.home+"/Library/Caches/go-build\n") {
			t.Fatalf("status %d\n%s%s", r.ExitCode, r.Stdout, r.Stderr)
		}
	}
	entries, err := os.ReadDir(p.ws)
	if err != nil || len(entries) != 3 {
		t.Errorf("the project holds %v, %v", entries, err)
	}
}

func TestWorkspaceScope_MktempWorks(t *testing.T) {
	if r := newPlace(t).run(Options{}, `rmdir "$(mktemp -d /tmp/scope.XXXXXX)"`); r.ExitCode != 0 {
		t.Errorf("status %d: %s", r.ExitCode, r.Stderr)
	}
}

func TestWorkspaceScope_Rules(t *testing.T) {
	p := newPlace(t)
	p.write(p.home+"/.bashrc", "old")
	p.write(p.home+"/.aws/credentials", "secret")
	p.write(p.ws+"/tools/harness", "#!")
	short, err := os.MkdirTemp("/tmp", "scope") // a socket's path may not be long
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	l, err := net.Listen("unix", short+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := Options{DenyRead: []string{p.home + "/.aws"}, Protect: []string{p.ws + "/tools/harness"}}
	for _, tt := range []struct {
		rule, script string
		ok           bool
	}{
		{"the workspace is writable", "echo x > new", true},
		{"home is not", "touch ~/x", false},
		{"nor start-up files", "echo x >> ~/.bashrc", false},
		{"nor a protected file in the workspace", "echo x > tools/harness", false},
		{"nor by moving its directory aside", "mv tools t2", false},
		{"home can be read", "cat ~/.bashrc", true},
		{"a credential cannot", "cat ~/.aws/credentials", false},
		{"names can be looked up", "dscacheutil -q host -a name localhost", true},
		{"a server on a UNIX socket cannot be reached", "nc -U " + short + "/s < /dev/null", false},
		{"no program outside can be opened", "open -a Calculator", false},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			if r := p.run(o, tt.script); (r.ExitCode == 0) != tt.ok {
				t.Errorf("%s: status %d\n%s%s", tt.script, r.ExitCode, r.Stdout, r.Stderr)
			}
		})
	}
}
