// Package explain answers whether a frontend's session can read or write a path
// or reach a host, which entry decides, where that comes from, and what to
// change to turn the answer.
package explain

import (
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/research-harness/harness/host/internal/access"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/srt"
)

// The operations that can be asked about.
const (
	Read  = "read"
	Write = "write"
	Host  = "host"
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
	Operation string  `json:"operation"` // [Read], [Write] or [Host]
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

// Ask answers one question about p. The target is what [Target] makes of the
// user's words.
func Ask(w World, p *srt.Policy, operation, target string) (*Answer, error) {
	m := access.New(p, w.OS, w.Home)
	if w.Dir != "" && m.Read(w.Dir).Allowed {
		m = m.WithCwd(w.Dir)
	}
	a := &Answer{Frontend: p.Frontend, Operation: operation, Target: target, Also: []Entry{}}
	var v access.Verdict
	switch operation {
	case Read:
		v = m.Read(target)
	case Write:
		v = m.Write(target)
	case Host:
		v = m.Host(target)
	default:
		return nil, unknown(operation)
	}
	a.Allowed, a.Reason = v.Allowed, v.Reason
	if operation == Write && v.Allowed && (access.GuardedByName(target) || access.GuardedByName(filepath.Dir(target))) {
		a.Reason += "; srt denies that name to a session that starts beside it or directly above"
	}
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
	say := func(format string, args ...any) {
		fmt.Fprintln(out, problem.OneLine(fmt.Sprintf(format, args...)))
	}
	verb := map[bool]string{true: "can", false: "cannot"}[a.Allowed]
	what := a.Operation + " " + paths.Tilde(home, a.Target)
	if a.Operation == Host {
		what = "reach " + a.Target
	}
	say("%s %s %s: %s", a.Frontend, verb, what, a.Reason)
	entry := func(label string, e Entry) {
		does := ""
		if e.Inert != "" {
			does = ", which does nothing: " + e.Inert
		}
		say("  %-9s%s %q from %s%s", label, e.Rule, paths.Tilde(home, e.Entry), e.where(), does)
	}
	if a.Rule == access.Default {
		say("  %-9sno entry of the policy", "decided")
	} else {
		entry("decided", a.Entry)
	}
	for _, e := range a.Also {
		entry("also", e)
	}
	say("  %-9s%s", "to turn", a.Change)
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
		fmt.Fprintf(tw, "  %s\t%s\n", problem.OneLine(paths.Tilde(home, e.Entry)), problem.OneLine(where))
	}
	return tw.Flush()
}
