package oci_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/internal/oci"
	"github.com/research-harness/harness/host/internal/oci/ocitest"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
)

var (
	linux = bytes.Repeat([]byte("linux"), 10_000)
	mac   = bytes.Repeat([]byte("mac"), 10_000)
)

func TestPull_picks_the_platform_and_pins_the_digest(t *testing.T) {
	addr, home := ocitest.Registry(t), t.TempDir()
	s := &system.System{OS: "linux", Arch: "amd64", Dir: home}
	ref := "oci://" + addr + "/frontends/crow:1.0"
	digest, err := oci.Push(t.Context(), s, home, ref, []oci.Executable{
		{Platform: "linux/amd64", FileName: "harness-frontend-crow", Data: linux},
		{Platform: "darwin/arm64", FileName: "harness-frontend-crow", Data: mac},
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := oci.Push(t.Context(), s, home, ref, []oci.Executable{
		{Platform: "linux/amd64", FileName: "harness-frontend-crow", Data: linux},
		{Platform: "darwin/arm64", FileName: "harness-frontend-crow", Data: mac},
	})
	if err != nil || again != digest {
		t.Errorf("a second push gives %s, %v, want %s", again, err, digest)
	}
	for _, tt := range []struct {
		goos, arch string
		want       []byte
	}{{"linux", "amd64", linux}, {"darwin", "arm64", mac}} {
		got, err := oci.Pull(t.Context(), &system.System{OS: tt.goos, Arch: tt.arch, Dir: home}, home, ref)
		if err != nil {
			t.Fatal(err)
		}
		want := "oci://" + addr + "/frontends/crow@" + digest
		if !bytes.Equal(got.Data, tt.want) || got.FileName != "harness-frontend-crow" || got.Source != want {
			t.Errorf("%s/%s: pulled %d bytes, %s, %s, want %s", tt.goos, tt.arch, len(got.Data), got.FileName, got.Source, want)
		}
		pinned, err := oci.Pull(t.Context(), &system.System{OS: tt.goos, Arch: tt.arch, Dir: home}, home, got.Source)
		if err != nil || !bytes.Equal(pinned.Data, tt.want) {
			t.Errorf("by digest: %v", err)
		}
	}
	_, err = oci.Pull(t.Context(), &system.System{OS: "linux", Arch: "riscv64", Dir: home}, home, ref)
	if err == nil || err.Error() != ref+": has no plugin for linux/riscv64; it has linux/amd64, darwin/arm64" {
		t.Errorf("error is %v", err)
	}
}

func TestPull_takes_a_plugin_that_runs_everywhere(t *testing.T) {
	addr, home := ocitest.Registry(t), t.TempDir()
	s := &system.System{OS: "linux", Arch: "amd64", Dir: home}
	ref := "oci://" + addr + "/crow:latest"
	if _, err := oci.Push(t.Context(), s, home, ref, []oci.Executable{{FileName: "harness-frontend-crow", Data: linux}}); err != nil {
		t.Fatal(err)
	}
	got, err := oci.Pull(t.Context(), &system.System{OS: "plan9", Arch: "arm", Dir: home}, home, ref)
	if err != nil || !bytes.Equal(got.Data, linux) {
		t.Errorf("error is %v", err)
	}
}

func TestPull_uses_the_credentials_of_docker(t *testing.T) {
	addr, home := ocitest.Registry(t, "ann:secret"), t.TempDir()
	s := &system.System{OS: "linux", Arch: "amd64", Dir: home}
	ref := "oci://" + addr + "/crow:1"
	push := func() error {
		_, err := oci.Push(t.Context(), s, home, ref, []oci.Executable{{FileName: "harness-frontend-crow", Data: linux}})
		return err
	}
	err := push()
	if err == nil || !strings.Contains(err.Error(), "the registry refuses access") || problem.HintOf(err) != "docker login "+addr {
		t.Errorf("error is %v", err)
	}
	config := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, addr, base64.StdEncoding.EncodeToString([]byte("ann:secret")))
	for _, dir := range []string{filepath.Join(home, ".docker"), filepath.Join(home, "elsewhere")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := push(); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		os.RemoveAll(dir)
		s.Env = []string{"DOCKER_CONFIG=elsewhere"}
	}
}

func TestPull_refuses_a_damaged_download(t *testing.T) {
	for _, mode := range []string{"truncate", "corrupt"} {
		addr, home := ocitest.Registry(t, mode), t.TempDir()
		s := &system.System{OS: "linux", Arch: "amd64", Dir: home}
		ref := "oci://" + addr + "/crow:1"
		if _, err := oci.Push(t.Context(), s, home, ref, []oci.Executable{{FileName: "harness-frontend-crow", Data: linux}}); err != nil {
			t.Fatal(err)
		}
		_, err := oci.Pull(t.Context(), s, home, ref)
		if err == nil || !strings.Contains(err.Error(), "the download is not what its digest says") {
			t.Errorf("%s: error is %v", mode, err)
		}
	}
}

func TestPull_names_a_bad_reference(t *testing.T) {
	addr, home := ocitest.Registry(t), t.TempDir()
	s := &system.System{OS: "linux", Arch: "amd64", Dir: home}
	for _, tt := range []struct{ ref, want string }{
		{"oci://", "is not the name of a plugin in a registry"},
		{"oci://" + addr + "/crow", "is not the name of a plugin in a registry"},
		{"oci://" + addr + "/Crow:1", "is not the name of a plugin in a registry"},
		{"oci://" + addr + "/crow:1", "is not in the registry"},
		{"oci://127.0.0.1:1/crow:1", "connection refused"},
	} {
		_, err := oci.Pull(t.Context(), s, home, tt.ref)
		if err == nil || !strings.HasPrefix(err.Error(), tt.ref+": ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error is %v, want %s", tt.ref, err, tt.want)
		}
	}
	if _, err := oci.Push(t.Context(), s, home, "oci://"+addr+"/crow@sha256:"+strings.Repeat("0", 64), nil); err == nil || !strings.Contains(err.Error(), "has no tag") {
		t.Errorf("error is %v", err)
	}
}
