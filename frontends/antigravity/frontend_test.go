package main

import (
	"slices"
	"testing"

	"github.com/research-harness/harness/sdk"
	"github.com/research-harness/harness/sdk/sdktest"
)

func TestConformance(t *testing.T) { sdktest.Run(t, frontend{}) }

func TestDescribe(t *testing.T) {
	c, err := frontend{}.Describe(t.Context(), sdk.Request{OS: "linux", Home: "/home/me"})
	if err != nil {
		t.Fatal(err)
	}
	// The rest of ~/.gemini is the Gemini CLI's, with its own sign-in.
	var state []string
	for _, p := range c.State {
		state = append(state, p.Path)
	}
	if want := []string{"~/.gemini/antigravity-cli", "~/.gemini/config"}; !slices.Equal(state, want) {
		t.Errorf("state is %q, want %q", state, want)
	}
	for _, p := range []string{"~/.gemini/config/hooks.json", "~/.gemini/config/mcp_config.json", "~/.gemini/antigravity-cli/bin"} {
		if !slices.Contains(c.DenyWrite, p) {
			t.Errorf("%s can be written", p)
		}
	}
	if len(c.Args) > 0 {
		t.Errorf("args: %v", c.Args)
	}
}
