package main

import (
	"context"

	"github.com/research-harness/harness/sdk"
)

// frontend is the Antigravity CLI.
type frontend struct{}

func (frontend) Describe(_ context.Context, req sdk.Request) (sdk.Contribution, error) {
	c := sdk.Contribution{
		Name:    "antigravity",
		Command: "agy",
		Title:   "Antigravity",
		// The rest of ~/.gemini is another program's.
		State: []sdk.Path{
			{Path: "~/.gemini/antigravity-cli", Kind: sdk.Dir},
			{Path: "~/.gemini/config", Kind: sdk.Dir},
		},
		// What a session could leave behind for the next one to run.
		Ensure: []sdk.Path{
			{Path: "~/.gemini/config/hooks.json", Kind: sdk.File, Content: []byte("{}\n")},
			{Path: "~/.gemini/config/mcp_config.json", Kind: sdk.File, Content: []byte("{}\n")},
			{Path: "~/.gemini/antigravity-cli/bin", Kind: sdk.Dir},
		},
	}
	for _, p := range c.Ensure {
		c.DenyWrite = append(c.DenyWrite, p.Path)
	}
	return c, nil
}
