package main

import (
	"context"

	"github.com/research-harness/harness/sdk"
)

const (
	configVar = "CLAUDE_CONFIG_DIR"
	cacheVar  = "XDG_CACHE_HOME"

	// innerOff turns Claude Code's own sandbox off, which fails inside srt's.
	innerOff = "claude-inner-off.json"
)

// frontend is Claude Code.
type frontend struct{}

func (frontend) Describe(_ context.Context, req sdk.Request) (sdk.Contribution, error) {
	config, err := req.EnvDir(configVar, "~/.claude")
	if err != nil {
		return sdk.Contribution{}, err
	}
	cache := "~/Library/Caches"
	if req.OS != "darwin" {
		if cache, err = req.EnvDir(cacheVar, "~/.cache"); err != nil {
			return sdk.Contribution{}, err
		}
	}
	settings := config + "/settings.json"

	c := sdk.Contribution{
		Name:    "claude",
		Command: "claude",
		Title:   "Claude Code",
		Env:     []string{configVar, cacheVar},
		State: []sdk.Path{
			{Path: config, Kind: sdk.Dir},
			{Path: cache + "/claude-cli-nodejs", Kind: sdk.Dir},
		},
		// The sign-in.
		Own:            []string{config + "/.credentials.json"},
		Args:           []sdk.Arg{{Literal: "--settings"}, {Override: innerOff}},
		Overrides:      []sdk.Override{{Name: innerOff, Content: []byte("{\"sandbox\": {\"enabled\": false}}\n")}},
		RefusedArgs:    []sdk.RefusedArg{{Arg: "--settings", Reason: "put more settings into " + settings}},
		TestedVersions: ">= 2.1, < 3",
		SettingsFile:   settings,
	}
	if config == "~/.claude" {
		// Elsewhere the file lies in the directory. It names MCP servers, so a
		// session can make the next one run a program; but Claude Code does
		// not start where it cannot write it.
		c.State = append(c.State, sdk.Path{Path: "~/.claude.json", Kind: sdk.File, Content: []byte("{}\n")})
		c.Own = append(c.Own, "~/.claude.json")
	}

	// What Claude Code runs or obeys without asking when it finds it there. Of
	// that kind are also the shell snapshots, but without a new one its
	// commands get the PATH of a login shell instead of the caller's.
	c.Protect(sdk.Below(config, sdk.File, "{}\n", "settings.json", "settings.local.json", "daemon.json")...)
	c.Protect(sdk.Below(config, sdk.File, "", "CLAUDE.md")...)
	c.Protect(sdk.Below(config, sdk.Dir, "",
		"agents", "chrome", "commands", "cowork_plugins", "daemon", "dev-mods", "hooks", "jobs", "local", "output-styles",
		"plugins", "routines", "rules", "session-env", "skills", "workflows")...)
	return c, nil
}
