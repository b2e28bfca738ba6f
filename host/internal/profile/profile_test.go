package profile

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/system"
)

func show(vs []origin.Value) string {
	var out []string
	for _, v := range vs {
		out = append(out, fmt.Sprintf("%s:%d", v.Text, v.Origin.Line))
	}
	return strings.Join(out, " ")
}

func TestParse(t *testing.T) {
	p, err := Parse("p", []byte("\ufeff[setup]\r\nfrontends = ['omp', 'claude', 'omp']\r\nworkspaces = [\r\n'~/Research',\r\n'/data/x',\r\n]\r\n"+
		"[network]\r\nallow = ['a.b']\r\ndeny = ['*']\r\n[sandbox]\r\ntoolchain_caches = false\r\n[template]\r\nname = 'ann'\r\n'list_2' = ['x', 'y']\r\nempty = []\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{
		p.File, show(p.Frontends), strconv.FormatBool(p.FrontendsSet), show(p.Workspaces), show(p.Allow), show(p.Deny), strconv.FormatBool(p.ToolchainCaches),
		show(p.Template["name"].List), strconv.FormatBool(p.Template["name"].IsList),
		show(p.Template["list_2"].List), strconv.FormatBool(p.Template["list_2"].IsList), strconv.FormatBool(p.Template["empty"].IsList),
	}
	want := []string{
		"p", "omp:2 claude:2", "true", "~/Research:4 /data/x:5", "a.b:8", "*:9", "false",
		"ann:13", "false", "x:14 y:14", "true", "true",
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("value %d is %q, want %q", i, got[i], want[i])
		}
	}
	if err := p.Check([]string{"claude", "omp"}); err != nil {
		t.Error(err)
	}
	err = p.Check([]string{"claude"})
	if want := `p:2: setup.frontends[0]: no plugin serves the frontend "omp"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDefaults(t *testing.T) {
	for _, data := range []string{"", "[setup]\n[network]\n[sandbox]\n[template]"} {
		p, err := Parse("p", []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		if p.FrontendsSet || len(p.Frontends) > 0 || show(p.Workspaces) != "~/Research:0" || !p.ToolchainCaches || len(p.Template) > 0 {
			t.Errorf("%q gives %+v", data, p)
		}
	}
}

func TestEmptyListsAreChoices(t *testing.T) {
	p, err := Parse("p", []byte("[setup]\nfrontends = []\nworkspaces = []"))
	if err != nil {
		t.Fatal(err)
	}
	if !p.FrontendsSet || len(p.Frontends) > 0 || len(p.Workspaces) > 0 {
		t.Errorf("got %+v", p)
	}
}

func TestRefusals(t *testing.T) {
	for rule, tt := range map[string]struct{ data, want string }{
		"an unknown table":                    {"[steup]", "p:1: steup: is not a table of the profile"},
		"an unknown key at the top":           {"frontends = []", "p:1: frontends: is not a key of the profile"},
		"an unknown key of setup":             {"[setup]\nfrontend = []", "p:2: setup.frontend: is not a key of the profile"},
		"a key whose quoted name has a dot":   {"'setup.frontends' = []", "p:1: setup.frontends: is not a key of the profile"},
		"a table is a value":                  {"setup = []", "p:1: setup: must be a table"},
		"a table is an array of tables":       {"[[network]]", "p:1: network: must be a table"},
		"frontends of another type":           {"[setup]\nfrontends = 'claude'", "p:2: setup.frontends: must be a list of strings, not a string"},
		"a frontend of another type":          {"[setup]\nfrontends = ['claude',\n1]", "p:3: setup.frontends[1]: must be a string, not a number"},
		"workspaces of another type":          {"[setup]\nworkspaces = 1979-05-27", "p:2: setup.workspaces: must be a list of strings, not a date or time"},
		"a relative workspace":                {"[setup]\nworkspaces = ['~/x',\n'Research']", `p:3: setup.workspaces[1]: "Research" is a relative path`},
		"an empty workspace":                  {"[setup]\nworkspaces = ['']", `p:2: setup.workspaces[0]: "" is a relative path`},
		"toolchain_caches of another type":    {"[sandbox]\ntoolchain_caches = 'no'", "p:2: sandbox.toolchain_caches: must be true or false, not a string"},
		"a domain that is a URL":              {"[network]\nallow = [\n'https://a.b/']", `p:3: network.allow[0]: "https://a.b/" is a URL, not a domain`},
		"a denied domain with a space":        {"[network]\ndeny = ['a b']", `p:2: network.deny[0]: "a b" holds a space or a control character`},
		"a placeholder of another type":       {"[template]\nx = 1", "p:2: template.x: must be a string or a list of strings"},
		"a placeholder's element":             {"[template]\nx = ['a', 1]", "p:2: template.x[1]: must be a string, not a number"},
		"a placeholder that is a table":       {"[template.x]", "p:1: template.x: must be a string or a list of strings"},
		"a placeholder with a capital":        {"[template]\nName = 'x'", `p:2: template.Name: "Name" cannot be a placeholder`},
		"a placeholder without a name":        {"[template]\n'' = 'x'", `p:2: template.: "" cannot be a placeholder`},
		"a placeholder with a built-in's key": {"[template]\nworkspaces = ['x']", "p:2: template.workspaces: is the name of a built-in placeholder"},
		"a key twice":                         {"[setup]\nfrontends = []\nfrontends = []", "p:3: "},
		"no TOML":                             {"[setup]\nfrontends = [", "p:2: "},
	} {
		t.Run(rule, func(t *testing.T) {
			_, err := Parse("p", []byte(tt.data))
			exact := !strings.HasSuffix(tt.want, " ")
			if err == nil || exact && err.Error() != tt.want || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	write := func(path, data string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	load := func(flag string, env ...string) (string, error) {
		p, err := Load(&system.System{Dir: dir, Env: env}, home, flag)
		if err != nil {
			return "", err
		}
		return p.File, nil
	}

	if file, err := load(""); file != "" || err != nil {
		t.Errorf("a missing default file: %q, %v", file, err)
	}
	byDefault := write(layout.Layout{Home: home}.Profile(), "")
	byEnv, byFlag := write(filepath.Join(dir, "env.toml"), ""), write(filepath.Join(dir, "flag.toml"), "")
	for rule, tt := range map[string]struct{ flag, env, want string }{
		"the default file":            {"", "", byDefault},
		"the variable":                {"", byEnv, byEnv},
		"the flag before it":          {byFlag, byEnv, byFlag},
		"relative to the current dir": {"flag.toml", "", byFlag},
	} {
		if file, err := load(tt.flag, EnvFile+"="+tt.env); file != tt.want || err != nil {
			t.Errorf("%s: %q, %v", rule, file, err)
		}
	}

	for _, tt := range []struct{ flag, env, want string }{
		{"none.toml", "", dir + "/none.toml: --profile: there is no such file"},
		{"", dir + "/none.toml", dir + "/none.toml: " + EnvFile + ": there is no such file"},
		{dir, "", dir + ": --profile: is a directory"},
	} {
		if _, err := load(tt.flag, EnvFile+"="+tt.env); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}

	if err := os.Remove(byDefault); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone", byDefault); err != nil {
		t.Fatal(err)
	}
	if _, err := load(""); err == nil || !strings.Contains(err.Error(), "is a symbolic link to gone, which does not exist") {
		t.Errorf("a dangling link in place of the default file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("[setup]\nfrontends=['claude']\n[network]\nallow=['a.b']\n[template]\nx='y'"))
	f.Add([]byte("\ufeffsetup = {workspaces = ['~/x']}\r\nsandbox.toolchain_caches = true"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Parse("p", data); err != nil && strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("more than one line: %q", err)
		}
	})
}
