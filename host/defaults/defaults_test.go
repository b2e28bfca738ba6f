package defaults_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/defaults"
	"github.com/research-harness/harness/host/internal/netrules"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/policy"
	"github.com/research-harness/harness/host/internal/srt"
	"github.com/research-harness/harness/host/internal/template"
)

// caches are the toolchains' caches where nothing moves them.
var caches = []string{"~/.cache", "~/go/pkg", "~/.npm", "~/.cargo/registry", "~/.cargo/git"}

// frontends are the bundled ones, as far as these tests need them.
var frontends = []srt.Frontend{
	{
		Name:  "claude",
		State: values("~/.claude", "~/.claude.json", "~/.cache/claude-cli-nodejs"),
		Own:   values("~/.claude.json", "~/.claude/.credentials.json"),
	},
	{
		Name:  "opencode",
		State: values("~/.config/opencode", "~/.local/share/opencode", "~/.local/state/opencode", "~/.cache/opencode"),
		Own:   values("~/.local/share/opencode/auth.json"),
	},
	{Name: "omp", State: values("~/.omp"), Own: values("~/.omp/agent/.env")},
	{
		Name:  "antigravity",
		State: values("~/.gemini/antigravity-cli", "~/.gemini/config"),
		Own:   values("~/.gemini/antigravity-cli/antigravity-oauth-token"),
	},
}

func values(texts ...string) []origin.Value {
	out := make([]origin.Value, len(texts))
	for i, text := range texts {
		out[i] = origin.Value{Text: text}
	}
	return out
}

// input reads the embedded sources for home.
func input(t *testing.T, home string, caches []string) srt.Input {
	t.Helper()
	allow, deny, err := netrules.Parse(defaults.Network, defaults.Read(defaults.Network))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.Parse(defaults.Policy, defaults.Read(defaults.Policy))
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := template.Parse(defaults.Template, defaults.Read(defaults.Template))
	if err != nil {
		t.Fatal(err)
	}
	r, err := tmpl.Expand(map[string]template.Value{
		template.AllowedDomains:  template.List(allow...),
		template.DeniedDomains:   template.List(deny...),
		template.Workspaces:      template.List(values("~/Research")...),
		template.ToolchainCaches: template.List(values(caches...)...),
	})
	if err != nil {
		t.Fatal(err)
	}
	return srt.Input{
		OS: "linux", Home: home,
		AllowedDomains: r.Sandbox.AllowedDomains, DeniedDomains: r.Sandbox.DeniedDomains,
		AllowLocalBinding: r.Sandbox.AllowLocalBinding,
		AllowWrite:        r.Sandbox.AllowWrite, DenyWrite: r.Sandbox.DenyWrite,
		DenyRead: r.Sandbox.DenyRead, Credentials: r.Sandbox.Credentials,
		ReadAllow: rules.ReadAllow, Frontends: frontends,
	}
}

func TestNoEntryStandsTwice(t *testing.T) {
	in := input(t, "/home/me", caches)
	for name, list := range map[string][]origin.Value{
		"domains": in.AllowedDomains, "read.allow": in.ReadAllow, "denyWrite": in.DenyWrite,
		"hidden": slices.Concat(in.DenyRead, in.Credentials),
	} {
		seen := map[string]bool{}
		for _, v := range list {
			if seen[v.Text] {
				t.Errorf("%s: %s: %s stands twice", v.Origin, name, v.Text)
			}
			seen[v.Text] = true
		}
	}
}

func TestNoDomainIsCoveredByAnother(t *testing.T) {
	domains := origin.Texts(input(t, "/home/me", caches).AllowedDomains)
	for _, d := range domains {
		for _, wild := range domains {
			if suffix, ok := strings.CutPrefix(wild, "*"); ok && d != wild && strings.HasSuffix(d, suffix) {
				t.Errorf("%s is covered by %s", d, wild)
			}
		}
	}
}

// TestGroupsAreSorted finds the entries of each group, which a comment heads.
func TestGroupsAreSorted(t *testing.T) {
	for _, name := range []string{defaults.Network, defaults.Policy} {
		var group []string
		for i, line := range strings.Split(string(defaults.Read(name)), "\n") {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, `"`) {
				group = nil
				continue
			}
			group = append(group, strings.Trim(line, `",`))
			if !slices.IsSorted(group) {
				t.Errorf("%s:%d: %s is out of order", name, i+1, line)
			}
		}
	}
}

// A session may write nothing below a readable path, unless it may write that
// too: srt would make it read-only.
func TestNoReadablePathHoldsAWritableOne(t *testing.T) {
	layouts := map[string][]string{
		"default":        caches,
		"XDG":            {"~/.cache", "~/.cache/go-build", "~/.cache/go-mod", "~/.local/share/go/pkg", "~/.local/state/go/pkg"},
		"several GOPATH": {"~/go/pkg", "~/src/go/pkg", "~/work/pkg", "~/.go/pkg", "~/gopath/pkg"},
		"asdf":           {"~/.asdf/installs/golang/1.26.0/packages/pkg"},
		"mise":           {"~/.local/share/mise/installs/go/1.26.0/packages/pkg"},
		"goenv":          {"~/go/1.26.0/pkg"},
		"gvm":            {"~/.gvm/pkgsets/go1.26/global/pkg"},
		"GOPATH is ~/.local/go, ~/.local or home": {"~/.local/go/pkg", "~/.local/pkg", "~/pkg"},
	}
	for name, caches := range layouts {
		in := input(t, "/home/me", caches)
		for _, f := range frontends {
			p, err := srt.Render(in, f.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range p.AllowRead {
				for _, w := range p.AllowWrite {
					if above(r.Text, w.Text) && !slices.ContainsFunc(p.AllowWrite, func(o origin.Value) bool { return paths.AtOrBelow(r.Text, o.Text) }) {
						t.Errorf("%s, %s: %s makes %s read-only", name, f.Name, r.Text, w.Text)
					}
				}
			}
		}
	}
}

// above reports whether pattern matches a directory strictly above p.
func above(pattern, p string) bool {
	for p = filepath.Dir(p); p != "/"; p = filepath.Dir(p) {
		if ok, err := filepath.Match(pattern, p); err != nil || ok {
			return true
		}
	}
	return false
}

// An entry at or above a state would take the state away from its frontend.
func TestNoDenyCoversAState(t *testing.T) {
	in := input(t, "/home/me", caches)
	for _, f := range frontends {
		p, err := srt.Render(in, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range f.State {
			for _, d := range slices.Concat(p.DenyWrite, p.DenyRead[1:]) {
				if paths.AtOrBelow(paths.Expand("/home/me", s.Text), d.Text) {
					t.Errorf("%s: %s denies %s", f.Name, d.Text, s.Text)
				}
			}
		}
	}
}

// What is write-denied below a writable path would make srt leave a
// placeholder in the user's home where it is missing.
func TestNoTemplateDenyLeavesAPlaceholder(t *testing.T) {
	in := input(t, "/home/me", caches)
	for _, d := range in.DenyWrite {
		for _, w := range in.AllowWrite {
			if paths.Below(d.Text, w.Text) && !paths.IsGlob(d.Text) {
				t.Errorf("%s lies below %s", d.Text, w.Text)
			}
		}
	}
}

// TestSandbox fills a home with every path of the policy and tries each one
// from inside the real sandbox, for every frontend.
func TestSandbox(t *testing.T) {
	program := os.Getenv("HARNESS_TEST_SRT")
	if program == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("HARNESS_TEST_SRT does not name an srt")
		}
		t.Skip("HARNESS_TEST_SRT does not name an srt")
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := input(t, home, append(caches, "~/.asdf/installs/golang/a/packages/pkg", "~/.local/go/pkg", "~/.local/share/mise/installs/go/a/packages/pkg"))
	tree := tree{t, home}
	for _, w := range in.AllowWrite {
		tree.dir(w.Text)
	}
	for _, f := range frontends {
		for _, s := range f.State {
			if s.Text == "~/.claude.json" {
				tree.file(s.Text, "{}\n")
			} else {
				tree.dir(s.Text)
			}
		}
	}
	for _, r := range in.ReadAllow {
		tree.file(sample(r.Text)+"/inside", "readable\n")
	}
	for _, c := range slices.Concat(in.DenyRead, in.Credentials) {
		tree.file(sample(c.Text), "secret\n")
	}

	for _, f := range frontends {
		t.Run(f.Name, func(t *testing.T) {
			p, err := srt.Render(in, f.Name)
			if err != nil {
				t.Fatal(err)
			}
			var script bytes.Buffer
			var written []string
			for _, w := range slices.Concat(in.AllowWrite, f.State) {
				path := filepath.Join(paths.Expand(home, w.Text), "by-"+f.Name)
				if w.Text == "~/.claude.json" {
					path = filepath.Join(home, ".claude.json")
				}
				written = append(written, path)
				fmt.Fprintf(&script, "echo by-%s >> '%s' || echo 'cannot write %s'\n", f.Name, path, path)
			}
			for _, r := range in.ReadAllow {
				fmt.Fprintf(&script, "cat '%[1]s/inside' >/dev/null || echo 'cannot read %[1]s'\n", paths.Expand(home, sample(r.Text)))
			}
			for _, c := range slices.Concat(in.DenyRead, in.Credentials) {
				path := paths.Expand(home, sample(c.Text))
				if slices.ContainsFunc(f.Own, func(o origin.Value) bool { return o.Text == c.Text }) {
					fmt.Fprintf(&script, "cat '%[1]s' >/dev/null || echo 'cannot read %[1]s'\n", path)
				} else {
					fmt.Fprintf(&script, "cat '%[1]s' 2>/dev/null | grep -q secret && echo 'can read %[1]s'\n", path)
				}
			}
			tree.file("~/Research/probe.sh", script.String()+"echo done\n")
			file := filepath.Join(t.TempDir(), "settings.json")
			if err := os.WriteFile(file, p.Settings().Encode(), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), program, "--settings", file, "--", "sh", "probe.sh")
			cmd.Dir = filepath.Join(home, "Research")
			cmd.Env = append(os.Environ(), "HOME="+home, "CLAUDE_CODE_TMPDIR=/tmp")
			out, err := cmd.CombinedOutput()
			if err != nil || string(out) != "done\n" {
				t.Errorf("%v\n%s", err, out)
			}
			for _, path := range written {
				if data, err := os.ReadFile(path); err != nil || !bytes.Contains(data, []byte("by-"+f.Name)) {
					t.Errorf("a write to %s did not reach the disk: %v", path, err)
				}
				if strings.HasPrefix(path, "/tmp/by-") {
					os.Remove(path)
				}
			}
		})
	}
}

type tree struct {
	t    *testing.T
	home string
}

func (tr tree) dir(path string) {
	tr.t.Helper()
	if err := os.MkdirAll(paths.Expand(tr.home, path), 0o700); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr tree) file(path, content string) {
	tr.t.Helper()
	path = paths.Expand(tr.home, path)
	tr.dir(filepath.Dir(path))
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "inside")
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tr.t.Fatal(err)
	}
}

// sample is a path that a pattern matches.
func sample(pattern string) string {
	return strings.NewReplacer("[0-9A-Za-fh-z]", "a", "[0-9A-Za-oq-z]", "a", "*", "a").Replace(pattern)
}
