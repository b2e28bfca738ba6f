package main_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	profileFile = ".config/research-harness/profile.toml"
	template    = `{"sandbox": {"filesystem": {"allowWrite": ["~/Research"]}}}`
	policyFile  = "[read]\nallow = []\n"
	frontendX   = policyFile + "[frontend.claude]\nstate = [\"~/.claude\"]\ndeny_write = []\n"
)

// Bad input ends with status 2, one line that names file and key, at most a
// hint, and not a byte changed, whatever the verb.
func TestBadInput(t *testing.T) {
	tests := map[string]struct {
		files map[string]string // below home
		env   []string
		args  []string // instead of install --apply
		want  []string // what the line holds
	}{
		// The profile.
		"an unknown table":                    {files: map[string]string{profileFile: "[setpu]\n"}, want: []string{profileFile, "setpu"}},
		"an unknown key":                      {files: map[string]string{profileFile: "[setup]\nfrontend = []\n"}, want: []string{profileFile, "setup.frontend"}},
		"a wrong type":                        {files: map[string]string{profileFile: "[sandbox]\ntoolchain_caches = \"no\"\n"}, want: []string{profileFile, "sandbox.toolchain_caches"}},
		"a list that holds another type":      {files: map[string]string{profileFile: "[setup]\nworkspaces = [1]\n"}, want: []string{profileFile, "setup.workspaces"}},
		"no TOML":                             {files: map[string]string{profileFile: "[setup\n"}, want: []string{profileFile}},
		"a chosen frontend that none serves":  {files: map[string]string{profileFile: "[setup]\nfrontends = [\"cursor\"]\n"}, want: []string{"cursor"}},
		"a built-in placeholder of one's own": {files: map[string]string{profileFile: "[template]\nworkspaces = []\n"}, want: []string{profileFile, "workspaces"}},
		"a named profile that is missing":     {args: []string{"install", "--apply", "--profile", "none.toml"}, want: []string{"none.toml"}},
		"a profile in the environment that is missing": {
			env: []string{"RESEARCH_HARNESS_PROFILE=/nowhere/p.toml"}, want: []string{"/nowhere/p.toml"},
		},
		"a URL in the overlay": {files: map[string]string{profileFile: "[network]\nallow = [\"https://example.org\"]\n"}, want: []string{profileFile, "https://example.org"}},
		"a URL in the overlay although claude is not chosen": {
			files: map[string]string{profileFile: "[setup]\nfrontends = [\"omp\"]\n[network]\nallow = [\"https://example.org\"]\n"}, want: []string{profileFile, "https://example.org"},
		},

		// The domains.
		"a path":                             {files: map[string]string{"src/settings/network.toml": "allow = [\"example.org/x\"]\n"}, want: []string{"network.toml", "example.org/x"}},
		"a star":                             {files: map[string]string{"src/settings/network.toml": "allow = [\"*\"]\n"}, want: []string{"network.toml", "*"}},
		"a star before one label":            {files: map[string]string{"src/settings/network.toml": "deny = [\"*.com\"]\n"}, want: []string{"network.toml", "*.com"}},
		"a CIDR":                             {files: map[string]string{"src/settings/network.toml": "deny = [\"10.0.0.0/8\"]\n"}, want: []string{"network.toml", "10.0.0.0/8"}},
		"a bare IPv6 address":                {files: map[string]string{"src/settings/network.toml": "allow = [\"::1\"]\n"}, want: []string{"network.toml", "::1"}},
		"an empty domain":                    {files: map[string]string{"src/settings/network.toml": "allow = [\"\"]\n"}, want: []string{"network.toml", "allow"}},
		"a domain with a space":              {files: map[string]string{"src/settings/network.toml": "allow = [\"a .org\"]\n"}, want: []string{"network.toml", "a .org"}},
		"a port out of range":                {files: map[string]string{"src/settings/network.toml": "allow = [\"a.org:65536\"]\n"}, want: []string{"network.toml", "a.org:65536"}},
		"an unknown key of domains":          {files: map[string]string{"src/settings/network.toml": "allowed = []\n"}, want: []string{"network.toml", "allowed"}},
		"a source directory that is missing": {args: []string{"install", "--apply", "--source", "nowhere"}, want: []string{"nowhere"}},

		// policy.toml.
		"no read table":                    {files: map[string]string{"src/sandbox/policy.toml": ""}, want: []string{"policy.toml", "read"}},
		"no read.allow":                    {files: map[string]string{"src/sandbox/policy.toml": "[read]\n"}, want: []string{"policy.toml", "read.allow"}},
		"an unknown key of read":           {files: map[string]string{"src/sandbox/policy.toml": "[read]\nallow = []\ndeny = []\n"}, want: []string{"policy.toml", "read.deny"}},
		"an unknown table of the policy":   {files: map[string]string{"src/sandbox/policy.toml": policyFile + "[write]\n"}, want: []string{"policy.toml", "write"}},
		"no list":                          {files: map[string]string{"src/sandbox/policy.toml": "[read]\nallow = \"~/x\"\n"}, want: []string{"policy.toml", "read.allow"}},
		"no list of strings":               {files: map[string]string{"src/sandbox/policy.toml": "[read]\nallow = [[]]\n"}, want: []string{"policy.toml", "read.allow"}},
		"a path that is not below home":    {files: map[string]string{"src/sandbox/policy.toml": "[read]\nallow = [\"/etc\"]\n"}, want: []string{"policy.toml", "/etc"}},
		"home itself":                      {files: map[string]string{"src/sandbox/policy.toml": "[read]\nallow = [\"~/\"]\n"}, want: []string{"policy.toml", "~/"}},
		"a .. segment":                     {files: map[string]string{"src/sandbox/policy.toml": "[read]\nallow = [\"~/a/../..\"]\n"}, want: []string{"policy.toml", "~/a/../.."}},
		"an empty segment":                 {files: map[string]string{"src/sandbox/policy.toml": "[read]\nallow = [\"~/a//b\"]\n"}, want: []string{"policy.toml", "~/a//b"}},
		"a NUL":                            {files: map[string]string{"src/sandbox/policy.toml": "[read]\nallow = [\"~/a\\u0000\"]\n"}, want: []string{"policy.toml"}},
		"a frontend without own":           {files: map[string]string{"src/sandbox/policy.toml": frontendX}, want: []string{"policy.toml", "frontend.claude", "own"}},
		"a frontend that no plugin serves": {files: map[string]string{"src/sandbox/policy.toml": policyFile + "[frontend.x]\nstate = []\ndeny_write = []\nown = []\n"}, want: []string{"policy.toml", "frontend.x"}},
		"a state nested in another's": {
			files: map[string]string{"src/sandbox/policy.toml": policyFile + "[frontend.omp]\nstate = [\"~/.claude/omp\"]\ndeny_write = []\nown = []\n"},
			want:  []string{"claude", "omp", "~/.claude/omp"},
		},

		// The template.
		"no JSON":                  {files: map[string]string{"src/settings/settings.proposal.json": "{"}, want: []string{"settings.proposal.json"}},
		"no object":                {files: map[string]string{"src/settings/settings.proposal.json": "[]"}, want: []string{"settings.proposal.json"}},
		"no sandbox":               {files: map[string]string{"src/settings/settings.proposal.json": "{}"}, want: []string{"settings.proposal.json", "sandbox"}},
		"a list that is none":      {files: map[string]string{"src/settings/settings.proposal.json": `{"sandbox": {"filesystem": {"allowWrite": "~/x"}}}`}, want: []string{"settings.proposal.json", "allowWrite"}},
		"a relative path":          {files: map[string]string{"src/settings/settings.proposal.json": `{"sandbox": {"filesystem": {"denyWrite": ["**/.git/hooks"]}}}`}, want: []string{"settings.proposal.json", "denyWrite", "**/.git/hooks"}},
		"an unknown placeholder":   {files: map[string]string{"src/settings/settings.proposal.json": `{"sandbox": {"filesystem": {"allowWrite": ["{nobody}"]}}}`}, want: []string{"settings.proposal.json", "nobody"}},
		"two lists in one element": {files: map[string]string{"src/settings/settings.proposal.json": `{"sandbox": {"filesystem": {"allowWrite": ["{workspaces}{toolchain_caches}"]}}}`}, want: []string{"settings.proposal.json", "toolchain_caches"}},
		"a list outside of a list": {files: map[string]string{"src/settings/settings.proposal.json": `{"model": "{workspaces}", "sandbox": {}}`}, want: []string{"settings.proposal.json", "workspaces"}},
		"a key that stands twice":  {files: map[string]string{"src/settings/settings.proposal.json": `{"sandbox": {}, "sandbox": {}}`}, want: []string{"settings.proposal.json", "sandbox"}},

		// The files that install meets.
		"a settings file that is a link":           {files: map[string]string{".config/research-harness/sandbox/claude.json": "-> /tmp/x"}, want: []string{"sandbox/claude.json"}},
		"an agentbox that is a directory":          {files: map[string]string{".local/bin/agentbox/x": ""}, want: []string{"bin/agentbox"}},
		"a state of the wrong kind":                {files: map[string]string{".claude": "x"}, want: []string{".claude"}},
		"a state that is a dangling link":          {files: map[string]string{".omp": "-> /nowhere"}, want: []string{".omp"}},
		"a manifest that is none":                  {files: map[string]string{".config/research-harness/installed.json": "["}, want: []string{"installed.json"}},
		"Claude Code's settings that are no JSON":  {files: map[string]string{".claude/settings.json": "{,}"}, want: []string{"settings.json"}},
		"Claude Code's settings that are a folder": {files: map[string]string{".claude/settings.json/x": ""}, want: []string{"settings.json"}},

		// Usage.
		"an unknown verb":                    {args: []string{"instal"}, want: []string{"instal"}},
		"an unknown flag":                    {args: []string{"install", "--aply"}, want: []string{"--aply"}},
		"render without a frontend":          {args: []string{"render"}, want: []string{"render", "FRONTEND"}},
		"render of an unknown one":           {args: []string{"render", "cursor"}, want: []string{"cursor", "claude"}},
		"install with an argument":           {args: []string{"install", "claude"}, want: []string{"claude"}},
		"no home":                            {env: []string{"HOME="}, want: []string{"HOME"}},
		"a relative home":                    {env: []string{"HOME=home"}, want: []string{"HOME"}},
		"the root directory as home":         {env: []string{"HOME=/"}, want: []string{"HOME"}},
		"a home that does not exist":         {env: []string{"HOME=/nowhere/at/all"}, want: []string{"HOME"}},
		"a plugin directory that is missing": {args: []string{"install", "--plugins", "nowhere"}, want: []string{"nowhere"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			if _, ok := tt.files[".local/bin/agentbox/x"]; !ok {
				u.settle()
			}
			for file, content := range tt.files {
				if target, ok := strings.CutPrefix(content, "-> "); ok {
					path := filepath.Join(u.home, file)
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.Symlink(target, path); err != nil {
						t.Fatal(err)
					}
					continue
				}
				u.write(file, content)
			}
			if _, err := os.Stat(filepath.Join(u.home, "src")); err == nil {
				u.env = append(u.env, "RESEARCH_HARNESS_SOURCE="+filepath.Join(u.home, "src"))
			}
			before := u.tree()
			u.env = append(u.env, tt.env...)
			args := tt.args
			if args == nil {
				args = []string{"install", "--apply"}
			}
			r := u.must(2, args...)
			checkError(t, r, tt.want)
			if after := u.tree(); !maps.Equal(before, after) {
				t.Errorf("the disk changed:\n%s", cmp.Diff(before, after))
			}
		})
	}
}

// checkError checks the form of an error: one line, perhaps a hint, nothing
// on standard output.
func checkError(t *testing.T, r result, want []string) {
	t.Helper()
	if r.stdout != "" {
		t.Errorf("standard output: %q", r.stdout)
	}
	lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
	if !strings.HasPrefix(lines[0], "harness: ") || len(lines) > 2 || len(lines) == 2 && !strings.HasPrefix(lines[1], "hint: ") {
		t.Errorf("not one line and perhaps a hint:\n%s", r.stderr)
	}
	for _, w := range want {
		if !strings.Contains(lines[0], w) {
			t.Errorf("%q is not in %q", w, lines[0])
		}
	}
}
