package cli

import (
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/scope"
	"github.com/research-harness/harness/host/internal/system"
)

// loadScope resolves the workspace scope under the policy that o names.
func loadScope(s *system.System, workspace string, o render.Options) (*scope.Scope, error) {
	home, err := s.Home()
	if err != nil {
		return nil, err
	}
	set, err := render.Shared(s, home, o)
	if err != nil {
		return nil, err
	}
	so := scope.Options{Workspace: workspace, Home: home}
	sandbox := set.Template.Sandbox
	for _, list := range [][]origin.Value{sandbox.DenyRead, sandbox.Credentials} {
		for _, v := range list {
			so.DenyRead = append(so.DenyRead, paths.Expand(home, v.Text))
		}
	}
	for _, p := range []string{s.Exe, set.Profile.File, set.Sources.Dir} {
		if p != "" {
			so.Protect = append(so.Protect, p)
		}
	}
	sc, err := scope.New(s, so)
	if err != nil {
		return nil, err
	}
	warn(s, sc.Warnings)
	return sc, nil
}
