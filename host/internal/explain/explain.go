// Package explain answers whether a frontend's session can read or write a path
// or reach a host, which entry decides, where that comes from, and what to
// change to turn the answer.
package explain

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/research-harness/harness/host/internal/access"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/srt"
)

// Entry is an entry of a policy with where it came from. Source is empty, and
// Line 0, where there is none to tell.
type Entry struct {
	Rule    string `json:"rule"`
	Entry   string `json:"entry"`
	Source  string `json:"source"`
	Line    int    `json:"line"`
	Element string `json:"element,omitempty"`
	// Inert says why srt makes nothing of the entry here.
	Inert string `json:"inert,omitempty"`
}

// Answer is the answer to one question.
type Answer struct {
	Frontend  string  `json:"frontend"`
	Operation string  `json:"operation"` // "read", "write" or "host"
	Target    string  `json:"target"`
	Allowed   bool    `json:"allowed"`
	Entry             // what decided
	Reason    string  `json:"reason"`
	Also      []Entry `json:"also"` // what else bears on the target
	// Change is what to change to turn the answer.
	Change string `json:"change"`
}

// Policy is a whole policy, every entry with its source.
type Policy struct {
	Frontend string  `json:"frontend"`
	Entries  []Entry `json:"entries"`
}

// World is what an answer depends on beside the policy.
type World struct {
	OS, Home string
	// Dir is the directory where the session would start, or empty.
	Dir string
	// Profile is the profile to change.
	Profile string
}

// Ask answers one question about p. The target of a read or a write is an
// absolute path, that of "host" a host with an optional port.
func Ask(w World, p *srt.Policy, operation, target string) (*Answer, error) {
	m := access.New(p, w.OS, w.Home)
	if w.Dir != "" && m.Read(w.Dir).Allowed {
		m = m.WithCwd(w.Dir)
	}
	a := &Answer{Frontend: p.Frontend, Operation: operation, Target: target, Also: []Entry{}}
	var v access.Verdict
	switch operation {
	case "read":
		v = m.Read(target)
	case "write":
		v = m.Write(target)
	case "host":
		v = m.Host(target)
	default:
		return nil, problem.New("", operation, "is none of read, write and host")
	}
	a.Allowed, a.Reason = v.Allowed, v.Reason
	a.Entry = newEntry(access.Touch{Rule: v.Rule, Entry: v.Entry})
	for _, t := range v.Touches {
		a.Also = append(a.Also, newEntry(t))
	}
	a.Change = w.change(p, operation, target, v)
	return a, nil
}

func newEntry(t access.Touch) Entry {
	at := t.Entry.Origin
	return Entry{Rule: t.Rule, Entry: t.Entry.Text, Source: at.Source, Line: at.Line, Element: at.Element, Inert: t.Inert}
}

// where is the source of an entry for people.
func (e Entry) where() string {
	return origin.Origin{Source: e.Source, Line: e.Line, Element: e.Element}.String()
}

// change is what turns the answer.
func (w World) change(p *srt.Policy, operation, target string, v access.Verdict) string {
	short := paths.Tilde(w.Home, target)
	add := func(key, file string) string { return fmt.Sprintf("add %q to %s", short, key+" "+file) }
	inTemplate := "of settings/settings.proposal.json" + inSourceDir
	switch {
	case strings.HasPrefix(v.Reason, "srt does not start"):
		return w.remove(v.Entry)
	case operation == "host" && v.Allowed:
		return add("[network] deny in", w.Profile)
	case operation == "host" && v.Rule == access.DeniedDomains:
		return w.remove(v.Entry)
	case operation == "host":
		return add("[network] allow in", w.Profile)
	case v.Allowed && operation == "write" && v.Rule == access.Default:
		return "nothing can: every session has it"
	case v.Allowed && operation == "write":
		return add("sandbox.filesystem.denyWrite", inTemplate) + ", or " + w.remove(v.Entry)
	case v.Allowed && v.Rule == access.Default:
		return add("sandbox.filesystem.denyRead", inTemplate)
	case v.Allowed, v.Rule == access.DenyWrite:
		return w.remove(v.Entry)
	case v.Rule == access.AllowRead:
		return w.remove(v.Entry) + ", and name in its place the paths below it that are to be read"
	case v.Rule == access.DenyRead && v.Entry.Text != w.Home:
		return w.remove(v.Entry)
	case operation == "read" && v.Rule == access.Default:
		return "nothing can: the session has its own"
	case operation == "read" && holdsWritePath(p, target):
		return fmt.Sprintf("add what is to be read below %q to [read] allow in sandbox/policy.toml%s", short, inSourceDir)
	case operation == "read":
		return add("[read] allow in", "sandbox/policy.toml"+inSourceDir)
	}
	for _, t := range v.Touches {
		switch {
		case t.Rule == access.AllowWrite && t.Inert != "":
			return fmt.Sprintf("see to %q (%s): %s", paths.Tilde(w.Home, t.Entry.Text), t.Entry.Origin, t.Inert)
		case t.Rule == access.DenyWrite:
			return w.remove(t.Entry) + ", and add a directory above it to [setup] workspaces in " + w.Profile
		}
	}
	if !paths.Below(filepath.Dir(target), w.Home) {
		return "move it into a workspace: what holds it cannot be one"
	}
	return fmt.Sprintf("add %q to [setup] workspaces in %s", paths.Tilde(w.Home, filepath.Dir(target)), w.Profile)
}

const inSourceDir = " in a source directory"

// remove says how to take an entry out of the policy.
func (w World) remove(v origin.Value) string {
	text := paths.Tilde(w.Home, v.Text)
	at := v.Origin
	switch {
	case at.Source == "srt":
		return "nothing can: srt adds this by itself"
	case at.Source == "default":
		return fmt.Sprintf("set [setup] workspaces in %s without %q", w.Profile, text)
	case at.Source == "toolchain":
		return fmt.Sprintf("set [sandbox] toolchain_caches = false in %s", w.Profile)
	case at.Source == "TMPDIR":
		return "set TMPDIR to another directory"
	case strings.HasPrefix(at.Source, "plugin "):
		name := strings.TrimPrefix(at.Source, "plugin ")
		return fmt.Sprintf("give [frontend.%s] in sandbox/policy.toml%s without %q", name, inSourceDir, text)
	case !filepath.IsAbs(at.Source):
		return fmt.Sprintf("remove %q from %s%s", text, at, inSourceDir)
	}
	return fmt.Sprintf("remove %q from %s", text, at)
}

// holdsWritePath tells whether a write path lies below dir, which an entry to
// read dir would make read-only on Linux.
func holdsWritePath(p *srt.Policy, dir string) bool {
	for _, w := range p.AllowWrite {
		if paths.Below(w.Text, dir) {
			return true
		}
	}
	return false
}

// Of lists every entry of p.
func Of(w World, p *srt.Policy) *Policy {
	inert := map[access.Touch]string{}
	for _, t := range access.New(p, w.OS, w.Home).Inert() {
		inert[access.Touch{Rule: t.Rule, Entry: t.Entry}] = t.Inert
	}
	out := &Policy{Frontend: p.Frontend, Entries: []Entry{}}
	for _, l := range []struct {
		rule   string
		values []origin.Value
	}{
		{access.AllowedDomains, p.AllowedDomains}, {access.DeniedDomains, p.DeniedDomains},
		{access.AllowWrite, p.AllowWrite}, {access.DenyWrite, p.DenyWrite},
		{access.DenyRead, p.DenyRead}, {access.AllowRead, p.AllowRead},
	} {
		for _, v := range l.values {
			t := access.Touch{Rule: l.rule, Entry: v}
			t.Inert = inert[t]
			out.Entries = append(out.Entries, newEntry(t))
		}
	}
	return out
}

// Print writes an answer for people.
func (a *Answer) Print(out io.Writer, home string) {
	verb := map[bool]string{true: "can", false: "cannot"}[a.Allowed]
	what := a.Operation + " " + paths.Tilde(home, a.Target)
	if a.Operation == "host" {
		what = "reach " + a.Target
	}
	fmt.Fprintf(out, "%s %s %s: %s\n", a.Frontend, verb, what, a.Reason)
	print := func(label string, e Entry) {
		line := fmt.Sprintf("%s %q from %s", e.Rule, paths.Tilde(home, e.Entry), e.where())
		if e.Inert != "" {
			line += ", which does nothing: " + e.Inert
		}
		fmt.Fprintf(out, "  %-9s%s\n", label, line)
	}
	if a.Rule == access.Default {
		fmt.Fprintf(out, "  %-9sno entry of the policy\n", "decided")
	} else {
		print("decided", a.Entry)
	}
	for _, e := range a.Also {
		print("also", e)
	}
	fmt.Fprintf(out, "  %-9s%s\n", "to turn", a.Change)
}

// Print writes a policy for people: each list, each entry, each source.
func (p *Policy) Print(out io.Writer, home string) error {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	rule := ""
	for _, e := range p.Entries {
		if e.Rule != rule {
			if rule != "" {
				fmt.Fprintln(tw)
			}
			rule = e.Rule
			fmt.Fprintln(tw, rule)
		}
		where := e.where()
		if e.Inert != "" {
			where += "; does nothing: " + e.Inert
		}
		fmt.Fprintf(tw, "  %s\t%s\n", paths.Tilde(home, e.Entry), where)
	}
	return tw.Flush()
}

// Target is a path as the user typed it made absolute: "~" is home, and a
// relative path starts at dir.
func Target(home, dir, text string) string {
	p := paths.Expand(home, text)
	if !filepath.IsAbs(p) {
		p = filepath.Join(dir, p)
	}
	return p
}
