package main

import (
	"context"

	"github.com/research-harness/harness/sdk"
)

// frontend is OpenCode.
type frontend struct{}

func (frontend) Describe(_ context.Context, req sdk.Request) (sdk.Contribution, error) {
	c := sdk.Contribution{
		Name:    "opencode",
		Command: "opencode",
		Title:   "OpenCode",
		// OpenCode 2 would else talk to a server in the background, which a
		// run outside the sandbox may have started. OpenCode 1 does not know
		// the argument and prints its help.
		Args:           []sdk.Arg{{Literal: "--standalone", Versions: ">= 2"}},
		TestedVersions: ">= 1.18, < 2",
	}
	dirs := make(map[string]string)
	for _, base := range []struct{ env, fallback string }{
		{"XDG_CONFIG_HOME", "~/.config"},
		{"XDG_DATA_HOME", "~/.local/share"},
		{"XDG_STATE_HOME", "~/.local/state"},
		{"XDG_CACHE_HOME", "~/.cache"},
	} {
		dir, err := req.EnvDir(base.env, base.fallback)
		if err != nil {
			return sdk.Contribution{}, err
		}
		dir += "/opencode"
		dirs[base.env] = dir
		c.Env = append(c.Env, base.env)
		c.State = append(c.State, sdk.Path{Path: dir, Kind: sdk.Dir})
	}

	// What a session could leave behind for the next one to run or to obey.
	config := dirs["XDG_CONFIG_HOME"]
	for _, name := range []string{"config.json", "opencode.json", "opencode.jsonc"} {
		c.Ensure = append(c.Ensure, sdk.Path{Path: config + "/" + name, Kind: sdk.File, Content: []byte("{}\n")})
	}
	c.Ensure = append(c.Ensure, sdk.Path{Path: config + "/AGENTS.md", Kind: sdk.File})
	for _, name := range []string{"agent", "agents", "command", "commands", "mode", "modes", "plugin", "plugins", "skill", "skills", "tool", "tools"} {
		c.Ensure = append(c.Ensure, sdk.Path{Path: config + "/" + name, Kind: sdk.Dir})
	}
	for _, p := range c.Ensure {
		c.DenyWrite = append(c.DenyWrite, p.Path)
	}
	return c, nil
}
