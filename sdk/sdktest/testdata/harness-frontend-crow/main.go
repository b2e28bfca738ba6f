// A plugin for the tests of sdktest. It misbehaves as the name of its
// directory says.
package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/research-harness/harness/sdk"
)

func main() {
	mode := filepath.Base(filepath.Dir(os.Args[0]))
	switch mode {
	case "exits":
		os.Exit(1)
	case "leaves a child":
		if err := exec.Command("/bin/sleep", "60").Start(); err != nil {
			panic(err)
		}
	}
	sdk.Serve(sdk.Func(func(_ context.Context, req sdk.Request) (sdk.Contribution, error) {
		if mode == "writes" {
			if err := os.WriteFile(req.Home+"/.crow", nil, 0o600); err != nil {
				return sdk.Contribution{}, err
			}
		}
		return sdk.Contribution{
			Name: "crow", Command: "crow", Title: "Crow",
			State: []sdk.Path{{Path: "~/.crow", Kind: sdk.Dir}},
		}, nil
	}))
}
