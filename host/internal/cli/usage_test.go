package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/research-harness/harness/host/internal/audit"
	"github.com/research-harness/harness/host/internal/system"
)

// TestMisuse holds that a wrong word, number of words or flag is one line that
// says what is right, and one that says what to type.
func TestMisuse(t *testing.T) {
	for _, tc := range []struct{ args, line, hint string }{
		{"instal", "instal: is no verb of harness", "did you mean: harness install"},
		{"inst", "inst: is no verb of harness", "did you mean: harness install"},
		{"fly", "fly: is no verb of harness", "the verbs are check, "},
		{"help instal", "instal: is no verb of harness", "did you mean: harness install"},
		{"frontend shw", "shw: is no verb of harness frontend", "did you mean: harness frontend show"},
		{"render", "render: takes FRONTEND", "harness render claude"},
		{"explain", "explain: takes FRONTEND [(read|write|host) TARGET]", "harness explain claude write ~/.bashrc"},
		{"explain claude read", "explain: takes FRONTEND [(read|write|host) TARGET], not claude read", "harness explain claude write ~/.bashrc"},
		{"frontend show", "frontend show: takes NAME", "harness frontend show claude"},
		{"frontend trust a b", "frontend trust: takes NAME, not a b", "harness frontend trust crow"},
		{"frontend new", "frontend new: takes NAME", "harness frontend new crow"},
		{"frontend push", "frontend push: takes oci://", "harness frontend push oci://"},
		{"exec", "exec: takes -- COMMAND [ARG...]", "harness exec -- go test ./..."},
		{"completion tcsh", "completion: takes bash|zsh|fish, not tcsh", "harness completion bash "},
		{"install claude", "install: takes no argument, not claude", "harness install --help"},
		{"install a\x1bb", `install: takes no argument, not a\x1bb`, "harness install --help"},
		{"install --aply", "install: unknown flag: --aply", "did you mean --apply?"},
		{"install --apply=perhaps", `install: --apply takes a bool, not "perhaps"`, "harness install --help"},
		{"doctor --zzzzzz", "doctor: unknown flag: --zzzzzz", "harness doctor --help"},
		{"frontend new claude", "claude: is taken by Claude Code", "choose another name"},
		{"frontend new agy", "agy: is taken by Antigravity", "choose another name"},
		{"frontend new index", "index: is taken by the launcher's own list", "choose another name"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			s := &system.System{
				OS: "linux", Arch: "amd64", Env: []string{"HOME=" + t.TempDir()}, Dir: "/", Exe: "/nowhere/bin/harness",
				Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Now: time.Now,
			}
			status := Main(s, strings.Fields(tc.args))
			lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
			if status != 2 || stdout.Len() > 0 || len(lines) != 2 ||
				!strings.HasPrefix(lines[0], "harness: "+tc.line) || !strings.HasPrefix(lines[1], "hint: "+tc.hint) {
				t.Errorf("status %d, printed %q and\n%s", status, stdout.String(), stderr.String())
			}
		})
	}
}

// TestEveryVerbChecksItsArguments finds the verb that was added without.
func TestEveryVerbChecksItsArguments(t *testing.T) {
	root := newRoot(&system.System{Stdin: strings.NewReader(""), Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer)})
	all := root.Commands()
	for len(all) > 0 {
		cmd := all[0]
		all = append(all[1:], cmd.Commands()...)
		if cmd.Name() != "help" && cmd.Name() != "verify" && cmd.Name() != "check" && cmd.Args == nil {
			t.Errorf("%s takes anything", cmd.CommandPath())
		}
	}
}

// TestFindings prints what holds for several frontends once.
func TestPrintFindings(t *testing.T) {
	finding := func(id, frontend, message string) audit.Finding {
		return audit.Finding{ID: id, Frontend: frontend, Severity: audit.Warning, Message: message, Fix: "mend it"}
	}
	var out bytes.Buffer
	printFindings(&out, []audit.Finding{
		finding("domain-dead", "one", "x"), finding("state-link", "one", "y"), finding("domain-dead", "two", "x"), finding("path", "", "a\x1bb"),
	})
	want := "warning domain-dead one, two: x\n        mend it\n" +
		"warning state-link one: y\n        mend it\n" +
		"warning path: a\\x1bb\n        mend it\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	for _, tc := range []struct {
		severities []audit.Severity
		want       string
	}{
		{nil, "found nothing to mend"},
		{[]audit.Severity{audit.Note}, "found nothing to mend"},
		{[]audit.Severity{audit.Note, audit.Warning}, "found 1 fault"},
		{[]audit.Severity{audit.Error, audit.Warning}, "found 2 faults"},
	} {
		var found []audit.Finding
		for s := range slices.Values(tc.severities) {
			found = append(found, audit.Finding{Severity: s})
		}
		if got := toMend(found); got != tc.want {
			t.Errorf("%v: %q", tc.severities, got)
		}
	}
}
