package main

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/research-harness/harness/sdk"
)

const (
	rootVar    = "PI_CONFIG_DIR"       // a path below home
	agentVar   = "PI_CODING_AGENT_DIR" // absolute
	profileVar = "OMP_PROFILE"
	oldProfile = "PI_PROFILE" // what counts where the former is unset
)

// frontend is oh-my-pi.
type frontend struct{}

func (frontend) Describe(_ context.Context, req sdk.Request) (sdk.Contribution, error) {
	name := cmp.Or(req.Env[rootVar], ".omp")
	if slices.Contains(strings.Split(name, "/"), "..") {
		return sdk.Contribution{}, fmt.Errorf("%s %q leaves the home directory", rootVar, name)
	}
	root := path.Join("~", name)
	agent, err := req.EnvDir(agentVar, root+"/agent")
	if err != nil {
		return sdk.Contribution{}, err
	}

	c := sdk.Contribution{
		Name:    "omp",
		Command: "omp",
		Title:   "oh-my-pi",
		Env:     []string{rootVar, agentVar, profileVar, oldProfile},
		State:   []sdk.Path{{Path: root, Kind: sdk.Dir}},
		Own:     []string{agent + "/.env"}, // the keys
		// The sandbox is the boundary; a prompt for every tool adds nothing.
		Args: []sdk.Arg{{Literal: "--approval-mode"}, {Literal: "yolo"}},
		RefusedArgs: []sdk.RefusedArg{{
			Arg: "--profile", Reason: "set " + profileVar + " and run harness install --apply instead",
		}},
		TestedVersions: ">= 18, < 19",
	}
	if agent != root+"/agent" {
		c.State = append(c.State, sdk.Path{Path: agent, Kind: sdk.Dir})
	}

	protect(&c, root, agent)
	profile, ok := req.Env[profileVar]
	if !ok {
		profile = req.Env[oldProfile]
	}
	if profile == "" || profile == "default" {
		c.Protect(sdk.Below(root, sdk.Dir, "", "profiles")...)
	} else {
		root = path.Join(root, "profiles", profile)
		c.Own = append(c.Own, root+"/agent/.env")
		protect(&c, root, root+"/agent")
	}
	return c, nil
}

// protect keeps a session from what the next one runs or obeys when it finds
// it in the two directories of a profile. Their natives directory is of that
// kind too, but the program dies where it cannot unpack itself there.
func protect(c *sdk.Contribution, root, agent string) {
	// oh-my-pi also dies where this file is missing and cannot be written. The
	// version spares it a first-run wizard, which must write it at its end.
	c.Protect(sdk.Below(agent, sdk.File, "setupVersion: 2\n", "config.yml")...)
	c.Protect(sdk.Below(agent, sdk.File, "providers: {}\n", "models.yml")...)
	c.Protect(sdk.Below(agent, sdk.File, "{}\n",
		"settings.json", "mcp.json", ".mcp.json",
		"lsp.json", ".lsp.json", "lsp.yml", ".lsp.yml", "lsp.yaml", ".lsp.yaml",
		"dap.json", ".dap.json", "dap.yml", ".dap.yml", "dap.yaml", ".dap.yaml")...)
	c.Protect(sdk.Below(agent, sdk.File, "", ".env", "AGENTS.md", "APPEND_SYSTEM.md", "RULES.md", "SYSTEM.md")...)
	c.Protect(sdk.Below(agent, sdk.Dir, "",
		"agents", "commands", "extensions", "hooks", "instructions", "modules", "prompts", "rules", "skills", "tools")...)
	c.Protect(sdk.Below(root, sdk.File, "", ".env")...)
	c.Protect(sdk.Below(root, sdk.Dir, "", "plugins")...)
}
