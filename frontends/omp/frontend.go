package main

import (
	"context"

	"github.com/research-harness/harness/sdk"
)

type frontend struct{}

func (frontend) Describe(context.Context, sdk.Request) (sdk.Contribution, error) {
	return sdk.Contribution{}, nil
}
