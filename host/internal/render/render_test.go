package render_test

import (
	"strings"
	"testing"

	"github.com/research-harness/harness/host/internal/plugin"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/sdk"
)

// TestFind takes a policy name and a command for the same frontend.
func TestFind(t *testing.T) {
	home := t.TempDir()
	s := &system.System{OS: "linux", Arch: "amd64", Env: []string{"HOME=" + home}, Dir: home}
	frontend := func(name, command string) plugin.Frontend {
		return plugin.Frontend{
			Contribution: sdk.Contribution{Name: name, Command: command, Title: name, State: []sdk.Path{{Path: "~/." + name, Kind: sdk.Dir}}},
			Plugin:       plugin.Found{Name: name, Bundled: true},
		}
	}
	// The second has the first's command for a name.
	set, err := render.Of(s, home, render.Options{}, []plugin.Frontend{frontend("heron", "grey"), frontend("grey", "go-grey")})
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{"heron": "heron", "grey": "grey", "go-grey": "grey"} {
		f, err := set.Find(word)
		if err != nil || f.Name != want {
			t.Errorf("%s is %s, not %s (%v)", word, f.Name, want, err)
		}
		p, err := set.Policy(word)
		if err != nil || p.Frontend != want {
			t.Errorf("the policy of %s is not that of %s (%v)", word, want, err)
		}
	}
	for word, hint := range map[string]string{"herom": "did you mean heron?", "cursor": ""} {
		_, err := set.Find(word)
		if err == nil || !strings.Contains(err.Error(), "there are heron, grey") || problem.HintOf(err) != hint {
			t.Errorf("%s: %v, hint %q", word, err, problem.HintOf(err))
		}
	}
}
