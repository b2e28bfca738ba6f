// Package audit finds what is wrong with a rendered policy on one operating
// system: rules that cancel each other, rules that do nothing there, and rules
// under which a session could write what governs it.
package audit

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/access"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/setup"
	"github.com/research-harness/harness/host/internal/srt"
	"github.com/research-harness/harness/host/internal/system"
)

// Severity says what a finding stops.
type Severity string

// An error stops an install. A warning is to be mended. A note is good to know.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Compare orders what stops more before what stops less.
func (s Severity) Compare(o Severity) int {
	rank := []Severity{Error, Warning, Note}
	return slices.Index(rank, s) - slices.Index(rank, o)
}

// Sort puts what stops most first, and keeps the order otherwise.
func Sort(fs []Finding) {
	slices.SortStableFunc(fs, func(a, b Finding) int { return a.Severity.Compare(b.Severity) })
}

// Finding is one thing that is wrong.
type Finding struct {
	ID       string   `json:"id"`
	Frontend string   `json:"frontend"`
	Severity Severity `json:"severity"`
	Subject  string   `json:"subject"` // the path or host that is affected
	Message  string   `json:"message"` // one line, with the entries and their sources
	Fix      string   `json:"fix"`     // what to type or change

	entry  origin.Value // at fault
	reason string       // Message without the entry and its source
}

// Err is the finding as the problem that an install is refused for.
func (f Finding) Err() error {
	if f.entry.Text == "" {
		return problem.New("", f.Subject, "%s", f.Message).WithHint("%s", f.Fix)
	}
	at := f.entry.Origin
	file := origin.Origin{Source: at.Source, Line: at.Line}.String()
	return problem.New(file, at.Element, "%q %s", f.entry.Text, f.reason).WithHint("%s", f.Fix)
}

// Input is what a policy is judged by beside its entries.
type Input struct {
	OS    string   // GOOS
	Home  string   // the real path
	State []string // the frontend's own, absolute
	// Guarded is what governs a session, which none may write.
	Guarded []Guarded
	// Needed is what a session reads at its start.
	Needed []Guarded
}

// Guarded is a file or directory that governs a session.
type Guarded struct {
	Path string // absolute
	What string // for people
}

// For is the input for the policy of f, one of set's frontends.
func For(s *system.System, set *render.Set, f render.Frontend) Input {
	at := layout.Layout{Home: set.Home}
	in := Input{OS: s.OS, Home: set.Home}
	for _, p := range f.State {
		in.State = append(in.State, p.Path)
	}
	guard := func(path, what string) {
		if path != "" {
			in.Guarded = append(in.Guarded, Guarded{path, what})
		}
	}
	guard(at.SandboxDir(), "the settings")
	guard(at.LaunchDir(), "what the launcher reads")
	guard(cmp.Or(set.Profile.File, at.Profile()), "the profile")
	guard(set.Sources.Dir, "the sources")
	guard(at.Trust(), "the list of trusted plugins")
	guard(at.Manifest(), "the record of the install")
	guard(at.Agentbox(), "the launcher")
	guard(at.Harness(), "the harness")
	guard(at.Host(), "the harness")
	guard(at.Plugins(), "the plugins")
	for _, f := range set.Frontends {
		if !f.Plugin.Bundled { // a bundled one is copied into at.Plugins
			guard(f.Plugin.File, "the plugin "+f.Name)
		}
	}
	guard(at.Srt(), "srt")
	guard(at.Share(), "srt and its Node")
	guard(setup.Node(at), "srt's Node")
	if setup.Node(at) != "" {
		in.Needed = append(in.Needed, Guarded{setup.Inside(at), "what srt starts inside the sandbox"})
	}
	for _, a := range f.Args {
		if a.Override != "" {
			in.Needed = append(in.Needed, Guarded{at.Override(a.Override), "an argument of " + f.Command})
		}
	}
	return in
}

// Check returns what is wrong with p, errors first.
func Check(p *srt.Policy, in Input) []Finding {
	c := &check{p: p, in: in, model: access.New(p, in.OS, in.Home)}
	c.whole = c.model.WithMissing()
	c.start()
	c.readAboveWrite()
	c.state()
	c.guarded()
	c.needed()
	c.inert()
	c.domains()
	Sort(c.found)
	return c.found
}

type check struct {
	p  *srt.Policy
	in Input
	// model is of this moment, whole of the time when all that the policy
	// names is there, as most of it is once it is installed.
	model, whole *access.Model
	found        []Finding
}

// add records a finding about an entry of a list, once.
func (c *check) add(id string, s Severity, subject, rule string, entry origin.Value, fix, format string, args ...any) {
	f := Finding{
		ID: id, Frontend: c.p.Frontend, Severity: s, Subject: paths.Tilde(c.in.Home, subject), Fix: fix,
		entry: entry, reason: fmt.Sprintf(format, args...),
	}
	f.Message = problem.OneLine(c.name(rule, entry) + " " + f.reason)
	if !slices.ContainsFunc(c.found, func(o Finding) bool { return o.ID == id && o.Message == f.Message }) {
		c.found = append(c.found, f)
	}
}

// name is an entry for people: its list, its text and its source.
func (c *check) name(rule string, entry origin.Value) string {
	rule = rule[strings.LastIndexByte(rule, '.')+1:]
	return fmt.Sprintf("%s %q (%s)", rule, paths.Tilde(c.in.Home, entry.Text), entry.Origin)
}

// start finds a policy under which srt does not start at all.
func (c *check) start() {
	fix := "remove the entry, or the one that shows the directory above it"
	if entry, reason := c.whole.Fault(); reason != "" {
		c.add("no-start", Error, entry.Text, "entry", entry, fix, "keeps srt from starting: %s", reason)
	} else if entry, reason := c.model.Fault(); reason != "" {
		c.add("no-start", Warning, entry.Text, "entry", entry, "mkdir -p "+paths.Shell(c.in.Home, entry.Text), "keeps srt from starting: %s", reason)
	}
}

// readAboveWrite finds read entries that make a write path below them
// read-only: on Linux srt mounts them above it.
func (c *check) readAboveWrite() {
	if c.in.OS != "linux" {
		return
	}
	writes, reads := index(c.p.AllowWrite), index(c.p.AllowRead)
	add := func(read, write origin.Value) {
		c.add("read-above-write", Error, write.Text, access.AllowRead, read,
			"name the paths below it that are to be read, none of them above a write path",
			"lies above %s, which a session could then not write on linux", c.name(access.AllowWrite, write))
	}
	for _, w := range c.p.AllowWrite {
		for dir := paths.TrimGlobstar(w.Text); dir != "/"; {
			dir = filepath.Dir(dir)
			if r, ok := reads[dir]; ok && !covered(writes, dir) {
				add(r, w)
			}
		}
		if v := c.whole.Write(w.Text); !v.Allowed && v.Rule == access.AllowRead {
			add(v.Entry, w)
		}
	}
}

// needed finds what a session could not read and does not start without.
func (c *check) needed() {
	for _, n := range c.in.Needed {
		if v := c.whole.Read(n.Path); !v.Allowed {
			name := paths.Tilde(c.in.Home, n.Path)
			c.found = append(c.found, Finding{
				ID: "hidden-runtime", Frontend: c.p.Frontend, Severity: Warning, Subject: name,
				Message: fmt.Sprintf("a session cannot read %s, %s, and does not start: %s", name, n.What, v.Reason),
				Fix:     fmt.Sprintf("add %q to [read] allow of policy.toml", name),
			})
		}
	}
}

// index is a list by the directories that its entries name.
func index(vs []origin.Value) map[string]origin.Value {
	m := make(map[string]origin.Value, len(vs))
	for _, v := range vs {
		p := paths.TrimGlobstar(v.Text)
		if _, ok := m[p]; !ok {
			m[p] = v
		}
	}
	return m
}

// covered tells whether p is an entry of the list or lies below one.
func covered(list map[string]origin.Value, p string) bool {
	for {
		if _, ok := list[p]; ok {
			return true
		}
		if p == "/" {
			return false
		}
		p = filepath.Dir(p)
	}
}

// state finds denies that keep the frontend from its own state.
func (c *check) state() {
	deny := func(id, rule, state, what string, entry origin.Value) {
		c.add(id, Error, state, rule, entry, "remove the entry, or name in it what lies below the state",
			"covers %s, the state of %s, which could then not %s it", paths.Tilde(c.in.Home, state), c.p.Frontend, what)
	}
	for _, s := range c.in.State {
		for _, d := range c.p.DenyWrite {
			if paths.AtOrBelow(s, d.Text) {
				deny("state-write-denied", access.DenyWrite, s, "write", d)
			}
		}
		for _, d := range c.p.DenyRead {
			if paths.AtOrBelow(s, d.Text) && paths.TrimGlobstar(d.Text) != c.in.Home {
				deny("state-read-denied", access.DenyRead, s, "read", d)
			}
		}
		// A pattern may cover it too.
		if v := c.whole.Write(s); !v.Allowed && v.Rule == access.DenyWrite {
			deny("state-write-denied", v.Rule, s, "write", v.Entry)
		}
		if v := c.whole.Read(s); !v.Allowed && v.Rule == access.DenyRead && v.Entry.Text != c.in.Home {
			deny("state-read-denied", v.Rule, s, "read", v.Entry)
		}
	}
}

// guarded finds entries that let a session write what governs it: the file
// itself, a link on the way to it, or something in it.
func (c *check) guarded() {
	for _, g := range c.in.Guarded {
		real, links := way(g.Path)
		targets := []string{g.Path, real}
		for _, l := range links {
			// Who can make a file beside a link can replace the link.
			targets = append(targets, filepath.Join(filepath.Dir(l), ".replaced-by-a-session"))
		}
		for _, w := range c.p.AllowWrite {
			if paths.AtOrBelow(w.Text, g.Path) || paths.AtOrBelow(w.Text, real) {
				targets = append(targets, paths.TrimGlobstar(w.Text))
			}
		}
		for _, t := range targets {
			for _, m := range []*access.Model{c.model, c.whole} {
				if v := m.Write(t); v.Allowed && v.Rule == access.AllowWrite {
					c.add("governs-writable", Error, g.Path, v.Rule, v.Entry, "remove the entry, or name in it what lies elsewhere",
						"would let a session write %s, %s", paths.Tilde(c.in.Home, g.Path), g.What)
				}
			}
		}
	}
}

// way is where p leads, as far as it exists, and the links on the way there.
func way(p string) (real string, links []string) {
	real = "/"
	rest := strings.Split(p, "/")
	for hops := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
		next := filepath.Join(real, name)
		target, err := os.Readlink(next)
		if err != nil || hops == 40 {
			real = next
			continue
		}
		hops++
		links = append(links, next)
		rest = append(strings.Split(target, "/"), rest...)
		if filepath.IsAbs(target) {
			real = "/"
		}
	}
	return real, links
}

// inert finds entries that srt makes nothing of here.
func (c *check) inert() {
	for _, t := range c.whole.Inert() {
		at := t.Entry.Text
		target, _ := way(at)
		switch {
		case t.Rule == access.DenyWrite && access.GuardedByName(at):
			c.add("inert-pattern", Note, at, t.Rule, t.Entry, "start sessions in the repository",
				"does nothing on %s, where srt denies that name by itself: in the directory where a session starts and in those directly below", c.in.OS)
		case strings.ContainsAny(paths.TrimGlobstar(at), "*?[]"):
			c.add("inert-pattern", Warning, at, t.Rule, t.Entry, "name the directories without a wildcard",
				"does nothing: %s", t.Inert)
		case slices.Contains(c.in.State, at):
			c.add("state-link", Warning, at, t.Rule, t.Entry, moveBack(c.in.Home, at, target),
				"does nothing: %s; %s can only read its state", t.Inert, c.p.Frontend)
		default:
			c.add("write-link", Warning, at, t.Rule, t.Entry, "name "+paths.Tilde(c.in.Home, target)+" instead",
				"does nothing: %s", t.Inert)
		}
	}
}

// moveBack is the line that puts a directory in the place of the link to it.
func moveBack(home, link, target string) string {
	link = paths.Shell(home, link)
	return fmt.Sprintf("rm %s && mv %s %s", link, paths.Shell(home, target), link)
}

// domains finds allowed domains that no request can match.
func (c *check) domains() {
	for _, d := range c.p.AllowedDomains {
		host := strings.Replace(d.Text, "*.", "any.", 1)
		v := c.model.Host(host)
		switch {
		case v.Allowed:
		case v.Rule == access.DeniedDomains:
			c.add("domain-denied", Warning, d.Text, access.AllowedDomains, d, "remove one of the two",
				"is cancelled by %s", c.name(v.Rule, v.Entry))
		default:
			c.add("domain-dead", Warning, d.Text, access.AllowedDomains, d, "spell it as programs connect to it",
				"matches nothing: srt compares it with the host's one usual spelling")
		}
	}
}
