package main

import (
	"context"

	"github.com/research-harness/harness/sdk"
)

// innerOff turns Claude Code's own sandbox off, which fails inside srt's.
const innerOff = "claude-inner-off.json"

// frontend is Claude Code.
type frontend struct{}

func (frontend) Describe(_ context.Context, req sdk.Request) (sdk.Contribution, error) {
	config, err := req.EnvDir("CLAUDE_CONFIG_DIR", "~/.claude")
	if err != nil {
		return sdk.Contribution{}, err
	}
	// With the variable set, Claude Code keeps this file in the directory.
	global := "~/.claude.json"
	if config != "~/.claude" {
		global = config + "/.claude.json"
	}
	cache := "~/Library/Caches"
	if req.OS != "darwin" {
		if cache, err = req.EnvDir("XDG_CACHE_HOME", "~/.cache"); err != nil {
			return sdk.Contribution{}, err
		}
	}

	c := sdk.Contribution{
		Name:    "claude",
		Command: "claude",
		Title:   "Claude Code",
		Env:     []string{"CLAUDE_CONFIG_DIR", "XDG_CACHE_HOME"},
		State: []sdk.Path{
			{Path: config, Kind: sdk.Dir},
			{Path: cache + "/claude-cli-nodejs", Kind: sdk.Dir},
		},
		Own:            []string{global},
		Args:           []sdk.Arg{{Literal: "--settings"}, {Override: innerOff}},
		Overrides:      []sdk.Override{{Name: innerOff, Content: []byte("{\"sandbox\": {\"enabled\": false}}\n")}},
		RefusedArgs:    []sdk.RefusedArg{{Arg: "--settings", Reason: "put more settings into " + config + "/settings.json"}},
		TestedVersions: ">= 2.1, < 3",
		SettingsFile:   config + "/settings.json",
	}
	if config == "~/.claude" {
		c.State = append(c.State, sdk.Path{Path: global, Kind: sdk.File, Content: []byte("{}\n")})
	}
	// What a session could leave behind for the next one to run or to obey.
	for _, name := range []string{"settings.json", "settings.local.json"} {
		c.Ensure = append(c.Ensure, sdk.Path{Path: config + "/" + name, Kind: sdk.File, Content: []byte("{}\n")})
	}
	c.Ensure = append(c.Ensure, sdk.Path{Path: config + "/CLAUDE.md", Kind: sdk.File})
	for _, name := range []string{"agents", "commands", "hooks", "output-styles", "plugins", "rules", "skills"} {
		c.Ensure = append(c.Ensure, sdk.Path{Path: config + "/" + name, Kind: sdk.Dir})
	}
	for _, p := range c.Ensure {
		c.DenyWrite = append(c.DenyWrite, p.Path)
	}
	return c, nil
}
