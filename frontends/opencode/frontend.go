package main

import (
	"context"

	"github.com/research-harness/harness/sdk"
)

// frontend is OpenCode.
type frontend struct{}

func (frontend) Describe(_ context.Context, req sdk.Request) (sdk.Contribution, error) {
	// OpenCode follows these on every system, macOS included.
	bases := []struct{ variable, fallback string }{
		{"XDG_CONFIG_HOME", "~/.config"},
		{"XDG_CACHE_HOME", "~/.cache"},
		{"XDG_DATA_HOME", "~/.local/share"},
		{"XDG_STATE_HOME", "~/.local/state"},
	}
	c := sdk.Contribution{
		Name:    "opencode",
		Command: "opencode",
		Title:   "OpenCode",
		// OpenCode 2 otherwise talks to a server in the background, which a
		// run outside the sandbox may have started. OpenCode 1 does not know
		// the argument and prints its help.
		Args:           []sdk.Arg{{Literal: "--standalone", Versions: ">= 2"}},
		TestedVersions: ">= 1.18, < 2",
	}
	for _, b := range bases {
		base, err := req.EnvDir(b.variable, b.fallback)
		if err != nil {
			return sdk.Contribution{}, err
		}
		c.Env = append(c.Env, b.variable)
		c.State = append(c.State, sdk.Path{Path: base + "/opencode", Kind: sdk.Dir})
	}
	config, cache, data := c.State[0].Path, c.State[1].Path, c.State[2].Path
	c.Own = []string{data + "/auth.json"} // the sign-ins

	// What OpenCode runs or obeys when it finds it there. It dies where the
	// configuration directory as a whole cannot be written.
	c.Protect(sdk.Below(config, sdk.File, "{}\n",
		"config.json", "opencode.json", "opencode.jsonc", "package.json", "tui.json", "tui.jsonc")...)
	c.Protect(sdk.Below(config, sdk.File, "", "AGENTS.md")...)
	c.Protect(sdk.Below(config, sdk.Dir, "",
		"agent", "agents", "command", "commands", "mode", "modes", "node_modules",
		"plugin", "plugins", "skill", "skills", "tool", "tools")...)
	// A file of this name is taken over into the configuration and removed.
	c.Protect(sdk.Below(config, sdk.Dir, "", "config")...)
	c.Protect(sdk.Below(cache, sdk.Dir, "", "bin", "packages")...)
	return c, nil
}
