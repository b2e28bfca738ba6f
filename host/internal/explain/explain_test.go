package explain

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/srt"
)

func entry(text, source string, line int, element string) origin.Value {
	return origin.Value{Text: text, Origin: origin.Origin{Source: source, Line: line, Element: element}}
}

// world is a home with a policy over it, in which each entry has another
// source.
func world(t *testing.T) (World, *srt.Policy) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"Research/x", ".one/hooks", ".cache", "tmp", ".ssh", "go/bin", "real", ".cfg"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(home+"/real", home+"/linked"); err != nil {
		t.Fatal(err)
	}
	return World{OS: "linux", Home: home, Profile: "/p/profile.toml"}, &srt.Policy{
		Frontend: "one",
		AllowedDomains: []origin.Value{
			entry("example.org", "settings/network.toml", 3, "allow[1]"), entry("*.example.net", "/p/profile.toml", 9, "network.allow[0]"),
		},
		DeniedDomains: []origin.Value{entry("bad.example.net", "/p/profile.toml", 12, "network.deny[0]")},
		AllowWrite: []origin.Value{
			entry(home+"/Research", "default", 0, "setup.workspaces"), entry(home+"/.cache", "toolchain", 0, "~/.cache"),
			entry(home+"/.one", "plugin one", 0, "state"), entry(home+"/tmp", "TMPDIR", 0, ""),
			entry(home+"/linked", "settings/settings.proposal.json", 8, "sandbox.filesystem.allowWrite[2]"),
			entry(home+"/.cfg", "settings/settings.proposal.json", 9, "sandbox.filesystem.allowWrite[3]"),
		},
		DenyWrite: []origin.Value{
			entry(home+"/.one/hooks", "plugin one", 0, "deny_write"),
			entry(home+"/.bashrc", "settings/settings.proposal.json", 20, "sandbox.filesystem.denyWrite[0]"),
		},
		DenyRead: []origin.Value{
			entry(home, "read limit", 0, "home"), entry(home+"/Research/x", "settings/settings.proposal.json", 30, "sandbox.filesystem.denyRead[0]"),
		},
		AllowRead: []origin.Value{entry(home+"/go/bin", "sandbox/policy.toml", 4, "read.allow[0]")},
	}
}

func TestAsk(t *testing.T) {
	for _, tc := range []struct {
		name, operation, target string
		allowed                 bool
		source                  string
		line                    int
		change                  string
	}{
		{"a write path from the profile's default", "write", "~/Research/y", true, "default", 0,
			`add "~/Research/y" to sandbox.filesystem.denyWrite of settings/settings.proposal.json in a source directory, or set [setup] workspaces in /p/profile.toml without "~/Research"`},
		{"a cache", "read", "~/.cache/go", true, "toolchain", 0, "set [sandbox] toolchain_caches = false in /p/profile.toml"},
		{"a temporary directory", "read", "~/tmp/x", true, "TMPDIR", 0, "set TMPDIR to another directory"},
		{"a write deny from a plugin", "write", "~/.one/hooks/x", false, "plugin one", 0,
			`give [frontend.one] in sandbox/policy.toml in a source directory without "~/.one/hooks"`},
		{"the hidden part of home", "read", "~/.ssh/id", false, "read limit", 0,
			`add "~/.ssh/id" to [read] allow in sandbox/policy.toml in a source directory`},
		{"a directory above write paths", "read", "~", false, "read limit", 0,
			`add what is to be read below "~" to [read] allow in sandbox/policy.toml in a source directory`},
		{"a write to a hidden directory", "write", "~/work/x", false, "read limit", 0, `add "~/work" to [setup] workspaces in /p/profile.toml`},
		{"a write to a hidden file of home", "write", "~/notes", false, "read limit", 0, "move it into a workspace: what holds it cannot be one"},
		{"a write that is denied too", "write", "~/.bashrc", false, "read limit", 0,
			`remove "~/.bashrc" from settings/settings.proposal.json:20: sandbox.filesystem.denyWrite[0] in a source directory, and add a directory above it to [setup] workspaces in /p/profile.toml`},
		{"a write path that is a link", "write", "~/linked/x", false, "read limit", 0, `see to "~/linked" (settings/settings.proposal.json:8: sandbox.filesystem.allowWrite[2])`},
		{"a read deny from the template", "read", "~/Research/x/f", false, "settings/settings.proposal.json", 30,
			`remove "~/Research/x" from settings/settings.proposal.json:30: sandbox.filesystem.denyRead[0] in a source directory`},
		{"a read path", "read", "~/go/bin/tool", true, "sandbox/policy.toml", 4, `remove "~/go/bin" from sandbox/policy.toml:4: read.allow[0] in a source directory`},
		{"the system", "read", "/usr/bin", true, "", 0, `add "/usr/bin" to sandbox.filesystem.denyRead of settings/settings.proposal.json in a source directory`},
		{"a device", "write", "/dev/null", true, "", 0, "nothing can: every session has it"},
		{"an allowed host", "host", "example.org", true, "settings/network.toml", 3, `add "example.org" to [network] deny in /p/profile.toml`},
		{"a denied host", "host", "bad.example.net", false, "/p/profile.toml", 12, `remove "bad.example.net" from /p/profile.toml:12: network.deny[0]`},
		{"a host that nothing names", "host", "example.com:22", false, "", 0, `add "example.com:22" to [network] allow in /p/profile.toml`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, p := world(t)
			target := tc.target
			if tc.operation != "host" {
				target = Target(w.Home, "/", target)
			}
			a, err := Ask(w, p, tc.operation, target)
			if err != nil {
				t.Fatal(err)
			}
			if a.Allowed != tc.allowed || a.Source != tc.source || a.Line != tc.line {
				t.Errorf("%+v", a)
			}
			if !strings.HasPrefix(a.Change, tc.change) {
				t.Errorf("to turn it: %s", a.Change)
			}
		})
	}
}

func TestAskForSomethingElse(t *testing.T) {
	w, p := world(t)
	if _, err := Ask(w, p, "execute", "/bin/sh"); err == nil || !strings.Contains(err.Error(), "execute") {
		t.Errorf("%v", err)
	}
}

func TestPrint(t *testing.T) {
	w, p := world(t)
	a, err := Ask(w, p, "write", w.Home+"/.one/hooks/x")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a.Print(&out, w.Home)
	want := `one cannot write ~/.one/hooks/x: it is write-denied
  decided  filesystem.denyWrite "~/.one/hooks" from plugin one: deny_write
  also     filesystem.allowWrite "~/.one" from plugin one: state
  also     filesystem.denyRead "~" from read limit: home
  to turn  give [frontend.one] in sandbox/policy.toml in a source directory without "~/.one/hooks"
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestJSON holds the keys that programs read.
func TestJSON(t *testing.T) {
	w, p := world(t)
	a, err := Ask(w, p, "host", "example.org")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"frontend": "one", "operation": "host", "target": "example.org", "allowed": true,
		"rule": "network.allowedDomains", "source": "settings/network.toml", "line": 3.0,
	} {
		if m[key] != want {
			t.Errorf("%s is %v", key, m[key])
		}
	}
}

func TestOf(t *testing.T) {
	w, p := world(t)
	all := Of(w, p)
	if want := len(p.AllowedDomains) + len(p.DeniedDomains) + len(p.AllowWrite) + len(p.DenyWrite) + len(p.DenyRead) + len(p.AllowRead); len(all.Entries) != want {
		t.Errorf("%d entries, not %d", len(all.Entries), want)
	}
	var out bytes.Buffer
	if err := all.Print(&out, w.Home); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"filesystem.allowWrite\n", "~/.one/hooks  ", "plugin one: deny_write\n",
		"settings/settings.proposal.json:8: sandbox.filesystem.allowWrite[2]; does nothing: it is reached through a link",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
