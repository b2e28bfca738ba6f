package verify_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/research-harness/harness/host/internal/audit"
	"github.com/research-harness/harness/host/internal/install"
	"github.com/research-harness/harness/host/internal/plugin"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/verify"
	"github.com/research-harness/harness/sdk"
)

// TestMain makes this program the harness that runs inside the sandbox.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == verify.Verb {
		if err := verify.ProbeMain(system.Host()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// machine is an installed home with two frontends.
type machine struct {
	t    *testing.T
	home string
	s    *system.System
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	srt := os.Getenv("HARNESS_TEST_SRT")
	if srt == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("HARNESS_TEST_SRT names no srt")
		}
		t.Skip("HARNESS_TEST_SRT names no srt")
	}
	srt, err := filepath.Abs(srt)
	if err != nil {
		t.Fatal(err)
	}
	// Outside of /tmp, which every session can write.
	home, err := os.MkdirTemp("/var/tmp", "harness verify é ")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	m := &machine{t: t, home: home, s: &system.System{
		OS: "linux", Arch: "amd64", Env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}, Dir: home,
		Stdin: strings.NewReader(""), Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Now: time.Now,
	}}
	m.write(".local/bin/srt", "#!/bin/sh\nexec '"+srt+"' \"$@\"\n", 0o755)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	m.write(".local/libexec/research-harness/harness-host", string(data), 0o755)
	m.write("Research/paper.tex", "\\documentclass{article}\n", 0o644)
	m.write(".ssh/id_ed25519", "secret\n", 0o600)
	m.write(".bashrc", "# mine\n", 0o644)
	m.install()
	return m
}

func (m *machine) write(name, content string, mode fs.FileMode) {
	m.t.Helper()
	file := filepath.Join(m.home, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) set() *render.Set {
	m.t.Helper()
	set, err := render.Of(m.s, m.home, render.Options{}, []plugin.Frontend{
		{
			Contribution: sdk.Contribution{
				Name: "one", Command: "one", Title: "One",
				State:     []sdk.Path{{Path: "~/.one", Kind: sdk.Dir}, {Path: "~/.one.json", Kind: sdk.File, Content: []byte("{}\n")}},
				DenyWrite: []string{"~/.one/hooks"}, Ensure: []sdk.Path{{Path: "~/.one/hooks", Kind: sdk.Dir}},
			},
			Plugin: plugin.Found{Name: "one", Bundled: true},
		},
		{
			Contribution: sdk.Contribution{Name: "two", Command: "two", Title: "Two", State: []sdk.Path{{Path: "~/.cache/two", Kind: sdk.Dir}}},
			Plugin:       plugin.Found{Name: "two", Bundled: true},
		},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return set
}

func (m *machine) install() {
	m.t.Helper()
	if _, err := install.Run(m.t.Context(), m.s, m.set(), install.Options{Apply: true}); err != nil {
		m.t.Fatal(err)
	}
}

// edit replaces text in the installed settings of "one".
func (m *machine) edit(old, new string) {
	m.t.Helper()
	file := filepath.Join(m.home, ".config/research-harness/sandbox/one.json")
	data, err := os.ReadFile(file)
	if err != nil {
		m.t.Fatal(err)
	}
	text := strings.Replace(string(data), strings.ReplaceAll(old, "~", m.home), strings.ReplaceAll(new, "~", m.home), 1)
	if text == string(data) {
		m.t.Fatalf("%s holds no %s", file, old)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// tree is every file of home with its content.
func (m *machine) tree() map[string]string {
	m.t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(m.home, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		tree[p] = d.Type().String()
		if d.Type().IsRegular() {
			data, err := os.ReadFile(p)
			tree[p] += string(data)
			return err
		}
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return tree
}

func (m *machine) verify(names ...string) []verify.Report {
	m.t.Helper()
	reports, err := verify.Run(m.t.Context(), m.s, m.set(), names, func(string) {})
	if err != nil {
		m.t.Fatal(err)
	}
	return reports
}

func TestDefaultsHold(t *testing.T) {
	m := newMachine(t)
	before := m.tree()
	for _, r := range m.verify() {
		if r.Tried < 100 {
			t.Errorf("%s: %d rules tried", r.Frontend, r.Tried)
		}
		for _, f := range r.Findings {
			if f.Severity != audit.Note {
				t.Errorf("%s: %+v", r.Frontend, f)
			}
		}
	}
	if diff := cmp.Diff(before, m.tree()); diff != "" {
		t.Errorf("home changed:\n%s", diff)
	}
	if left, _ := filepath.Glob("/tmp/.harness-probe-*"); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// TestFaults seeds faults, each of which must be found and explained.
func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		name string
		seed func(m *machine)
		want []string // "id subject", each of which must be found
		says string   // in one of the messages
	}{
		{
			"a pattern that does nothing here",
			func(m *machine) { m.edit(`"~/.bash_aliases"`, `"~/Research/*/keys"`) },
			[]string{"inert-pattern ~/Research/*/keys", "settings-stale ~/.config/research-harness/sandbox/one.json"},
			"srt ignores a pattern",
		},
		{
			"a state that is a link",
			func(m *machine) {
				if err := os.Rename(m.home+"/.one", m.home+"/Dotfiles"); err != nil {
					m.t.Fatal(err)
				}
				if err := os.Symlink(m.home+"/Dotfiles", m.home+"/.one"); err != nil {
					m.t.Fatal(err)
				}
			},
			[]string{"state-link ~/.one"},
			"srt grants no write through a link",
		},
		{
			"a state that is gone",
			func(m *machine) {
				if err := os.RemoveAll(m.home + "/.one"); err != nil {
					m.t.Fatal(err)
				}
			},
			[]string{"state-missing ~/.one"},
			"does not exist",
		},
		{
			"settings edited by hand",
			func(m *machine) { m.edit(`"~/.bashrc",`, ``) },
			[]string{"settings-stale ~/.config/research-harness/sandbox/one.json"},
			"is not what an install would write now",
		},
		{
			"settings of other types",
			func(m *machine) { m.edit(`"allowWrite": [`, `"allowWrite": "x", "x": [`) },
			[]string{"settings-broken ~/.config/research-harness/sandbox/one.json"},
			"filesystem.allowWrite: is a JSON string where something else belongs",
		},
		{
			"a wider write list",
			func(m *machine) {
				m.edit(`"~/.config/research-harness",`, ``)
				m.edit(`"~/Research"`, `"~/Research", "~/.config"`)
			},
			[]string{
				"governs-writable ~/.config/research-harness/sandbox",
				"settings-stale ~/.config/research-harness/sandbox/one.json",
			},
			`allowWrite "~/.config"`,
		},
		{
			"a read deny that another entry lifts",
			func(m *machine) {
				m.edit(`"~/.ssh",`, `"~/.netrc", "~/.ssh",`)
				m.write(".netrc", "machine\n", 0o600)
				m.edit(`"allowRead": [`, `"allowRead": ["~/.netrc",`)
			},
			[]string{"read-open ~/.netrc"},
			"does not hold",
		},
		{
			"a read entry above a write path",
			func(m *machine) { m.edit(`"allowRead": [`, `"allowRead": ["~/go",`) },
			[]string{"read-above-write ~/go/pkg"},
			"lies above allowWrite",
		},
		{
			"an srt that ignores its settings",
			func(m *machine) {
				m.write(".local/bin/srt", "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"\n", 0o755)
			},
			[]string{
				"read-open ~/.ssh", "write-open ~/.bashrc", "write-open ~/Library/LaunchAgents", "write-open ~/.cache/two", "home-open ~",
				"unix-socket-open AF_UNIX", "loopback-open 127.0.0.1",
			},
			"this srt does not do what its settings say",
		},
		{
			"an srt that does not start",
			func(m *machine) { m.write(".local/bin/srt", "#!/bin/sh\necho no such luck >&2\nexit 1\n", 0o755) },
			[]string{"no-start ~/.config/research-harness/sandbox/one.json"},
			"no such luck",
		},
		{
			"settings that are gone",
			func(m *machine) { os.Remove(m.home + "/.config/research-harness/sandbox/one.json") },
			[]string{"settings-missing ~/.config/research-harness/sandbox/one.json"},
			"no such file",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMachine(t)
			tc.seed(m)
			before := m.tree()
			found := m.verify("one")[0].Findings
			var got, messages []string
			for _, f := range found {
				got = append(got, f.ID+" "+f.Subject)
				messages = append(messages, f.Message)
				if f.Fix == "" || strings.Contains(f.Message, "\n") {
					t.Errorf("not whole: %+v", f)
				}
			}
			for _, want := range tc.want {
				if !strings.Contains(strings.Join(got, "\n")+"\n", want) {
					t.Errorf("%s is not found in\n%s", want, strings.Join(got, "\n"))
				}
			}
			if !strings.Contains(strings.Join(messages, "\n"), tc.says) {
				t.Errorf("%q is not said in\n%s", tc.says, strings.Join(messages, "\n"))
			}
			if diff := cmp.Diff(before, m.tree()); diff != "" {
				t.Errorf("home changed:\n%s", diff)
			}
		})
	}
}
