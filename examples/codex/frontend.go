package main

import (
	"context"

	"github.com/research-harness/harness/sdk"
)

// describe tells what Codex CLI needs. It uses nothing but req.
func describe(_ context.Context, req sdk.Request) (sdk.Contribution, error) {
	dir, err := req.EnvDir("CODEX_HOME", "~/.codex")
	if err != nil {
		return sdk.Contribution{}, err
	}
	c := sdk.Contribution{
		Name:    "codex",
		Command: "codex",
		Title:   "Codex CLI",
		Env:     []string{"CODEX_HOME"},
		// Logins, sessions, logs and databases.
		State: []sdk.Path{{Path: dir, Kind: sdk.Dir}},
		// Codex's own sandbox fails inside another, which is the boundary.
		Args:           []sdk.Arg{{Literal: "--dangerously-bypass-approvals-and-sandbox"}},
		RefusedArgs:    []sdk.RefusedArg{{Arg: "--sandbox", Reason: "the session is in the harness's sandbox, inside which Codex's own fails"}},
		TestedVersions: ">= 0.171, < 0.172",
	}
	// Commands that Codex runs by itself: MCP servers and notify in
	// config.toml, hooks, and the rules of what needs no approval.
	for _, p := range []sdk.Path{
		{Path: dir + "/config.toml", Kind: sdk.File},
		{Path: dir + "/hooks.json", Kind: sdk.File, Content: []byte("{}\n")},
		{Path: dir + "/rules", Kind: sdk.Dir},
		{Path: dir + "/prompts", Kind: sdk.Dir},
		{Path: dir + "/AGENTS.md", Kind: sdk.File},
	} {
		c.Ensure = append(c.Ensure, p)
		c.DenyWrite = append(c.DenyWrite, p.Path)
	}
	return c, nil
}
