// Package shared reads what all frontends share: the sources, the profile and
// the template with its placeholders filled in. It starts no plugin.
package shared

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/netrules"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/policy"
	"github.com/research-harness/harness/host/internal/profile"
	"github.com/research-harness/harness/host/internal/sources"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/template"
	"github.com/research-harness/harness/host/internal/toolchain"
)

// Set is what was read, valid as far as it can be without the plugins.
type Set struct {
	Home     string // the real path
	OS       string // GOOS
	Sources  *sources.Sources
	Profile  *profile.Profile
	Rules    *policy.Policy
	Template *template.Result
	Caches   []toolchain.Dir // what {toolchain_caches} stands for
	Warnings []string
}

// Load reads it. Source and profileFile are what the user named, or empty. It
// changes nothing on the disk and returns the first problem.
func Load(s *system.System, home, source, profileFile string) (*Set, error) {
	set, err := load(s, home, source, profileFile)
	if err != nil {
		return nil, err
	}
	allow, deny, err := netrules.Parse(set.Sources.Network.Name, set.Sources.Network.Data)
	if err != nil {
		return nil, err
	}
	if set.Rules, err = policy.Parse(set.Sources.Policy.Name, set.Sources.Policy.Data); err != nil {
		return nil, err
	}
	if err := set.expand(append(allow, set.Profile.Allow...), append(deny, set.Profile.Deny...), set.toolchain(s)); err != nil {
		return nil, err
	}
	return set, set.checkWorkspaces()
}

// LoadPaths is Load for who needs no more than the template's own paths, at
// half the time: the set has no rules, domains and caches.
func LoadPaths(s *system.System, home, source, profileFile string) (*Set, error) {
	set, err := load(s, home, source, profileFile)
	if err != nil {
		return nil, err
	}
	return set, set.expand(nil, nil, nil)
}

func load(s *system.System, home, source, profileFile string) (*Set, error) {
	set := &Set{Home: home, OS: s.OS}
	var err error
	if set.Profile, err = profile.Load(s, home, profileFile); err != nil {
		return nil, err
	}
	set.Sources, err = sources.Load(s, source)
	return set, err
}

// expand fills the template's placeholders in.
func (set *Set) expand(allow, deny, caches []origin.Value) error {
	tmpl, err := template.Parse(set.Sources.Template.Name, set.Sources.Template.Data)
	if err != nil {
		return err
	}
	values := maps.Clone(set.Profile.Template)
	if values == nil {
		values = map[string]template.Value{}
	}
	values[template.AllowedDomains] = template.List(allow...)
	values[template.DeniedDomains] = template.List(deny...)
	values[template.Workspaces] = template.List(set.Profile.Workspaces...)
	values[template.ToolchainCaches] = template.List(caches...)
	set.Template, err = tmpl.Expand(values)
	return err
}

// checkWorkspaces refuses a workspace that would open what stays closed, and
// one that the template closes.
func (set *Set) checkWorkspaces() error {
	sb := set.Template.Sandbox
	closed := slices.DeleteFunc(slices.Concat(sb.DenyWrite, sb.DenyRead, sb.Credentials), func(v origin.Value) bool {
		return paths.IsGlob(v.Text)
	})
	for _, w := range set.Profile.Workspaces {
		dir := paths.Expand(set.Home, w.Text)
		if i := strings.IndexAny(dir, "*?["); i >= 0 { // a pattern reaches what is beside it
			dir = filepath.Dir(dir[:i] + "x")
		}
		why := cmp.Or(toolchain.Refused(dir, set.Home), toolchain.Refused(paths.Real(dir), set.Home))
		for _, c := range closed {
			if p := paths.Expand(set.Home, c.Text); why == "" && paths.AtOrBelow(dir, p) {
				why = "is closed by " + c.Origin.String()
			}
		}
		if why != "" {
			return w.Origin.Problem("%q cannot be a workspace: it %s", w.Text, why).
				WithHint(`name a directory of projects, such as "~/Research" or "/data/me"`)
		}
	}
	return nil
}

// toolchain is the list that {toolchain_caches} stands for.
func (set *Set) toolchain(s *system.System) []origin.Value {
	if !set.Profile.ToolchainCaches {
		return nil
	}
	dirs, warnings := toolchain.WritableDirs(s, set.Home)
	set.Warnings = append(set.Warnings, warnings...)
	var vs []origin.Value
	for _, d := range dirs {
		if d.Temp {
			continue
		}
		set.Caches = append(set.Caches, d)
		vs = append(vs, origin.Value{Text: d.Path, Origin: origin.Origin{Source: "toolchain", Element: d.Source}})
	}
	return vs
}
