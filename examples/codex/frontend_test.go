package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/research-harness/harness/sdk"
	"github.com/research-harness/harness/sdk/sdktest"
)

func TestFrontend(t *testing.T) { sdktest.Run(t, sdk.Func(describe)) }

func TestExecutable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "harness-frontend-codex")
	if out, err := exec.Command("go", "build", "-o", file, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sdktest.RunExecutable(t, file)
}

func TestState_follows_the_variable(t *testing.T) {
	got, err := describe(t.Context(), sdk.Request{OS: "linux", Home: "/home/u", Env: map[string]string{"CODEX_HOME": "/data/x"}})
	if err != nil || got.State[0].Path != "/data/x" {
		t.Errorf("state is %v, %v", got.State, err)
	}
}
