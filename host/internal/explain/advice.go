package explain

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/research-harness/harness/host/defaults"
	"github.com/research-harness/harness/host/internal/access"
	"github.com/research-harness/harness/host/internal/audit"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/netrules"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/srt"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/template"
	"github.com/research-harness/harness/host/internal/toolchain"
	"github.com/research-harness/harness/sdk/protected"
)

// World is what an answer depends on beside the policy.
type World struct {
	OS, Home string
	// Dir is the directory where the session would start, or empty.
	Dir string
	// Profile, Template and Rules are the files to change. An embedded one has
	// its name in a source directory.
	Profile, Template, Rules string
	// Closed are the places that no advice opens, Needed those that none shuts.
	Closed, Needed []Place
}

// Place is a file or directory with what bears on it.
type Place struct {
	Path string // absolute
	Why  string // one clause
	// WriteOnly is set where reading does no harm.
	WriteOnly bool
}

// For is the world of a session of f, one of set's frontends, that starts in
// the current directory.
func For(s *system.System, set *render.Set, f render.Frontend) World {
	w := World{
		OS: s.OS, Home: set.Home, Dir: s.Dir,
		Profile: cmp.Or(set.Profile.File, layout.Layout{Home: set.Home}.Profile()), Template: set.Sources.Template.Name, Rules: set.Sources.Policy.Name,
	}
	in := audit.For(s, set, f)
	for _, g := range in.Guarded {
		w.Closed = append(w.Closed, Place{g.Path, "it is " + g.What + ", which no session may change", true})
	}
	for _, n := range in.Needed {
		w.Needed = append(w.Needed, Place{Path: n.Path, Why: "no session starts without it: it is " + n.What})
	}
	for _, other := range set.Frontends {
		for _, p := range other.State {
			if other.Name == f.Name {
				w.Needed = append(w.Needed, Place{Path: p.Path, Why: f.Name + " does not work without its state"})
			} else {
				w.Closed = append(w.Closed, Place{Path: p.Path, Why: "it is the state of " + other.Name + ", which is kept from other agents"})
			}
		}
	}
	for _, p := range protected.Paths() {
		w.Closed = append(w.Closed, Place{Path: paths.Expand(w.Home, p), Why: p + " holds secrets, or what runs outside of the sandbox"})
	}
	for _, p := range f.DenyWrite {
		w.Closed = append(w.Closed, Place{p, f.Name + " obeys what is there, also outside of the sandbox", true})
	}
	for _, sandbox := range []template.Sandbox{embedded(), set.Template.Sandbox} {
		for _, v := range sandbox.Credentials {
			w.Closed = append(w.Closed, Place{Path: paths.Expand(w.Home, v.Text), Why: "it holds secrets"})
		}
	}
	for _, v := range embedded().DenyRead {
		w.Closed = append(w.Closed, Place{Path: paths.Expand(w.Home, v.Text), Why: "it holds what you typed and looked at, which no work needs"})
	}
	for _, v := range embedded().DenyWrite {
		w.Closed = append(w.Closed, Place{paths.Expand(w.Home, v.Text), "programs outside of the sandbox obey what is there", true})
	}
	return w
}

// embedded are the lists that the harness comes with, without the user's.
func embedded() template.Sandbox {
	t, err := template.Parse(defaults.Template, defaults.Read(defaults.Template))
	if err != nil {
		panic(err) // the tests of package defaults read it
	}
	none := template.List()
	r, err := t.Expand(map[string]template.Value{
		template.AllowedDomains: none, template.DeniedDomains: none, template.Workspaces: none, template.ToolchainCaches: none,
	})
	if err != nil {
		panic(err)
	}
	return r.Sandbox
}

// change is what turns the answer, or why nothing should.
func (w World) change(p *srt.Policy, operation, target string, v access.Verdict) string {
	switch {
	case strings.HasPrefix(v.Reason, "srt does not start"):
		return w.remove(v.Entry)
	case operation == Host:
		return w.changeHost(target, v)
	case paths.AtOrBelow(target, "/dev"), paths.AtOrBelow(target, "/proc"):
		return "nothing can: every session has its own"
	case v.Entry.Origin.Source == "srt":
		return "nothing can: srt adds this by itself"
	case v.Allowed:
		return w.shut(operation, target, v)
	case operation == Read:
		return w.show(p, target, v)
	}
	return w.open(target, v)
}

func (w World) changeHost(target string, v access.Verdict) string {
	switch {
	case v.Allowed:
		return w.add(target, "[network] deny", w.Profile)
	case v.Rule == access.DeniedDomains:
		return w.remove(v.Entry)
	}
	if why := inner(target); why != "" {
		return "it stays closed: " + why
	}
	if err := netrules.CheckAllow(origin.Value{Text: target}); err != nil {
		return "nothing can: " + err.Error()
	}
	return w.add(target, "[network] allow", w.Profile)
}

// inner says why a host that is no other machine stays closed, or "".
func inner(target string) string {
	host := target
	if rest, ok := strings.CutPrefix(host, "["); ok {
		host, _, _ = strings.Cut(rest, "]")
	} else {
		host, _, _ = strings.Cut(host, ":")
	}
	addr, _ := netip.ParseAddr(host)
	addr = addr.Unmap()
	switch {
	case host == "localhost" || strings.HasSuffix(host, ".localhost") || addr.IsLoopback() || addr.IsUnspecified():
		return "it is this machine, whose own services trust who reaches them"
	case addr.IsLinkLocalUnicast():
		return "such an address is of the network itself, where clouds give credentials out"
	}
	return ""
}

// shut is what takes away what a session can do now.
func (w World) shut(operation, target string, v access.Verdict) string {
	for _, n := range w.Needed {
		if paths.AtOrBelow(n.Path, target) {
			return "nothing should: " + n.Why
		}
	}
	if v.Rule != access.Default && paths.TrimGlobstar(v.Entry.Text) == target {
		return w.remove(v.Entry)
	}
	key := "sandbox.filesystem.denyRead"
	if operation == Write {
		key = "sandbox.filesystem.denyWrite"
	}
	return w.add(target, key, w.Template)
}

// show is what lets a session read target.
func (w World) show(p *srt.Policy, target string, v access.Verdict) string {
	if why := w.closed(target, false, v); why != "" {
		return why
	}
	if v.Rule == access.DenyRead && v.Entry.Text != w.Home {
		return w.remove(v.Entry)
	}
	short := paths.Tilde(w.Home, target)
	if !paths.AtOrBelow(target, w.Home) {
		return "nothing can: " + v.Reason
	}
	// What is shown as a whole shows the closed places in it too, and on Linux
	// becomes read-only.
	holds := w.holds(target) != ""
	for _, e := range p.AllowWrite {
		holds = holds || paths.Below(e.Text, target)
	}
	if holds {
		return w.in("name what is to be read below "+quote(short)+" in [read] allow", w.Rules)
	}
	return w.add(target, "[read] allow", w.Rules)
}

// open is what lets a session write target.
func (w World) open(target string, v access.Verdict) string {
	if why := w.closed(target, true, v); why != "" {
		return why
	}
	switch v.Rule {
	case access.DenyWrite:
		return w.remove(v.Entry)
	case access.AllowRead:
		return w.remove(v.Entry) + "; name in its place the paths below it that are to be read"
	}
	denied := ""
	for _, t := range v.Touches {
		switch {
		case t.Rule == access.AllowWrite && t.Inert != "":
			return fmt.Sprintf("see to %s (%s): %s", quote(paths.Tilde(w.Home, t.Entry.Text)), t.Entry.Origin, t.Inert)
		case t.Rule == access.AllowRead && t.Entry.Origin.Element != "state":
			return "it stays closed: programs outside of the sandbox use what is there; work in a workspace"
		case t.Rule == access.DenyWrite:
			denied = w.remove(t.Entry) + "; and "
		}
	}
	// A workspace is a directory.
	dir := target
	if info, err := os.Stat(target); err != nil || !info.IsDir() {
		dir = filepath.Dir(target)
	}
	why := toolchain.Refused(paths.Real(dir), w.Home)
	if holds := w.holds(dir); why == "" && holds != "" {
		why = "holds " + paths.Tilde(w.Home, holds)
	}
	switch short := paths.Tilde(w.Home, dir); {
	case why != "":
		return fmt.Sprintf("it stays closed: %s %s; work in a workspace", short, why)
	case strings.Contains(short, "/."):
		return "it stays closed: programs outside of the sandbox keep their own in hidden directories. A cache becomes writable once it exists: harness install --apply"
	}
	return denied + w.add(dir, "[setup] workspaces", w.Profile)
}

// closed says why target stays closed, or "".
func (w World) closed(target string, write bool, v access.Verdict) string {
	for _, p := range []string{target, paths.Real(target)} {
		for _, c := range w.Closed {
			if (write || !c.WriteOnly) && paths.AtOrBelow(p, c.Path) {
				return "it stays closed: " + c.Why
			}
		}
	}
	// A pattern of the harness's own template.
	if v.Rule == access.DenyWrite && v.Entry.Origin.Source == defaults.Template {
		return "it stays closed: programs outside of the sandbox obey what is there"
	}
	return ""
}

// holds is a closed place strictly below dir, or "".
func (w World) holds(dir string) string {
	for _, c := range w.Closed {
		if paths.Below(c.Path, dir) {
			return c.Path
		}
	}
	return ""
}

// add says to add a path or host to a key of file.
func (w World) add(target, key, file string) string {
	return w.in("add "+quote(paths.Tilde(w.Home, target))+" to "+key, file)
}

// in says where to do it and how it comes to count.
func (w World) in(what, file string) string {
	if !filepath.IsAbs(file) {
		return fmt.Sprintf("%s in %s of a source directory DIR, then type: harness install --source DIR --apply", what, file)
	}
	return fmt.Sprintf("%s in %s, then type: harness install --apply", what, paths.Tilde(w.Home, file))
}

// remove says how to take an entry out of the policy.
func (w World) remove(v origin.Value) string {
	text := quote(paths.Tilde(w.Home, v.Text))
	switch at := v.Origin; at.Source {
	case "srt":
		return "nothing can: srt adds this by itself"
	case "default":
		return w.in("set [setup] workspaces without "+text, w.Profile)
	case "toolchain":
		return w.in("set [sandbox] toolchain_caches = false", w.Profile)
	case "TMPDIR":
		return "set TMPDIR to another directory, then type: harness install --apply"
	case "read limit":
		return "nothing can: the harness hides the home directory"
	default:
		if name, ok := strings.CutPrefix(at.Source, "plugin "); ok {
			return w.in("give [frontend."+name+"] its state, deny_write and own without "+text, w.Rules)
		}
		what := "take " + text + " out of " + at.Element
		if at.Line > 0 {
			what += fmt.Sprintf(" (line %d)", at.Line)
		}
		return w.in(what, at.Source)
	}
}

// quote shows a path or a host as it would stand in a file.
func quote(s string) string { return `"` + s + `"` }
