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
		os    string
		env   map[string]string
		state []string
		own   []string
	}{
		"defaults": {
			os:    "linux",
			state: []string{"~/.claude", "~/.cache/claude-cli-nodejs", "~/.claude.json"},
			own:   []string{"~/.claude/.credentials.json", "~/.claude.json"},
		},
		"macOS keeps caches elsewhere": {
			os: "darwin", env: map[string]string{"XDG_CACHE_HOME": "/cache"},
			state: []string{"~/.claude", "~/Library/Caches/claude-cli-nodejs", "~/.claude.json"},
			own:   []string{"~/.claude/.credentials.json", "~/.claude.json"},
		},
		"XDG_CACHE_HOME": {
			os: "linux", env: map[string]string{"XDG_CACHE_HOME": "/big disk/cache/"},
			state: []string{"~/.claude", "/big disk/cache/claude-cli-nodejs", "~/.claude.json"},
			own:   []string{"~/.claude/.credentials.json", "~/.claude.json"},
		},
		"CLAUDE_CONFIG_DIR holds the global file too, and the default is not granted": {
			os: "linux", env: map[string]string{"CLAUDE_CONFIG_DIR": "/home/me/work claude"},
			state: []string{"/home/me/work claude", "~/.cache/claude-cli-nodejs"},
			own:   []string{"/home/me/work claude/.credentials.json"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := describe(t, tt.os, tt.env)
			var state []string
			for _, p := range c.State {
				state = append(state, p.Path)
			}
			if !slices.Equal(state, tt.state) {
				t.Errorf("state is %q, want %q", state, tt.state)
			}
			if !slices.Equal(c.Own, tt.own) {
				t.Errorf("own is %q, want %q", c.Own, tt.own)
			}
			config := state[0]
			if want := config + "/settings.json"; c.SettingsFile != want {
				t.Errorf("the settings file is %s, want %s", c.SettingsFile, want)
			}
			for _, name := range []string{"settings.json", "chrome", "hooks", "plugins", "skills", "local", "session-env"} {
				if !slices.Contains(c.DenyWrite, config+"/"+name) {
					t.Errorf("%s/%s can be written", config, name)
				}
			}
		})
	}
}

func TestRelativeDirectoryIsAnError(t *testing.T) {
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "XDG_CACHE_HOME"} {
		req := sdk.Request{OS: "linux", Home: "/home/me", Env: map[string]string{name: "claude"}}
		if c, err := (frontend{}).Describe(t.Context(), req); err == nil {
			t.Errorf("%s=claude gives %v", name, c.State)
		}
	}
}

// Claude Code's own sandbox cannot work inside another.
func TestInnerSandboxIsOff(t *testing.T) {
	c := describe(t, "linux", nil)
	if len(c.Overrides) != 1 || string(c.Overrides[0].Content) != "{\"sandbox\": {\"enabled\": false}}\n" {
		t.Errorf("overrides: %q", c.Overrides)
	}
	if want := []sdk.Arg{{Literal: "--settings"}, {Override: "claude-inner-off.json"}}; !slices.Equal(c.Args, want) {
		t.Errorf("args: %v, want %v", c.Args, want)
	}
	if len(c.RefusedArgs) != 1 || c.RefusedArgs[0].Arg != "--settings" {
		t.Errorf("refused: %v", c.RefusedArgs)
	}
}

func describe(t *testing.T, os string, env map[string]string) sdk.Contribution {
	t.Helper()
	req := sdk.Request{OS: os, Arch: "amd64", Home: "/home/me", Env: env}
	c, err := frontend{}.Describe(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(req); err != nil {
		t.Fatal(err)
	}
	return c
}
