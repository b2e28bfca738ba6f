// Package profile reads the user's choices.
package profile

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/netrules"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/template"
	"github.com/research-harness/harness/host/internal/tomlfile"
)

// EnvFile names the profile where no flag does.
const EnvFile = "RESEARCH_HARNESS_PROFILE"

// Profile is the user's choices, or the defaults where there is no file.
type Profile struct {
	File string // the path in use, absolute, or empty for the defaults

	Frontends    []origin.Value // the chosen policy names, each once
	FrontendsSet bool           // false: every bundled frontend is chosen
	Workspaces   []origin.Value
	Allow, Deny  []origin.Value // domains
	// ToolchainCaches says whether the toolchains' caches are writable.
	ToolchainCaches bool
	Template        map[string]template.Value // the user's own placeholders
}

// Load reads the profile: flag, else that of [EnvFile], else the default file
// of home. A named file that is missing is a problem; a missing default file
// means the defaults, and so does [os.DevNull].
func Load(s *system.System, home, flag string) (*Profile, error) {
	file, key := flag, "--profile"
	if file == "" {
		file, key = s.Getenv(EnvFile), EnvFile
	}
	if file == os.DevNull {
		return Parse("", nil)
	}
	named := file != ""
	if named {
		file = s.Abs(file)
	} else {
		file, key = layout.Layout{Home: home}.Profile(), ""
	}
	data, err := files.Read(file)
	switch {
	case err == nil:
		return Parse(file, data)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, problem.New(file, key, "%w", errors.Unwrap(err))
	case named:
		return nil, problem.New(file, key, "there is no such file")
	}
	if target, err := os.Readlink(file); err == nil {
		return nil, problem.New(file, "", "is a symbolic link to %s, which does not exist", target)
	}
	return Parse("", nil)
}

// Parse reads a profile. An unknown key, a wrong type or a domain that srt
// would refuse is a problem with its line.
func Parse(file string, data []byte) (*Profile, error) {
	entries, err := tomlfile.Parse(file, data)
	if err != nil {
		return nil, err
	}
	p := &Profile{
		File: file,
		Workspaces: []origin.Value{{
			Text: "~/Research", Origin: origin.Origin{Source: "default", Element: "setup.workspaces"},
		}},
		ToolchainCaches: true,
		Template:        map[string]template.Value{},
	}
	for _, e := range entries {
		if err := p.entry(e); err != nil {
			return nil, err
		}
	}
	return p, nil
}

var tables = []string{"setup", "network", "sandbox", "template"}

func (p *Profile) entry(e tomlfile.Entry) (err error) {
	if len(e.Path) == 1 && slices.Contains(tables, e.Path[0]) {
		if !e.IsTable() {
			return e.Origin.Problem("must be a table")
		}
		return nil
	}
	if len(e.Path) == 2 && e.Path[0] == "template" {
		return p.placeholder(e)
	}
	switch strings.Join(e.Path, "\x00") {
	case "setup\x00frontends":
		p.FrontendsSet = true
		p.Frontends, err = unique(e)
	case "setup\x00workspaces":
		p.Workspaces, err = workspaces(e)
	case "network\x00allow":
		p.Allow, err = netrules.Allow(e)
	case "network\x00deny":
		p.Deny, err = netrules.Deny(e)
	case "sandbox\x00toolchain_caches":
		p.ToolchainCaches, err = e.Bool()
	default:
		kind := "key"
		if e.IsTable() {
			kind = "table"
		}
		return e.Origin.Problem("is not a %s of the profile", kind).
			WithHint("the keys are setup.frontends, setup.workspaces, network.allow, network.deny, sandbox.toolchain_caches and those of [template]")
	}
	return err
}

func unique(e tomlfile.Entry) ([]origin.Value, error) {
	values, err := e.Strings()
	var out []origin.Value
	for _, v := range values {
		if !slices.ContainsFunc(out, func(o origin.Value) bool { return o.Text == v.Text }) {
			out = append(out, v)
		}
	}
	return out, err
}

func workspaces(e tomlfile.Entry) ([]origin.Value, error) {
	values, err := e.Strings()
	for _, v := range values {
		if v.Text != "~" && !strings.HasPrefix(v.Text, "~/") && !strings.HasPrefix(v.Text, "/") {
			return nil, v.Origin.Problem("%q is a relative path", v.Text).
				WithHint(`begin the path with "~/" or "/"`)
		}
	}
	return values, err
}

// placeholder reads a key of the table [template].
func (p *Profile) placeholder(e tomlfile.Entry) error {
	key := e.Path[1]
	switch {
	case !template.IsKey(key):
		return e.Origin.Problem("%q cannot be a placeholder", key).
			WithHint("a placeholder's key holds lower-case letters, digits and _")
	case template.IsBuiltin(key):
		return e.Origin.Problem("is the name of a built-in placeholder").WithHint("give the key another name")
	}
	if s, ok := e.String(); ok {
		p.Template[key] = template.String(s)
		return nil
	}
	if !e.IsList() {
		return e.Origin.Problem("must be a string or a list of strings")
	}
	values, err := e.Strings()
	if err != nil {
		return err
	}
	p.Template[key] = template.List(values...)
	return nil
}

// Check reports a chosen frontend that is not among served, the policy names
// of the plugins.
func (p *Profile) Check(served []string) error {
	for _, f := range p.Frontends {
		if !slices.Contains(served, f.Text) {
			return f.Origin.Problem("no plugin serves the frontend %q", f.Text).
				WithHint("the frontends are %s", strings.Join(served, ", "))
		}
	}
	return nil
}
