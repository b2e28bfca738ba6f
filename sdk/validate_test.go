package sdk_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/research-harness/harness/sdk"
)

// valid is an answer that keeps every rule and uses every field.
func valid() sdk.Contribution {
	return sdk.Contribution{
		Name: "crow", Command: "crow-cli", Title: "Crow, the agent", SDKVersion: sdk.Version,
		Env: []string{"CROW_HOME", "XDG_STATE_HOME"},
		State: []sdk.Path{
			{Path: "~/.crow/", Kind: sdk.Dir},
			{Path: "~/.crow.json", Kind: sdk.File, Content: []byte("{}\n")},
			{Path: "/data/state/crow", Kind: sdk.Dir},
		},
		Own:       []string{"~/.crow.json", "~/.crow/token"},
		DenyWrite: []string{"~/.crow/hooks", "/data/state/crow/bin"},
		Ensure:    []sdk.Path{{Path: "~/.crow/hooks", Kind: sdk.Dir}, {Path: "~/.crow/settings.json", Kind: sdk.File, Content: []byte("{}")}},
		Args: []sdk.Arg{
			{Literal: "--yes", Versions: ">= 1.2, < 3"}, {Literal: ""}, {Override: "crow-inner.json"},
		},
		Overrides:      []sdk.Override{{Name: "crow-inner.json", Content: []byte(`{"a": 1}`)}},
		RefusedArgs:    []sdk.RefusedArg{{Arg: "--config", Reason: "the sandbox sets it"}},
		TestedVersions: ">= 1.0",
		SettingsFile:   "~/.crow/settings.json",
	}
}

var request = sdk.Request{
	OS: "linux", Arch: "amd64", Home: "/home/u",
	Env: map[string]string{"CROW_HOME": "relative", "XDG_STATE_HOME": "/data/state/", "UNNAMED": "/opt"},
}

func TestValidate_accepts_an_answer_that_keeps_the_rules(t *testing.T) {
	if err := valid().Validate(request); err != nil {
		t.Fatal(err)
	}
}

func TestValidate_names_the_field_of_every_broken_rule(t *testing.T) {
	state := func(p string) func(*sdk.Contribution) {
		return func(c *sdk.Contribution) { c.State = append(c.State, sdk.Path{Path: p, Kind: sdk.Dir}) }
	}
	for _, tt := range []struct {
		rule, field string
		change      func(*sdk.Contribution)
	}{
		{"a name is not empty", "name", func(c *sdk.Contribution) { c.Name, c.Overrides, c.Args = "", nil, nil }},
		{"a name has no dots", "name", func(c *sdk.Contribution) { c.Name, c.Overrides, c.Args = "..", nil, nil }},
		{"a name has no newline", "name", func(c *sdk.Contribution) { c.Name, c.Overrides, c.Args = "crow\n", nil, nil }},
		{"a name begins with a letter", "name", func(c *sdk.Contribution) { c.Name, c.Overrides, c.Args = "-c", nil, nil }},
		{"a command has no capitals", "command", func(c *sdk.Contribution) { c.Command = "Crow" }},
		{"a command is no path", "command", func(c *sdk.Contribution) { c.Command = "bin/crow" }},
		{"a command is not too long", "command", func(c *sdk.Contribution) { c.Command = strings.Repeat("a", 65) }},
		{"the launcher's index is no command", "command", func(c *sdk.Contribution) { c.Command = "index" }},
		{"a title has text", "title", func(c *sdk.Contribution) { c.Title = " " }},
		{"a title has no terminal escapes", "title", func(c *sdk.Contribution) { c.Title = "a\x1b[31m" }},
		{"a title has no newline", "title", func(c *sdk.Contribution) { c.Title = "a\nb" }},
		{"a title has no mark that reorders text", "title", func(c *sdk.Contribution) { c.Title = "a\u202eb" }},
		{"a title is UTF-8", "title", func(c *sdk.Contribution) { c.Title = "a\xff" }},
		{"a title is short", "title", func(c *sdk.Contribution) { c.Title = strings.Repeat("a", 201) }},
		{"tested versions are a constraint", "tested_versions", func(c *sdk.Contribution) { c.TestedVersions = "recent" }},

		{"there is state", "state", func(c *sdk.Contribution) {
			c.State, c.Own, c.Ensure, c.SettingsFile = nil, nil, nil, ""
		}},
		{"state has a kind", "state[3]", func(c *sdk.Contribution) { c.State = append(c.State, sdk.Path{Path: "~/.x"}) }},
		{"a directory has no content", "state[0]", func(c *sdk.Contribution) { c.State[0].Content = []byte("x") }},
		{"a path is of one kind", "ensure[0]", func(c *sdk.Contribution) { c.Ensure[0] = sdk.Path{Path: "~/.crow", Kind: sdk.File} }},
		{"nothing lies below a file", "state[0]", func(c *sdk.Contribution) { c.State[0].Kind = sdk.File }},
		{"home is no state", "state[3]", state("~")},
		{"home with a slash is no state", "state[3]", state("~/")},
		{"a path is not relative", "state[3]", state(".crow")},
		{"a path is not of another user", "state[3]", state("~root/.crow")},
		{"a path is not empty", "state[3]", state("")},
		{"a path has no ..", "state[3]", state("~/.crow/../.ssh")},
		{"a path has no .", "state[3]", state("~/./.crow")},
		{"a path has no empty segment", "state[3]", state("~/.crow//x")},
		{"a path has one trailing slash at most", "state[3]", state("~/.crow//")},
		{"a path has no NUL", "state[3]", state("~/.crow\x00")},
		{"a path has no newline", "state[3]", state("~/.crow\n")},
		{"a path is UTF-8", "state[3]", state("~/.crow\xff")},
		{"state has no glob", "state[3]", state("~/.crow/**")},
		{"own has no glob", "own[2]", func(c *sdk.Contribution) { c.Own = append(c.Own, "~/.crow/*.json") }},
		{"deny_write has no glob", "deny_write[2]", func(c *sdk.Contribution) { c.DenyWrite = append(c.DenyWrite, "~/.x/?/hooks") }},
		{"ensure has no glob", "ensure[2]", func(c *sdk.Contribution) {
			c.Ensure = append(c.Ensure, sdk.Path{Path: "~/.crow/[a]", Kind: sdk.Dir})
		}},
		{"an absolute path follows from a variable", "state[3]", state("/opt/crow")},
		{"an absolute path compares by components", "state[3]", state("/data/state2")},
		{"ssh keys are no state", "state[3]", state("~/.ssh")},
		{"what lies in a protected path is no state", "state[3]", state("~/.aws/crow")},
		{"what holds a protected path is no state", "state[3]", state("~/.local")},
		{"all configuration is no state", "state[3]", state("~/.config")},
		{"a start-up file is no state", "state[3]", state("~/.bashrc")},
		{"own is not protected", "own[2]", func(c *sdk.Contribution) { c.Own = append(c.Own, "~/.netrc") }},
		{"own lies in the state", "own[2]", func(c *sdk.Contribution) { c.Own = append(c.Own, "~/.other") }},
		{"own compares by components", "own[2]", func(c *sdk.Contribution) { c.Own = append(c.Own, "~/.crowbar") }},
		{"ensure lies in the state", "ensure[2]", func(c *sdk.Contribution) {
			c.Ensure = append(c.Ensure, sdk.Path{Path: "~/.other", Kind: sdk.Dir})
		}},
		{"the settings file lies in the state", "settings_file", func(c *sdk.Contribution) { c.SettingsFile = "~/settings.json" }},
		{"the settings file is a file", "settings_file", func(c *sdk.Contribution) { c.SettingsFile = "~/.crow/hooks" }},

		{"an override is no path", "overrides[1]", func(c *sdk.Contribution) { c.Overrides = append(c.Overrides, sdk.Override{Name: "../x.json"}) }},
		{"an override begins with the name", "overrides[1]", func(c *sdk.Contribution) { c.Overrides = append(c.Overrides, sdk.Override{Name: "omp.json"}) }},
		{"an override is more than the name", "overrides[1]", func(c *sdk.Contribution) { c.Overrides = append(c.Overrides, sdk.Override{Name: "crow-.json"}) }},
		{"an override ends in .json", "overrides[1]", func(c *sdk.Contribution) { c.Overrides = append(c.Overrides, sdk.Override{Name: "crow-a.toml"}) }},
		{"an override is given once", "overrides[1]", func(c *sdk.Contribution) { c.Overrides = append(c.Overrides, c.Overrides[0]) }},
		{"an override holds JSON", "overrides[0]", func(c *sdk.Contribution) { c.Overrides[0].Content = []byte("{") }},
		{"an argument has no NUL", "args[0]", func(c *sdk.Contribution) { c.Args[0].Literal = "a\x00" }},
		{"an argument is one thing", "args[2]", func(c *sdk.Contribution) { c.Args[2].Literal = "a" }},
		{"an argument's override exists", "args[2]", func(c *sdk.Contribution) { c.Args[2].Override = "crow-other.json" }},
		{"an argument's versions are a constraint", "args[0].versions", func(c *sdk.Contribution) { c.Args[0].Versions = "two" }},
		{"a refused argument is not empty", "refused_args[0]", func(c *sdk.Contribution) { c.RefusedArgs[0].Arg = "" }},
		{"a refusal has a reason", "refused_args[0].reason", func(c *sdk.Contribution) { c.RefusedArgs[0].Reason = "" }},

		{"a variable has a name", "env[0]", func(c *sdk.Contribution) { c.Env[0] = "" }},
		{"a variable is no assignment", "env[0]", func(c *sdk.Contribution) { c.Env[0] = "A=B" }},
		{"a variable is named once", "env[2]", func(c *sdk.Contribution) { c.Env = append(c.Env, c.Env[0]) }},
		{"a key is no variable", "env[0]", func(c *sdk.Contribution) { c.Env[0] = "ANTHROPIC_API_KEY" }},
		{"a token is no variable", "env[0]", func(c *sdk.Contribution) { c.Env[0] = "GITHUB_TOKEN" }},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			c := valid()
			tt.change(&c)
			err := c.Validate(request)
			vs, ok := errors.AsType[sdk.Violations](err)
			if !ok {
				t.Fatalf("error is %v", err)
			}
			if vs[0].Field != tt.field {
				t.Errorf("violations are %q, want the first of %s", vs, tt.field)
			}
			if strings.ContainsAny(err.Error(), "\n\x1b\x00") || vs[0].Rule == "" || vs[0].Fix == "" {
				t.Errorf("error is %q", err)
			}
		})
	}
}

func TestValidate_compares_without_case_on_macOS(t *testing.T) {
	c := valid()
	c.State[0].Path = "~/.SSH/crow"
	c.Own, c.Ensure, c.SettingsFile = nil, nil, ""
	if err := c.Validate(request); err != nil {
		t.Errorf("on Linux: %v", err)
	}
	mac := request
	mac.OS = "darwin"
	if c.Validate(mac) == nil {
		t.Error("~/.SSH is ~/.ssh on macOS")
	}
}

func TestViolations_tell_how_many_there_are(t *testing.T) {
	c := valid()
	c.Title, c.Command = "", ""
	if err := c.Validate(request); err == nil || !strings.HasSuffix(err.Error(), "(and 1 more)") {
		t.Errorf("error is %v", err)
	}
}

func FuzzValidate(f *testing.F) {
	f.Add("crow", "~/.crow", "~/.crow/x", "crow-a.json", []byte("{}"), "/data")
	f.Add("a", "/data/x", "~/../x", "../a.json", []byte(""), "/")
	f.Fuzz(func(t *testing.T, name, state, own, override string, content []byte, env string) {
		c := sdk.Contribution{
			Name: name, Command: name, Title: name, Env: []string{"DIR"},
			State:     []sdk.Path{{Path: state, Kind: sdk.Dir}},
			Own:       []string{own},
			Overrides: []sdk.Override{{Name: override, Content: content}},
		}
		req := sdk.Request{OS: "linux", Home: "/home/u", Env: map[string]string{"DIR": env}}
		if c.Validate(req) != nil {
			return
		}
		for _, p := range []string{state, own} {
			if strings.ContainsAny(p, "*?[\x00\n") || strings.Contains(p+"/", "/../") || strings.Contains(p, "//") {
				t.Errorf("accepted path %q", p)
			}
			for _, prot := range sdk.ProtectedPaths() {
				if full := "/home/u" + prot[1:]; p == prot || p == full || strings.HasPrefix(p, prot+"/") || strings.HasPrefix(p, full+"/") || strings.HasPrefix(full, strings.TrimSuffix(p, "/")+"/") {
					t.Errorf("accepted protected path %q", p)
				}
			}
		}
		if strings.ContainsAny(override, "/\x00\n") {
			t.Errorf("accepted override %q", override)
		}
	})
}
