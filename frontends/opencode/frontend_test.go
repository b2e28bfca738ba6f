package main

import (
	"slices"
	"testing"

	"github.com/research-harness/harness/sdk"
	"github.com/research-harness/harness/sdk/sdktest"
)

func TestConformance(t *testing.T) { sdktest.Run(t, frontend{}) }

func TestStateFollowsTheEnvironment(t *testing.T) {
	tests := map[string]struct {
		env   map[string]string
		state []string
	}{
		"defaults": {
			state: []string{"~/.config/opencode", "~/.cache/opencode", "~/.local/share/opencode", "~/.local/state/opencode"},
		},
		"every XDG directory moves its own part": {
			env: map[string]string{
				"XDG_CONFIG_HOME": "/x/config", "XDG_CACHE_HOME": "/x/cache",
				"XDG_DATA_HOME": "/x/data", "XDG_STATE_HOME": "/x/state",
			},
			state: []string{"/x/config/opencode", "/x/cache/opencode", "/x/data/opencode", "/x/state/opencode"},
		},
		"an empty one counts as unset": {
			env:   map[string]string{"XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": "/x"},
			state: []string{"~/.config/opencode", "/x/opencode", "~/.local/share/opencode", "~/.local/state/opencode"},
		},
	}
	for _, os := range []string{"linux", "darwin"} {
		for name, tt := range tests {
			t.Run(os+" "+name, func(t *testing.T) {
				req := sdk.Request{OS: os, Arch: "arm64", Home: "/home/me", Env: tt.env}
				c, err := frontend{}.Describe(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Validate(req); err != nil {
					t.Fatal(err)
				}
				var state []string
				for _, p := range c.State {
					state = append(state, p.Path)
				}
				if !slices.Equal(state, tt.state) {
					t.Errorf("state is %q, want %q", state, tt.state)
				}
				if want := []string{tt.state[2] + "/auth.json"}; !slices.Equal(c.Own, want) {
					t.Errorf("own is %q, want %q", c.Own, want)
				}
				for _, p := range []string{tt.state[0] + "/opencode.json", tt.state[0] + "/plugin", tt.state[1] + "/bin"} {
					if !slices.Contains(c.DenyWrite, p) {
						t.Errorf("%s can be written", p)
					}
				}
			})
		}
	}
}

func TestRelativeDirectoryIsAnError(t *testing.T) {
	req := sdk.Request{OS: "linux", Home: "/home/me", Env: map[string]string{"XDG_STATE_HOME": "state"}}
	if c, err := (frontend{}).Describe(t.Context(), req); err == nil {
		t.Errorf("XDG_STATE_HOME=state gives %v", c.State)
	}
}

// OpenCode 1 does not know the argument: it prints its help and stops.
func TestStandaloneIsForVersion2(t *testing.T) {
	c, err := frontend{}.Describe(t.Context(), sdk.Request{OS: "linux", Home: "/home/me"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []sdk.Arg{{Literal: "--standalone", Versions: ">= 2"}}; !slices.Equal(c.Args, want) {
		t.Errorf("args: %v, want %v", c.Args, want)
	}
}
