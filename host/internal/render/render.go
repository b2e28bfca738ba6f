// Package render gathers the sources, the profile and the plugins' answers,
// and gives each frontend's policy.
package render

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/plugin"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/shared"
	"github.com/research-harness/harness/host/internal/srt"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/toolchain"
	"github.com/research-harness/harness/sdk"
)

// Options are what the user may say of where things come from.
type Options struct {
	Source  string   // a directory of sources, or empty
	Profile string   // a profile, or empty
	Plugins []string // directories of plugins
	Log     hclog.Logger
}

// Set is everything that the policies are made from, read and validated.
type Set struct {
	*shared.Set
	Frontends []Frontend // all that are trusted, in the order of their states
	Chosen    []Frontend // those that the profile chooses, in its order

	input srt.Input
}

// Frontend is a plugin's answer with the user's policy applied to it, and its
// paths absolute.
type Frontend struct {
	plugin.Frontend
	State     []sdk.Path
	DenyWrite []string
}

// Load reads everything, the plugins' answers last. It changes nothing on the
// disk and returns the first problem.
func Load(ctx context.Context, s *system.System, home string, o Options) (*Set, error) {
	base, err := shared.Load(s, home, o.Source, o.Profile)
	if err != nil {
		return nil, err
	}
	host := plugin.New(s, home, o.Plugins)
	if o.Log != nil {
		host.Log = o.Log
	}
	named := origin.Texts(base.Profile.Frontends)
	if !base.Profile.FrontendsSet {
		// Every bundled one is chosen: none may be missing or another's file.
		if named = slices.Sorted(maps.Keys(host.Bundled)); len(named) == 0 {
			return nil, problem.New(s.Exe, "", "was built without its frontends").WithHint("make install, in the source of the harness")
		}
	}
	answers, warnings, err := host.Load(ctx, named)
	if err != nil {
		return nil, err
	}
	base.Warnings = append(base.Warnings, warnings...)
	return assemble(s, base, answers)
}

// Of is Load with the plugins' answers given.
func Of(s *system.System, home string, o Options, answers []plugin.Frontend) (*Set, error) {
	base, err := shared.Load(s, home, o.Source, o.Profile)
	if err != nil {
		return nil, err
	}
	return assemble(s, base, answers)
}

func assemble(s *system.System, base *shared.Set, answers []plugin.Frontend) (*Set, error) {
	set := &Set{Set: base}
	sb := base.Template.Sandbox
	set.input = srt.Input{
		OS: s.OS, Home: base.Home, TempDir: set.tempDir(s),
		AllowedDomains: sb.AllowedDomains, DeniedDomains: sb.DeniedDomains, AllowLocalBinding: sb.AllowLocalBinding,
		AllowWrite: sb.AllowWrite, DenyWrite: sb.DenyWrite, DenyRead: sb.DenyRead,
		Credentials: sb.Credentials, ReadAllow: base.Rules.ReadAllow,
	}
	return set, set.choose(answers)
}

// WithTempDir returns the set as it would be with another $TMPDIR, or none.
func (set *Set) WithTempDir(dir string) *Set {
	other := *set
	other.input.TempDir.Text = dir
	return &other
}

// Find returns the frontend that the user means by its policy name or its
// command.
func (set *Set) Find(word string) (Frontend, error) {
	if f, ok := find(set.Frontends, word); ok {
		return f, nil
	}
	var known, commands []string
	for _, f := range set.Frontends {
		known, commands = append(known, f.Name), append(commands, f.Command)
	}
	err := problem.New("", word, "no frontend of that name; there are %s", strings.Join(known, ", "))
	if near := problem.Nearest(word, append(commands, known...)); near != "" {
		return Frontend{}, err.WithHint("did you mean %s?", near)
	}
	return Frontend{}, err
}

// find looks for a policy name first: it may be another's command.
func find(fs []Frontend, word string) (Frontend, bool) {
	i := slices.IndexFunc(fs, func(f Frontend) bool { return f.Name == word })
	if i < 0 {
		i = slices.IndexFunc(fs, func(f Frontend) bool { return f.Command == word })
	}
	if i < 0 {
		return Frontend{}, false
	}
	return fs[i], true
}

// Policy renders the policy of the frontend that word means.
func (set *Set) Policy(word string) (*srt.Policy, error) {
	f, err := set.Find(word)
	if err != nil {
		return nil, err
	}
	return srt.Render(set.input, f.Name)
}

// choose applies the user's policy file to the plugins' answers and the
// profile's choice to the result.
func (set *Set) choose(loaded []plugin.Frontend) error {
	served := make([]string, len(loaded))
	for i, f := range loaded {
		served[i] = f.Name
	}
	if err := set.Rules.Check(served); err != nil {
		return err
	}
	for _, f := range loaded {
		set.add(f)
	}
	if err := cmp.Or(set.disjoint(), set.checkWorkspaces()); err != nil {
		return err
	}
	chosen := set.Profile.Frontends
	if !set.Profile.FrontendsSet {
		for _, f := range loaded {
			if f.Plugin.Bundled {
				chosen = append(chosen, origin.Value{Text: f.Name})
			}
		}
	}
	for _, name := range chosen {
		i := slices.IndexFunc(set.Frontends, func(f Frontend) bool { return f.Name == name.Text })
		if i < 0 {
			return problem.New(set.Profile.File, "setup.frontends", "no plugin serves %q; there are %s", name.Text, strings.Join(served, ", "))
		}
		set.Chosen = append(set.Chosen, set.Frontends[i])
	}
	return nil
}

// add appends a frontend, for people and for rendering.
func (set *Set) add(f plugin.Frontend) {
	from := origin.Origin{Source: "plugin " + f.Name}
	values := func(element string, texts []string) []origin.Value {
		var vs []origin.Value
		for _, t := range texts {
			vs = append(vs, origin.Value{Text: t, Origin: origin.Origin{Source: from.Source, Element: element}})
		}
		return vs
	}
	kinds := map[string]sdk.Path{}
	var stateTexts []string
	for _, p := range f.Contribution.State {
		stateTexts = append(stateTexts, p.Path)
		kinds[paths.Expand(set.Home, p.Path)] = p
	}
	in := srt.Frontend{
		Name:  f.Name,
		State: values("state", stateTexts), Own: values("own", f.Own),
		DenyWrite: values("deny_write", f.Contribution.DenyWrite),
	}
	if e, ok := set.Rules.Frontends[f.Name]; ok {
		in.State, in.Own, in.DenyWrite = e.State, e.Own, e.DenyWrite
	}
	out := Frontend{Frontend: f}
	for _, v := range in.State {
		p := sdk.Path{Path: paths.Expand(set.Home, v.Text), Kind: sdk.Dir}
		if k, ok := kinds[p.Path]; ok {
			p.Kind, p.Content = k.Kind, k.Content
		}
		out.State = append(out.State, p)
	}
	for _, v := range in.DenyWrite {
		out.DenyWrite = append(out.DenyWrite, paths.Expand(set.Home, v.Text))
	}
	set.Frontends = append(set.Frontends, out)
	set.input.Frontends = append(set.input.Frontends, in)
}

// disjoint refuses two frontends whose states are equal or nested, by name or
// behind symbolic links: neither could be protected from the other.
func (set *Set) disjoint() error {
	type state struct{ frontend, path, real string }
	var seen []state
	for _, f := range set.Frontends {
		for _, p := range f.State {
			s := state{f.Name, p.Path, paths.Real(p.Path)}
			for _, o := range seen {
				if o.frontend != s.frontend && (nested(o.path, s.path) || nested(o.real, s.real)) {
					return problem.New("", "state", "%s of %s and %s of %s are equal or nested, so neither can be protected from the other",
						paths.Tilde(set.Home, o.path), o.frontend, paths.Tilde(set.Home, s.path), s.frontend)
				}
			}
			seen = append(seen, s)
		}
	}
	return nil
}

// checkWorkspaces refuses a workspace in the state of a frontend: only that one
// may write there.
func (set *Set) checkWorkspaces() error {
	for _, w := range set.Profile.Workspaces {
		dir := paths.Expand(set.Home, w.Text)
		for _, f := range set.Frontends {
			for _, p := range f.State {
				if paths.AtOrBelow(dir, p.Path) || paths.AtOrBelow(paths.Real(dir), paths.Real(p.Path)) {
					return w.Origin.Problem("%q cannot be a workspace: it lies in %s, the state of %s", w.Text, paths.Tilde(set.Home, p.Path), f.Name).
						WithHint(`name a directory of projects, such as "~/Research" or "/data/me"`)
				}
			}
		}
	}
	return nil
}

func nested(a, b string) bool { return paths.AtOrBelow(a, b) || paths.AtOrBelow(b, a) }

// tempDir is the real path of $TMPDIR. One that would grant far more than a
// temporary directory is left out with a warning.
func (set *Set) tempDir(s *system.System) origin.Value {
	dir := s.Getenv("TMPDIR")
	if dir == "" {
		return origin.Value{}
	}
	if !filepath.IsAbs(dir) {
		set.Warnings = append(set.Warnings, "TMPDIR="+dir+" is not an absolute path and is left out of the policy")
		return origin.Value{}
	}
	real := paths.Real(dir)
	info, err := os.Stat(real)
	if why := toolchain.Refused(real, set.Home); why != "" {
		set.Warnings = append(set.Warnings, "TMPDIR="+dir+" "+why+" and is left out of the policy")
		return origin.Value{}
	} else if err == nil && !info.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist) {
		set.Warnings = append(set.Warnings, "TMPDIR="+dir+" is not a directory and is left out of the policy")
		return origin.Value{}
	}
	return origin.Value{Text: real, Origin: origin.Origin{Source: "TMPDIR"}}
}
