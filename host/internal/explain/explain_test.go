package explain

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/research-harness/harness/host/defaults"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
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
	for _, dir := range []string{"Research/x", ".one/hooks", ".cache", "tmp", ".ssh", "go/bin", "real", ".cfg", "work/keys"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"linked": "real", "to-ssh": ".ssh"} {
		if err := os.Symlink(filepath.Join(home, to), filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	return World{
			OS: "linux", Home: home, Profile: "/p/profile.toml", Template: defaults.Template, Rules: defaults.Policy,
			Closed: []Place{
				{home + "/.bashrc", "every shell obeys it", true}, {Path: home + "/.ssh", Why: "it holds secrets"},
				{home + "/.one/hooks", "one obeys what is there", true}, {Path: home + "/work/keys", Why: "it holds secrets"},
				{Path: home + "/.two", Why: "it is the state of two"},
			},
			Needed: []Place{{Path: home + "/.one", Why: "one does not work without its state"}},
		}, &srt.Policy{
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
				entry(home, "read limit", 0, "home"), entry(home+"/Research/x", "/src/settings.json", 30, "sandbox.filesystem.denyRead[0]"),
			},
			AllowRead: []origin.Value{entry(home+"/go/bin", "sandbox/policy.toml", 4, "read.allow[0]")},
		}
}

func TestAsk(t *testing.T) {
	const (
		again    = ", then type: harness install --apply"
		template = " in settings/settings.proposal.json of a source directory DIR, then type: harness install --source DIR --apply"
		rules    = " in sandbox/policy.toml of a source directory DIR, then type: harness install --source DIR --apply"
	)
	for _, tc := range []struct {
		name, operation, target string
		allowed                 bool
		source                  string
		line                    int
		change                  string
	}{
		{"below a write path", Write, "~/Research/y", true, "default", 0, `add "~/Research/y" to sandbox.filesystem.denyWrite` + template},
		{"a workspace", Write, "~/Research", true, "default", 0, `set [setup] workspaces without "~/Research" in /p/profile.toml` + again},
		{"below a cache", Read, "~/.cache/go", true, "toolchain", 0, `add "~/.cache/go" to sandbox.filesystem.denyRead` + template},
		{"a cache", Write, "~/.cache", true, "toolchain", 0, "set [sandbox] toolchain_caches = false in /p/profile.toml" + again},
		{"the temporary directory", Read, "~/tmp", true, "TMPDIR", 0, "set TMPDIR to another directory" + again},
		{"the agent's own state", Read, "~/.one", true, "plugin one", 0, "nothing should: one does not work without its state"},
		{"a read path", Read, "~/go/bin", true, "sandbox/policy.toml", 4, `take "~/go/bin" out of read.allow[0] (line 4)` + rules},
		{"the system", Read, "/usr/bin", true, "", 0, `add "/usr/bin" to sandbox.filesystem.denyRead` + template},
		{"a device", Write, "/dev/null", true, "", 0, "nothing can: every session has its own"},
		{"a device to read", Read, "/dev/null", true, "", 0, "nothing can: every session has its own"},
		{"a process", Read, "/proc/1/mem", true, "", 0, "nothing can: every session has its own"},

		{"what the agent obeys", Write, "~/.one/hooks/x", false, "plugin one", 0, "it stays closed: one obeys what is there"},
		{"a credential", Read, "~/.ssh/id", false, "read limit", 0, "it stays closed: it holds secrets"},
		{"a link to a credential", Read, "~/to-ssh", false, "read limit", 0, "it stays closed: it holds secrets"},
		{"the directory of a credential", Write, "~/.ssh", false, "read limit", 0, "it stays closed: it holds secrets"},
		{"a start-up file", Write, "~/.bashrc", false, "read limit", 0, "it stays closed: every shell obeys it"},
		{"another agent's state", Read, "~/.two/x", false, "read limit", 0, "it stays closed: it is the state of two"},
		{"another agent's state to write", Write, "~/.two/x", false, "read limit", 0, "it stays closed: it is the state of two"},
		{"a project's file", Write, "~/project/x", false, "read limit", 0, `add "~/project" to [setup] workspaces in /p/profile.toml` + again},
		{"a directory outside of home", Write, "/srv/data/x", false, "", 0, `add "/srv/data" to [setup] workspaces in /p/profile.toml` + again},
		{"a directory above a credential", Write, "~/work/x", false, "read limit", 0, "it stays closed: ~/work holds ~/work/keys; work in a workspace"},
		{"a file of home itself", Write, "~/notes", false, "read limit", 0, "it stays closed: ~ is the home directory; work in a workspace"},
		{"home", Write, "~", false, "read limit", 0, "it stays closed: ~ is the home directory; work in a workspace"},
		{"a file of the system", Write, "/etc/passwd", false, "", 0, "it stays closed: /etc is protected; work in a workspace"},
		{"the root directory", Write, "/", false, "", 0, "it stays closed: / is the root directory; work in a workspace"},
		{"a hidden directory", Write, "~/.npm/x", false, "read limit", 0, "it stays closed: programs outside of the sandbox keep their own in hidden directories"},
		{"a read path to write", Write, "~/go/bin/tool", false, "", 0, "it stays closed: programs outside of the sandbox use what is there"},
		{"a write path that is a link", Write, "~/linked/x", false, "read limit", 0, `see to "~/linked" (settings/settings.proposal.json:8: sandbox.filesystem.allowWrite[2])`},
		{"the rest of home", Read, "~/notes", false, "read limit", 0, `add "~/notes" to [read] allow` + rules},
		{"a directory above write paths", Read, "~", false, "read limit", 0, `name what is to be read below "~" in [read] allow` + rules},
		{"a directory above a credential to read", Read, "~/work", false, "read limit", 0, `name what is to be read below "~/work" in [read] allow` + rules},
		{"a read deny", Read, "~/Research/x/f", false, "/src/settings.json", 30, `take "~/Research/x" out of sandbox.filesystem.denyRead[0] (line 30) in /src/settings.json` + again},

		{"an allowed host", Host, "example.org", true, "settings/network.toml", 3, `add "example.org" to [network] deny in /p/profile.toml` + again},
		{"a denied host", Host, "bad.example.net", false, "/p/profile.toml", 12, `take "bad.example.net" out of network.deny[0] (line 12) in /p/profile.toml` + again},
		{"another host", Host, "example.com", false, "", 0, `add "example.com" to [network] allow in /p/profile.toml` + again},
		{"another port", Host, "example.com:22", false, "", 0, `add "example.com:22" to [network] allow in /p/profile.toml` + again},
		{"a URL", Host, "https://example.com/x?y#z", false, "", 0, `add "example.com" to [network] allow in /p/profile.toml` + again},
		{"a URL with a user and a port", Host, "https://me@example.com:8443/x", false, "", 0, `add "example.com:8443" to [network] allow in /p/profile.toml` + again},
		{"a plain URL", Host, "http://example.com", false, "", 0, `add "example.com:80" to [network] allow in /p/profile.toml` + again},
		{"git's spelling", Host, "git@example.com:me/x.git", false, "", 0, `add "example.com:22" to [network] allow in /p/profile.toml` + again},
		{"a host and a path", Host, "example.com/x", false, "", 0, `add "example.com" to [network] allow in /p/profile.toml` + again},
		{"letters beyond ASCII", Host, "bücher.example", false, "", 0, `add "xn--bcher-kva.example" to [network] allow in /p/profile.toml` + again},
		{"a final dot", Host, "example.com.", false, "", 0, `add "example.com" to [network] allow in /p/profile.toml` + again},
		{"an address", Host, "192.0.2.7", false, "", 0, `add "192.0.2.7" to [network] allow in /p/profile.toml` + again},
		{"an IPv6 address", Host, "2001:db8::1", false, "", 0, `add "[2001:db8::1]" to [network] allow in /p/profile.toml` + again},
		{"an IPv6 address with a port", Host, "[2001:db8::1]:22", false, "", 0, `add "[2001:db8::1]:22" to [network] allow in /p/profile.toml` + again},
		{"this machine", Host, "localhost:8080", false, "", 0, "it stays closed: it is this machine"},
		{"this machine by its address", Host, "127.0.0.1", false, "", 0, "it stays closed: it is this machine"},
		{"this machine by its IPv6 address", Host, "::1", false, "", 0, "it stays closed: it is this machine"},
		{"a cloud's credentials", Host, "169.254.169.254", false, "", 0, "it stays closed: such an address is of the network itself"},
		{"a name without a dot", Host, "printer", false, "", 0, `nothing can: "printer" is not a domain`},
		{"what is no name", Host, "a b", false, "", 0, `nothing can: "a b" holds a space`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, p := world(t)
			target, err := Target(w.Home, "/", tc.operation, tc.target)
			if err != nil {
				t.Fatal(err)
			}
			a, err := Ask(w, p, tc.operation, target)
			if err != nil {
				t.Fatal(err)
			}
			if a.Allowed != tc.allowed || a.Source != tc.source || a.Line != tc.line {
				t.Errorf("%+v", a)
			}
			if !strings.HasPrefix(a.Change, tc.change) || strings.HasSuffix(tc.change, "--apply") && a.Change != tc.change {
				t.Errorf("to turn it: %s", a.Change)
			}
			if !follow(t, w, p, a.Change) {
				return
			}
			b, err := Ask(w, p, tc.operation, target)
			if err != nil {
				t.Fatal(err)
			}
			if b.Allowed == a.Allowed {
				t.Errorf("%s does not turn it: %+v", a.Change, b)
			}
		})
	}
}

var (
	addition = regexp.MustCompile(`^add "(.+)" to (.+?) (?:in|of) `)
	removal  = regexp.MustCompile(`^take "(.+)" out of|^set \[setup\] workspaces without "(.+)" in`)
)

// follow changes p as the advice says and reports whether it is one to follow.
func follow(t *testing.T, w World, p *srt.Policy, advice string) bool {
	t.Helper()
	lists := map[string]*[]origin.Value{
		"[network] allow": &p.AllowedDomains, "[network] deny": &p.DeniedDomains, "[setup] workspaces": &p.AllowWrite, "[read] allow": &p.AllowRead,
		"sandbox.filesystem.denyRead": &p.DenyRead, "sandbox.filesystem.denyWrite": &p.DenyWrite,
	}
	if m := addition.FindStringSubmatch(advice); m != nil {
		list, ok := lists[m[2]]
		if !ok {
			t.Fatalf("no list %s", m[2])
		}
		v := paths.Expand(w.Home, m[1])
		if paths.Below(v, w.Home) { // srt sees what is there
			if err := os.MkdirAll(v, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		*list = append(*list, entry(v, "/p", 1, "added"))
		return !strings.HasPrefix(v, "/srv/") // which is not there
	}
	m := removal.FindStringSubmatch(advice)
	if m == nil {
		return false
	}
	for _, list := range lists {
		*list = slices.DeleteFunc(*list, func(v origin.Value) bool { return v.Text == paths.Expand(w.Home, m[1]+m[2]) })
	}
	return true
}

// TestGuardedName tells of the names that a session can write or not by where
// it starts.
func TestGuardedName(t *testing.T) {
	w, p := world(t)
	for _, tc := range []struct {
		dir, target string
		allowed     bool
		says        string
	}{
		{"", "~/Research/y/.git/hooks/pre-commit", true, "srt denies that name to a session that starts beside it"},
		{"", "~/Research/y/.bashrc", true, "srt denies that name to a session that starts beside it"},
		{"~/Research/y", "~/Research/y/.bashrc", false, "placeholder"},
		{"", "~/Research/y/bashrc", true, "nothing is there yet"},
	} {
		w.Dir = paths.Expand(w.Home, tc.dir)
		if tc.dir != "" {
			if err := os.MkdirAll(w.Dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		a, err := Ask(w, p, Write, paths.Expand(w.Home, tc.target))
		if err != nil {
			t.Fatal(err)
		}
		if a.Allowed != tc.allowed || !strings.Contains(a.Reason, tc.says) {
			t.Errorf("%s from %q: %+v", tc.target, tc.dir, a)
		}
	}
}

// TestTargets refuses what nobody can ask about.
func TestTargets(t *testing.T) {
	for _, tc := range []struct{ name, dir, operation, words, want string }{
		{"a pattern", "/", Host, "*.example.org", `*.example.org: is a pattern, not a host`},
		{"no host", "/", Host, "", "names no host"},
		{"no path", "/", Read, "", "TARGET: is empty"},
		{"a NUL", "/", Read, "a\x00b", "TARGET: holds a NUL"},
		{"a path that is longer than any", "/", Write, strings.Repeat("/a", 60_000), "TARGET: is longer than any path"},
		{"a relative path in a directory that is gone", "", Read, "x", "x: is relative, and the current directory is gone"},
		{"another operation", "/", "execute", "/bin/sh", "execute: is none of read, write and host"},
	} {
		if _, err := Target("/home/u", tc.dir, tc.operation, tc.words); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
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
  to turn  it stays closed: one obeys what is there
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestPrintOneLine holds that a name drives no terminal.
func TestPrintOneLine(t *testing.T) {
	w, p := world(t)
	p.AllowRead = append(p.AllowRead, entry(w.Home+"/a\x1b[31m", "/src/\x07policy.toml", 1, "read.allow[1]"))
	var out bytes.Buffer
	for _, target := range []string{"/a\x1b[31m", "/x\r\ny\x9b"} {
		a, err := Ask(w, p, Read, w.Home+target)
		if err != nil {
			t.Fatal(err)
		}
		a.Print(&out, w.Home)
	}
	if err := Of(w, p).Print(&out, w.Home); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexAny(out.String(), "\x1b\x07\r"); i >= 0 || !utf8.Valid(out.Bytes()) {
		t.Errorf("a control character is printed:\n%q", out.String())
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
