package plugin_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/plugin"
	"github.com/research-harness/harness/host/internal/plugin/plugintest"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/sdk"
)

// trust records what the plugin in file answers now.
func trust(t *testing.T, h *plugin.Host, file string) plugin.Frontend {
	t.Helper()
	f, err := h.At(file)
	if err != nil {
		t.Fatal(err)
	}
	front, err := h.Ask(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Record(t.Context(), front); err != nil {
		t.Fatal(err)
	}
	return front
}

// rich is an answer with something in every list.
func rich() sdk.Contribution {
	c := plugintest.Answer("crow")
	c.Env = []string{"CROW_HOME"}
	c.Own = []string{"~/.crow/token"}
	c.DenyWrite = []string{"~/.crow/hooks"}
	c.Ensure = []sdk.Path{{Path: "~/.crow/hooks", Kind: sdk.Dir}}
	c.Overrides = []sdk.Override{{Name: "crow-a.json", Content: []byte(`{"a": 1}`)}}
	c.Args = []sdk.Arg{{Literal: "--yes"}, {Override: "crow-a.json", Versions: ">= 2"}}
	c.RefusedArgs = []sdk.RefusedArg{{Arg: "--config", Reason: "no"}}
	return c
}

func TestLoad_runs_a_plugin_once_it_is_trusted(t *testing.T) {
	h, dir := newHost(t)
	file := plugintest.Write(t, dir, "crow", plugintest.Stub{Answer: rich()})
	trust(t, h, file)
	got, warnings, err := h.Load(t.Context(), []string{"crow"})
	if err != nil || len(warnings) > 0 || len(got) != 1 {
		t.Fatal(got, warnings, err)
	}

	plugintest.Write(t, dir, "crow", plugintest.Stub{Mode: "crash"})
	_, _, err = h.Load(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "has changed since it was trusted") || problem.HintOf(err) != "harness frontend trust crow" {
		t.Errorf("error is %v", err)
	}

	if err := h.Remove(t.Context(), "crow"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file is still there")
	}
	lock, err := h.ReadLock()
	if err != nil || len(lock.Frontends) != 0 {
		t.Errorf("the lock is %v, %v", lock, err)
	}
}

func TestLoad_refuses_a_wider_answer_of_a_trusted_file(t *testing.T) {
	h, dir := newHost(t)
	file := plugintest.Write(t, dir, "crow", plugintest.Stub{Answer: rich()})
	trust(t, h, file)
	narrow := func(t *testing.T, key string) {
		t.Helper()
		lock := layout.Layout{Home: h.Home}.Trust()
		data, err := os.ReadFile(lock)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(data), key, "", 1)
		if changed == string(data) {
			t.Fatalf("no %q in %s", key, data)
		}
		if err := os.WriteFile(lock, []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	narrow(t, "state = ['~/.crow dir']")
	_, _, err := h.Load(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), `asks for more than was trusted: state "~/.crow dir" is new`) {
		t.Errorf("error is %v", err)
	}
}

func TestEntry_tells_what_is_wider(t *testing.T) {
	old := plugin.NewEntry(plugin.Frontend{Contribution: rich()})
	for _, tt := range []struct {
		rule   string
		wider  bool
		change func(*sdk.Contribution)
	}{
		{"nothing", false, func(*sdk.Contribution) {}},
		{"another order", false, func(c *sdk.Contribution) {
			c.Args = append([]sdk.Arg{c.Args[1]}, c.Args[0])
		}},
		{"more state", true, func(c *sdk.Contribution) { c.State = append(c.State, sdk.Path{Path: "~/.x", Kind: sdk.Dir}) }},
		{"state of another kind", true, func(c *sdk.Contribution) { c.State[0].Kind = sdk.File }},
		{"state with other content", true, func(c *sdk.Contribution) { c.State[0].Content = []byte("x") }},
		{"less state", false, func(c *sdk.Contribution) { c.State = nil }},
		{"more own", true, func(c *sdk.Contribution) { c.Own = append(c.Own, "~/.crow/x") }},
		{"less own", false, func(c *sdk.Contribution) { c.Own = nil }},
		{"more deny_write", false, func(c *sdk.Contribution) { c.DenyWrite = append(c.DenyWrite, "~/.crow/x") }},
		{"less deny_write", true, func(c *sdk.Contribution) { c.DenyWrite = nil }},
		{"more ensure", true, func(c *sdk.Contribution) { c.Ensure = append(c.Ensure, c.State...) }},
		{"another argument", true, func(c *sdk.Contribution) { c.Args[0].Literal = "--no" }},
		{"an argument for more versions", true, func(c *sdk.Contribution) { c.Args[1].Versions = "" }},
		{"another override", true, func(c *sdk.Contribution) { c.Overrides[0].Content = []byte(`{"a": 2}`) }},
		{"more refused", false, func(c *sdk.Contribution) {
			c.RefusedArgs = append(c.RefusedArgs, sdk.RefusedArg{Arg: "-c", Reason: "no"})
		}},
		{"less refused", true, func(c *sdk.Contribution) { c.RefusedArgs = nil }},
		{"a settings file", true, func(c *sdk.Contribution) { c.SettingsFile = "~/.crow/settings.json" }},
		{"another command", true, func(c *sdk.Contribution) { c.Command = "crow2" }},
		{"another title", false, func(c *sdk.Contribution) { c.Title = "Raven" }},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			c := rich()
			tt.change(&c)
			f := plugin.Frontend{Contribution: c}
			if got := old.Widened(f); len(got) > 0 != tt.wider {
				t.Errorf("wider is %q, want %v", got, tt.wider)
			}
			f.Request.Env = map[string]string{"CROW_HOME": "/elsewhere"}
			if got := old.Widened(f); len(got) > 0 {
				t.Errorf("an answer to other inputs is compared: %q", got)
			}
		})
	}
}

func TestReadLock_names_what_is_wrong(t *testing.T) {
	for _, tt := range []struct{ content, want string }{
		{"version = 1\nfrontend = 3\n", "line 2: is not a list of trusted plugins"},
		{"version = 1\nnew = 3\n", "line 2: is not a list of trusted plugins"},
		{"{", "line 1: is not a list of trusted plugins"},
		{"version = 2\n", "version: is 2, and this harness reads 1"},
	} {
		h, _ := newHost(t)
		file := layout.Layout{Home: h.Home}.Trust()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(tt.content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := h.ReadLock(); err == nil || !strings.HasPrefix(err.Error(), file+": "+tt.want) {
			t.Errorf("%q: error is %v, want %s", tt.content, err, tt.want)
		}
	}
}

func TestAdd(t *testing.T) {
	h, dir := newHost(t)
	h.Bundled["claude"] = "digest"
	src := plugintest.Write(t, t.TempDir(), "crow", plugintest.Stub{Answer: rich()})
	_, data, err := h.Read(src)
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.Add(t.Context(), "harness-frontend-crow", "oci://r.example/crow@sha256:1", data)
	if err != nil || got.File != filepath.Join(dir, "harness-frontend-crow") || got.Digest != sha(t, src) {
		t.Fatal(got, err)
	}
	if found, err := h.Discover(); err != nil || len(found) != 1 || found[0] != got {
		t.Errorf("found %v, %v", found, err)
	}
	if lock, err := h.ReadLock(); err != nil || lock.Sources["crow"] != "oci://r.example/crow@sha256:1" || len(lock.Frontends) > 0 {
		t.Errorf("lock is %v, %v", lock, err)
	}

	for _, tt := range []struct{ rule, name, want string }{
		{"a bundled name is taken", "harness-frontend-claude", "is bundled"},
		{"a name is plain", "harness-frontend-../x", "is not the name of a plugin"},
		{"a name has the prefix", "crow", "is not the name of a plugin"},
	} {
		if _, err := h.Add(t.Context(), tt.name, "", data); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.rule, err)
		}
	}
	other := t.TempDir()
	h.Dirs = []string{other}
	if _, err := h.Add(t.Context(), "harness-frontend-crow", "", data); err == nil || !strings.Contains(err.Error(), "is a plugin of this name already") {
		t.Errorf("a second file of one name: %v", err)
	}
	if entries, err := os.ReadDir(other); err != nil || len(entries) > 0 {
		t.Errorf("left in the directory: %v, %v", entries, err)
	}
}

func TestTest_names_the_rules_that_a_plugin_breaks(t *testing.T) {
	bad := rich()
	bad.Title = "a\x1b[31m"
	for _, tt := range []struct {
		mode   string
		answer sdk.Contribution
		want   string // of a finding, or of the error
	}{
		{"", plugintest.Answer("crow"), ""},
		{"", bad, `title: "a\x1b[31m" is not one line of printable text`},
		{"", plugintest.Answer("raven"), "the answer's name is raven"},
		{"write", plugintest.Answer("crow"), "writes nothing: it wrote ~/.crow"},
		{"daemon", plugintest.Answer("crow"), "leaves no process behind: still running: sleep"},
		{"child", plugintest.Answer("crow"), "leaves no process behind: still running: sleep"},
		{"exit", plugintest.Answer("crow"), "exited with status 3"},
		{"huge", plugintest.Answer("crow"), "gave an answer of more than 1 MiB"},
	} {
		t.Run(tt.mode+tt.answer.Title, func(t *testing.T) {
			h, dir := newHost(t)
			needBwrap(t, h) // a daemon outlives its plugin without it
			f, err := h.At(plugintest.Write(t, dir, "crow", plugintest.Stub{Mode: tt.mode, Answer: tt.answer}))
			if err != nil {
				t.Fatal(err)
			}
			findings, err := h.Test(t.Context(), f)
			var got []string
			for _, f := range findings {
				got = append(got, f.String())
			}
			if err != nil {
				got = append(got, err.Error())
			}
			ok := slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, tt.want) })
			if tt.want == "" && len(got) > 0 || tt.want != "" && !ok {
				t.Errorf("findings are %q, want %q", got, tt.want)
			}
		})
	}
	plugintest.NothingLeft(t)
}

func TestWords_show_no_control_characters(t *testing.T) {
	c := rich()
	c.Args[0].Literal = "\x1b[2J\n"
	c.RefusedArgs[0].Reason = "a\nb"
	for _, line := range (plugin.Frontend{Contribution: c}).Words() {
		if strings.ContainsAny(line, "\x1b\n") {
			t.Errorf("line %q", line)
		}
	}
}
