package scope

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/internal/system"
)

// checkScope is a workspace in a home that lies outside the temporary
// directory, as the names in the tables are spelled.
func checkScope(t testing.TB) (*Scope, *system.System) {
	t.Helper()
	sc := &Scope{
		Workspace: "/home/me/Research/x", Dir: "/home/me/Research/x", Home: "/home/me",
		Writable: []string{"/tmp", "/home/me/.cache", "/home/me/go/pkg", "/home/me/.npm", "/home/me/.cargo/registry"},
		Hidden:   []string{"/home/me/.cache/huggingface/token"},
	}
	return sc, &system.System{OS: "linux", Dir: sc.Dir, Env: []string{"HOME=/home/me", "PATH=/usr/local/bin:/usr/bin:/bin", "SHELL=/bin/bash"}}
}

func TestCheckTable(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "check.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sc, s := checkScope(t)
	cases := 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		fields := strings.SplitN(line, "\t", 3)
		if len(fields) != 3 {
			t.Fatalf("no table line: %q", line)
		}
		cases++
		verdict, token := fields[0], strings.ReplaceAll(fields[1], "HOME", sc.Home)
		command := strings.ReplaceAll(fields[2], "⏎", "\n")
		r, err := sc.Check(s, command)
		if err != nil {
			t.Errorf("%s\n\t%v", command, err)
			continue
		}
		var tokens []string
		for _, v := range r.Violations {
			tokens = append(tokens, v.Token)
		}
		switch {
		case verdict == "ok" && (!r.OK || len(r.Unknown) > 0),
			verdict == "ask" && (!r.OK || len(r.Unknown) == 0),
			verdict == "bad" && strings.Join(tokens, ",") != token:
			t.Errorf("%s\n\twant %s %s\n\tviolations %v\n\tunknown %v", command, verdict, token, r.Violations, r.Unknown)
		}
	}
	if cases < 150 {
		t.Errorf("the table has %d commands, want at least 150", cases)
	}
}
