package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/research-harness/harness/host/internal/scope"
	"github.com/research-harness/harness/host/internal/system"
)

// checkScope is a workspace in a home that lies outside the temporary
// directory, as the names in the tables are spelled.
func checkScope(t testing.TB) (*scope.Scope, *system.System) {
	t.Helper()
	sc := &scope.Scope{
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
		r, err := Check(sc, s, command)
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

// A command that nests without end took the checker's stack, memory or hours.
func TestCheckEndsSoon(t *testing.T) {
	sc, s := checkScope(t)
	const room = maxCommand - 100
	for _, tt := range []struct{ open, inner, close string }{
		{"(", "a", ")"},
		{"( ", "a", " )"},
		{"$(", "a", ")"},
		{"\"$(", "a", ")\""},
		{"$((", "1", "))"},
		{"{ ", "a;", "};"},
		{"{a,", "b", "}"},
		{"${a:-", "b", "}"},
		{"<(", "a", ")"},
		{"[[ (", "a", ") ]]"},
		{"$(mktemp ", "a", ")"},
		{"if ", "a", ";then a;fi"},
		{"while ", "a", ";do a;done"},
		{"for i in 1 2 3 4 5 6 7 8;do ", "a", ";done"},
		{"case a in a) ", "a", ";;esac"},
		{"f() ", "{ a;}", ""},
		{"a|", "a", ""},
		{"a||", "a", ""},
		{"eval ", "a", ""},
		{"(a=b);", "a", ""},
	} {
		depth := room / (len(tt.open) + len(tt.close))
		for _, command := range []string{
			strings.Repeat(tt.open, room/len(tt.open)) + tt.inner,
			strings.Repeat(tt.open, depth) + tt.inner + strings.Repeat(tt.close, depth),
			strings.Repeat(tt.open, 400) + tt.inner + strings.Repeat(tt.close, 400),
		} {
			start := time.Now()
			_, err := Check(sc, s, command)
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("%.40s… took %v (%v)", command, took, err)
			}
		}
	}
}

func TestPermissionsPageHoldsTheReasons(t *testing.T) {
	page, err := os.ReadFile("../../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{outside, leaves} {
		if !strings.Contains(string(page), reason) {
			t.Errorf("the page does not hold %q", reason)
		}
	}
}
