package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/sdk"
)

// Words tells in plain words what a frontend asks for, a line each.
func (f Frontend) Words() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, problem.OneLine(fmt.Sprintf(format, args...))) }

	say("%s, which you start with: agentbox %s", f.Title, f.Command)
	for _, p := range f.State {
		say("reads and writes %s", spell(p))
	}
	for _, p := range f.Own {
		say("is exempt from the shared policy's deny of %s", p)
	}
	for _, p := range f.Ensure {
		say("has created, where it is missing, %s", spell(p))
	}
	for _, p := range f.DenyWrite {
		say("cannot write %s", p)
	}
	if f.SettingsFile != "" {
		say("gets the settings template merged into %s", f.SettingsFile)
	}
	for _, o := range f.Overrides {
		say("has the file %s written with %s", o.Name, content(o.Content))
	}
	for _, a := range f.Args {
		what := fmt.Sprintf("%q", a.Literal)
		if a.Override != "" {
			what = "the path of " + a.Override
		}
		if a.Versions != "" {
			what += ", in versions " + a.Versions
		}
		say("is started with the argument %s", what)
	}
	for _, r := range f.RefusedArgs {
		say("refuses the argument %q: %s", r.Arg, r.Reason)
	}
	if len(f.Env) > 0 {
		say("depends on the variables %s", strings.Join(f.Env, ", "))
	}
	if f.TestedVersions != "" {
		say("was tested with versions %s", f.TestedVersions)
	}
	return out
}

func spell(p sdk.Path) string {
	what := "the file " + p.Path
	if p.Kind == sdk.Dir {
		what = "the directory " + p.Path
	}
	if len(p.Content) > 0 {
		what += ", which starts as " + content(p.Content)
	}
	return what
}

// content shows a file's content on one line.
func content(b []byte) string {
	var compact bytes.Buffer
	if json.Compact(&compact, b) == nil {
		b = compact.Bytes()
	}
	return shorten(strings.TrimSpace(strings.ToValidUTF8(string(b), "\uFFFD")), 300)
}
