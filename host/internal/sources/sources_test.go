package sources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/defaults"
	"github.com/research-harness/harness/host/internal/system"
)

func TestDirectoryReplacesWhatItHolds(t *testing.T) {
	dir := t.TempDir()
	network := filepath.Join(dir, defaults.Network)
	if err := os.MkdirAll(filepath.Dir(network), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(network, []byte("deny = ['*']"), 0o600); err != nil {
		t.Fatal(err)
	}
	for rule, tt := range map[string]struct {
		flag string
		env  []string
	}{
		"by the flag":                 {dir, nil},
		"by the variable":             {"", []string{EnvDir + "=" + dir}},
		"by the flag before it":       {dir, []string{EnvDir + "=/nowhere"}},
		"relative to the current dir": {filepath.Base(dir), nil},
	} {
		t.Run(rule, func(t *testing.T) {
			s, err := Load(&system.System{Dir: filepath.Dir(dir), Env: tt.env}, tt.flag)
			if err != nil {
				t.Fatal(err)
			}
			if s.Dir != dir || s.Network.Name != network || string(s.Network.Data) != "deny = ['*']" || s.Network.Embedded {
				t.Errorf("got %q, %q, %q", s.Dir, s.Network.Name, s.Network.Data)
			}
			if s.Policy.Name != defaults.Policy || !s.Policy.Embedded || string(s.Policy.Data) != string(defaults.Read(defaults.Policy)) {
				t.Errorf("policy is %q", s.Policy.Name)
			}
		})
	}
}

func TestEverythingIsEmbedded(t *testing.T) {
	s, err := Load(&system.System{}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []Source{s.Template, s.Network, s.Policy, s.Agentbox} {
		if !source.Embedded || len(source.Data) == 0 {
			t.Errorf("%s: embedded %v, %d bytes", source.Name, source.Embedded, len(source.Data))
		}
	}
	if s.Dir != "" {
		t.Errorf("directory is %q", s.Dir)
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(dir, "b", defaults.Policy)
	if err := os.MkdirAll(policy, 0o700); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "c", defaults.Policy)
	if err := os.MkdirAll(filepath.Dir(dangling), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone", dangling); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, want string }{
		{filepath.Join(dir, "none"), "none: --source: there is no such directory"},
		{file, "file: --source: is not a directory"},
		{filepath.Join(dir, "b"), "sandbox/policy.toml: is a directory"},
		{filepath.Join(dir, "c"), "sandbox/policy.toml: is a symbolic link to gone, which does not exist"},
	} {
		_, err := Load(&system.System{}, tt.dir)
		if err == nil || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}
