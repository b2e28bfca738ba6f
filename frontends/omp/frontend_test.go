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
		env      map[string]string
		state    []string
		denied   []string
		writable []string
	}{
		"defaults: other profiles are denied": {
			state:    []string{"~/.omp"},
			denied:   []string{"~/.omp/agent/config.yml", "~/.omp/agent/extensions", "~/.omp/plugins", "~/.omp/profiles"},
			writable: []string{"~/.omp/natives"},
		},
		"PI_CONFIG_DIR is a path below home": {
			env:    map[string]string{"PI_CONFIG_DIR": ".config/omp/"},
			state:  []string{"~/.config/omp"},
			denied: []string{"~/.config/omp/agent/config.yml", "~/.config/omp/profiles"},
		},
		"PI_CONFIG_DIR is below home also where it looks absolute": {
			env:    map[string]string{"PI_CONFIG_DIR": "/omp"},
			state:  []string{"~/omp"},
			denied: []string{"~/omp/agent/config.yml"},
		},
		"PI_CODING_AGENT_DIR adds a state": {
			env:      map[string]string{"PI_CODING_AGENT_DIR": "/srv/agent"},
			state:    []string{"~/.omp", "/srv/agent"},
			denied:   []string{"/srv/agent/config.yml", "/srv/agent/extensions", "~/.omp/plugins"},
			writable: []string{"~/.omp/agent/config.yml"},
		},
		"the profile in use is denied in part, the default one still": {
			env:      map[string]string{"OMP_PROFILE": "work"},
			state:    []string{"~/.omp"},
			denied:   []string{"~/.omp/profiles/work/agent/config.yml", "~/.omp/profiles/work/plugins", "~/.omp/agent/config.yml"},
			writable: []string{"~/.omp/profiles"},
		},
		"PI_PROFILE counts where OMP_PROFILE is unset": {
			env:    map[string]string{"PI_PROFILE": "work"},
			state:  []string{"~/.omp"},
			denied: []string{"~/.omp/profiles/work/agent/config.yml"},
		},
		"an empty OMP_PROFILE is the default profile": {
			env:    map[string]string{"OMP_PROFILE": "", "PI_PROFILE": "work"},
			state:  []string{"~/.omp"},
			denied: []string{"~/.omp/profiles"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			req := sdk.Request{OS: "linux", Arch: "amd64", Home: "/home/me", Env: tt.env}
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
			for _, p := range tt.denied {
				if !slices.Contains(c.DenyWrite, p) {
					t.Errorf("%s can be written", p)
				}
			}
			for _, p := range tt.writable {
				if slices.Contains(c.DenyWrite, p) {
					t.Errorf("%s cannot be written", p)
				}
			}
		})
	}
}

func TestDirectoryThatCannotBeProtectedIsAnError(t *testing.T) {
	for name, value := range map[string]string{"PI_CONFIG_DIR": "../omp", "PI_CODING_AGENT_DIR": "agent"} {
		req := sdk.Request{OS: "linux", Home: "/home/me", Env: map[string]string{name: value}}
		if c, err := (frontend{}).Describe(t.Context(), req); err == nil {
			t.Errorf("%s=%s gives %v", name, value, c.State)
		}
	}
}

// Without the version oh-my-pi shows a first-run wizard, and dies at its end.
func TestConfigSaysThatSetupIsDone(t *testing.T) {
	c, err := frontend{}.Describe(t.Context(), sdk.Request{OS: "linux", Home: "/home/me"})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(c.Ensure, func(p sdk.Path) bool { return p.Path == "~/.omp/agent/config.yml" })
	if i < 0 || string(c.Ensure[i].Content) != "setupVersion: 2\n" {
		t.Errorf("ensured: %v", c.Ensure)
	}
}
