package doctor

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/research-harness/harness/host/internal/audit"
	"github.com/research-harness/harness/host/internal/install"
	"github.com/research-harness/harness/host/internal/plugin"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/sdk"
)

// machine is an installed home with one frontend, whose program is on PATH.
type machine struct {
	t    *testing.T
	home string
	s    *system.System
	err  error // that reading the policy gives
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, home: home, s: &system.System{
		OS: "linux", Arch: "amd64", Env: []string{"HOME=" + home, "PATH=" + home + "/.local/bin:/usr/bin:/bin"}, Dir: home,
		Stdin: strings.NewReader(""), Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Now: time.Now,
	}}
	m.write(".local/bin/one", "#!/bin/sh\necho one 1.5.0\n", 0o755)
	m.write("Research/x", "", 0o644)
	set, err := m.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.Run(t.Context(), m.s, set, install.Options{Apply: true}); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.home, name) }

func (m *machine) write(name, content string, mode os.FileMode) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.path(name), []byte(content), mode); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Chmod(m.path(name), mode); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) load(context.Context) (*render.Set, error) {
	if m.err != nil {
		return nil, m.err
	}
	return render.Of(m.s, m.home, render.Options{}, []plugin.Frontend{{
		Contribution: sdk.Contribution{
			Name: "one", Command: "one", Title: "One", TestedVersions: ">= 1, < 2",
			State:     []sdk.Path{{Path: "~/.one", Kind: sdk.Dir}},
			DenyWrite: []string{"~/.one/hooks", "~/.one/rc"},
			Ensure:    []sdk.Path{{Path: "~/.one/hooks", Kind: sdk.Dir}, {Path: "~/.one/rc", Kind: sdk.File, Content: []byte("{}\n")}},
		},
		Plugin: plugin.Found{Name: "one", Bundled: true},
	}})
}

func (m *machine) run() []Finding {
	m.t.Helper()
	found, err := Run(m.t.Context(), m.s, m.home, m.load)
	m.must(err)
	return found
}

// TestFindings produces each fault with the real parts.
func TestFindings(t *testing.T) {
	for _, tc := range []struct {
		id       string
		severity audit.Severity
		subject  string
		seed     func(m *machine)
		says     string // in the message
		fix      string // the whole
		fixable  bool
	}{
		{
			"setup-incomplete", audit.Error, "setup", func(*machine) {},
			"install srt", "harness setup --apply", false,
		},
		{
			"policy-broken", audit.Error, "policy", func(m *machine) { m.err = errors.New("profile.toml: setup.frontends: is a mess") },
			"is a mess", "mend the file that is named", false,
		},
		{
			"install-stale", audit.Warning, "~/.config/research-harness",
			func(m *machine) { m.write(".config/research-harness/sandbox/one.json", "{}", 0o644) },
			"is not what", "harness install --apply", true,
		},
		{
			"state-missing", audit.Error, "~/.one", func(m *machine) { m.must(os.RemoveAll(m.path(".one"))) },
			"does not exist", "harness install --apply", false,
		},
		{
			"state-link", audit.Warning, "~/.one",
			func(m *machine) {
				m.must(os.Rename(m.path(".one"), m.path("dotfiles")))
				m.must(os.Symlink(m.path("dotfiles"), m.path(".one")))
			},
			"srt grants no write through a link", "rm ~/.one && mv ~/dotfiles ~/.one", false,
		},
		{
			"link-hidden", audit.Warning, "~/.one/settings",
			func(m *machine) {
				m.write("dotfiles/settings", "{}", 0o644)
				m.must(os.Symlink(m.path("dotfiles/settings"), m.path(".one/settings")))
			},
			"one takes it for absent", `add "~/dotfiles/settings" to [read] allow in sandbox/policy.toml of a source directory`, false,
		},
		{
			"placeholder-left", audit.Warning, "~/.one/rc",
			func(m *machine) {
				m.must(os.Remove(m.path(".one/rc")))
				m.write(".one/rc", "", 0o444)
			},
			"a killed session left behind", "rm -f ~/.one/rc", true,
		},
		{
			"placeholder-left", audit.Warning, "~/Research/a b/.mcp.json",
			func(m *machine) {
				m.s.Dir = m.path("Research/a b")
				m.write("Research/a b/.mcp.json", "", 0o444)
			},
			"a killed session left behind", "rm -f ~/'Research/a b/.mcp.json'", true,
		},
		{
			"placeholder-left", audit.Warning, "~/Research/.claude",
			func(m *machine) {
				m.s.Dir = m.path("Research")
				m.write("Research/.claude", "", 0o444)
			},
			"a killed session left behind", "rm -f ~/Research/.claude", true,
		},
		{
			"program-missing", audit.Note, "one", func(m *machine) { m.must(os.Remove(m.path(".local/bin/one"))) },
			"no program one is on PATH", "install One, or leave it out of [setup] frontends", false,
		},
		{
			"program-hidden", audit.Error, "~/apps/one",
			func(m *machine) {
				m.must(os.Remove(m.path(".local/bin/one")))
				m.write("apps/one", "#!/bin/sh\necho one 1.5.0\n", 0o755)
				m.must(os.Symlink("../../apps/one", m.path(".local/bin/one")))
			},
			"does not see its program", `add "~/apps" to [read] allow in sandbox/policy.toml of a source directory`, false,
		},
		{
			"program-untested", audit.Note, "~/.local/bin/one",
			func(m *machine) { m.write(".local/bin/one", "#!/bin/sh\necho one 2.0.0\n", 0o755) },
			"one is version 2.0.0, and its plugin was tested with >= 1, < 2", "report what does not work", false,
		},
		{
			"path", audit.Warning, "PATH", func(m *machine) { m.s.Env[1] = "PATH=/usr/bin:/bin" },
			"agentbox is not found", `export PATH="$HOME/.local/bin:$PATH"`, false,
		},
		{
			"path-other", audit.Warning, "~/bin/agentbox",
			func(m *machine) {
				m.write("bin/agentbox", "#!/bin/sh\n", 0o755)
				m.s.Env[1] = "PATH=" + m.path("bin") + ":" + m.path(".local/bin") + ":/usr/bin:/bin"
			},
			"is not the one of this harness", `export PATH="$HOME/.local/bin:$PATH"`, false,
		},
		{
			"home-link", audit.Note, "HOME",
			func(m *machine) {
				link := filepath.Join(m.t.TempDir(), "home")
				m.must(os.Symlink(m.home, link))
				m.s.Env[0] = "HOME=" + link
			},
			"a link to", "nothing, as long as the link stays", false,
		},
		{
			"temp-dir", audit.Warning, "TMPDIR", func(m *machine) { m.s.Env = append(m.s.Env, "TMPDIR=/nowhere/tmp") },
			"which is no directory", "mkdir -p /nowhere/tmp", false,
		},
	} {
		t.Run(tc.id, func(t *testing.T) {
			m := newMachine(t)
			tc.seed(m)
			found := m.run()
			i := slices.IndexFunc(found, func(f Finding) bool { return f.ID == tc.id && f.Subject == tc.subject })
			if i < 0 {
				t.Fatalf("not found in %+v", found)
			}
			f := found[i]
			if f.Severity != tc.severity || f.Fix != tc.fix || f.Fixable() != tc.fixable || !strings.Contains(f.Message, tc.says) {
				t.Errorf("%+v", f)
			}
			if !tc.fixable {
				return
			}
			if err := Fix(t.Context(), found, func(Finding) {}); err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(m.run(), func(f Finding) bool { return f.ID == tc.id }) {
				t.Error("it is there after the fix")
			}
		})
	}
}

// TestNothing finds nothing but what setup has to do in a fresh install, and
// orders by what blocks.
func TestNothing(t *testing.T) {
	m := newMachine(t)
	for _, f := range m.run() {
		if f.Severity != audit.Note && !strings.HasPrefix(f.ID, "setup-") {
			t.Errorf("%+v", f.Finding)
		}
	}
	m.must(os.RemoveAll(m.path(".one")))
	if !slices.IsSortedFunc(m.run(), func(a, b Finding) int { return a.Severity.Compare(b.Severity) }) {
		t.Error("what blocks most does not come first")
	}
}

// TestFilesOfTheUser leaves what looks like a placeholder alone where srt puts
// none, and what is at its place but no placeholder.
func TestFilesOfTheUser(t *testing.T) {
	m := newMachine(t)
	m.s.Dir = m.path("Research")
	m.write("Research/empty", "", 0o444)
	m.write("Research/.bashrc", "", 0o644)
	m.write("Research/.mcp.json", "{}", 0o444)
	m.write("Research/.git", "", 0o444)
	for _, f := range m.run() {
		if f.ID == "placeholder-left" {
			t.Errorf("%+v", f.Finding)
		}
	}
}

// TestFindingsAreDocumented holds every identifier of a finding against its
// description.
func TestFindingsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	ids := regexp.MustCompile(`\.(?:find|add|refuse)\("([a-z-]+)"|finding: "([a-z-]+)"|deny\("([a-z-]+)"|ID: "([a-z-]+)"`)
	n := 0
	for _, file := range []string{"doctor.go", "../audit/audit.go", "../verify/verify.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ids.FindAllStringSubmatch(string(source), -1) {
			n++
			if id := m[1] + m[2] + m[3] + m[4]; !strings.Contains(string(doc), "`"+id+"`") {
				t.Errorf("%s: %q is not documented", file, id)
			}
		}
	}
	if n < 35 {
		t.Errorf("%d identifiers", n)
	}
}
