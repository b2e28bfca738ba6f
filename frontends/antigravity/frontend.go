package main

import (
	"context"

	"github.com/research-harness/harness/sdk"
)

// frontend is the Antigravity CLI. The program cannot be had without an
// account; what follows is what its users report.
type frontend struct{}

func (frontend) Describe(context.Context, sdk.Request) (sdk.Contribution, error) {
	// The rest of ~/.gemini belongs to another program.
	const cli, config = "~/.gemini/antigravity-cli", "~/.gemini/config"
	c := sdk.Contribution{
		Name:    "antigravity",
		Command: "agy",
		Title:   "Antigravity",
		State:   []sdk.Path{{Path: cli, Kind: sdk.Dir}, {Path: config, Kind: sdk.Dir}},
		Own:     []string{cli + "/antigravity-oauth-token"}, // the sign-in
	}
	// What Antigravity runs or obeys when it finds it there.
	c.Protect(sdk.Below(config, sdk.File, "{}\n", "hooks.json", "mcp_config.json")...)
	c.Protect(sdk.Below(config, sdk.Dir, "", "agents", "plugins", "skills")...)
	c.Protect(sdk.Below(cli, sdk.Dir, "", "bin", "plugins")...)
	return c, nil
}
