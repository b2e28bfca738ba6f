package main

import (
	"context"

	"github.com/research-harness/harness/sdk"
)

// frontend is oh-my-pi.
type frontend struct{}

func (frontend) Describe(_ context.Context, req sdk.Request) (sdk.Contribution, error) {
	c := sdk.Contribution{
		Name:    "omp",
		Command: "omp",
		Title:   "oh-my-pi",
		State:   []sdk.Path{{Path: "~/.omp", Kind: sdk.Dir}},
		// The sandbox is the boundary; a prompt for each tool adds nothing.
		Args:           []sdk.Arg{{Literal: "--approval-mode"}, {Literal: "yolo"}},
		TestedVersions: ">= 18, < 19",
		Ensure: []sdk.Path{
			// oh-my-pi dies at its start where this is missing and cannot be
			// written; the version spares it the first-run wizard, which
			// cannot end without writing it.
			{Path: "~/.omp/agent/config.yml", Kind: sdk.File, Content: []byte("setupVersion: 2\n")},
			{Path: "~/.omp/agent/extensions", Kind: sdk.Dir},
		},
	}
	for _, p := range c.Ensure {
		c.DenyWrite = append(c.DenyWrite, p.Path)
	}
	return c, nil
}
