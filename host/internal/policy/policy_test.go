package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/internal/origin"
)

func lines(vs []origin.Value) string {
	var out []string
	for _, v := range vs {
		out = append(out, fmt.Sprintf("%s:%d", v.Text, v.Origin.Line))
	}
	return strings.Join(out, " ")
}

func TestParse(t *testing.T) {
	p, err := Parse("policy.toml", []byte("\ufeff[read]\r\nallow = [\r\n  '~/.gitconfig',\r\n  '~/go/bin/',\r\n]\r\n"+
		"[frontend.omp]\r\nstate = ['~/.omp']\r\ndeny_write = []\r\nown = []\r\n"+
		"[frontend]\r\nclaude.state = ['~/a']\r\nclaude.own = ['~/a/b']\r\nclaude.deny_write = ['~/a/c']\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lines(p.ReadAllow), "~/.gitconfig:3 ~/go/bin/:4"; got != want {
		t.Errorf("read.allow is %s, want %s", got, want)
	}
	omp, claude := p.Frontends["omp"], p.Frontends["claude"]
	if got, want := lines(omp.State)+"|"+lines(omp.DenyWrite)+"|"+lines(omp.Own), "~/.omp:7||"; got != want {
		t.Errorf("omp is %s, want %s", got, want)
	}
	if got, want := lines(claude.State)+"|"+lines(claude.DenyWrite)+"|"+lines(claude.Own), "~/a:11|~/a/c:13|~/a/b:12"; got != want {
		t.Errorf("claude is %s, want %s", got, want)
	}
	if got, want := claude.State[0].Origin.String(), "policy.toml:11: frontend.claude.state[0]"; got != want {
		t.Errorf("origin is %s, want %s", got, want)
	}
	if err := p.Check([]string{"claude", "omp"}); err != nil {
		t.Error(err)
	}
	err = p.Check([]string{"claude"})
	if want := "policy.toml:6: frontend.omp: no plugin serves this frontend"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestReadAllowMayBeEmpty(t *testing.T) {
	for _, data := range []string{"[read]\nallow = []", "read.allow = []", "read = { allow = [] }"} {
		if _, err := Parse("p", []byte(data)); err != nil {
			t.Errorf("%q: %v", data, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	const read = "[read]\nallow = []\n"
	allow := func(path string) string { return fmt.Sprintf("[read]\nallow = [%q]", path) }
	for rule, tt := range map[string]struct{ data, want string }{
		"no file content":                 {"", "p: read.allow: is missing"},
		"no allow":                        {"[read]", "p: read.allow: is missing"},
		"an unknown table":                {read + "[write]", "p:3: write: is not a table of this file"},
		"an unknown key":                  {"x = 1\n" + read, "p:1: x: is not a key of this file"},
		"an unknown key of read":          {read + "deny = []", "p:3: read.deny: is not a key of this file"},
		"an unknown key of a frontend":    {read + "[frontend.omp]\nx = []", "p:4: frontend.omp.x: is not a key of a frontend"},
		"a table within a frontend":       {read + "[frontend.omp.state]", "p:3: frontend.omp.state: must be a list of strings, not a table"},
		"a deep unknown key":              {read + "[frontend.omp.state.x]\ny=1", "p:3: frontend.omp.state.x: is not a table of this file"},
		"read is a value":                 {"read = 3", "p:1: read: must be a table"},
		"frontend is a value":             {read + "[[frontend]]", "p:3: frontend: must be a table"},
		"a frontend is a value":           {read + "frontend = 3", "p:3: read.frontend: is not a key of this file"},
		"an own frontend is a value":      {read + "[frontend]\nomp = 'x'", "p:4: frontend.omp: must be a table"},
		"a missing state":                 {read + "[frontend.omp]\nown=[]\ndeny_write=[]", "p:3: frontend.omp: state is missing"},
		"a missing deny_write":            {read + "[frontend.omp]\nown=[]\nstate=[]", "p:3: frontend.omp: deny_write is missing"},
		"a missing own":                   {read + "[frontend.omp]\nstate=[]\ndeny_write=[]", "p:3: frontend.omp: own is missing"},
		"a missing key of a dotted table": {read + "[frontend]\nomp.state=[]", "p:4: frontend.omp: deny_write is missing"},
		"a string for a list":             {"[read]\nallow = '~/x'", "p:2: read.allow: must be a list of strings, not a string"},
		"a number in a list":              {"[read]\nallow = ['~/x',\n1]", "p:3: read.allow[1]: must be a string, not a number"},
		"a list in a list":                {"[read]\nallow = [['~/x']]", "p:2: read.allow[0]: must be a string, not a list"},
		"a table in a list":               {"[read]\nallow = [{a=1}]", "p:2: read.allow[0]: must be a string, not a table"},
		"an absolute path":                {allow("/etc"), `p:2: read.allow[0]: "/etc" does not start with ~/`},
		"another user's home":             {allow("~joe/x"), `p:2: read.allow[0]: "~joe/x" does not start with ~/`},
		"a relative path":                 {allow("x"), `p:2: read.allow[0]: "x" does not start with ~/`},
		"an empty path":                   {allow(""), `p:2: read.allow[0]: "" does not start with ~/`},
		"home":                            {allow("~"), `p:2: read.allow[0]: "~" does not start with ~/`},
		"home with a slash":               {allow("~/"), `p:2: read.allow[0]: "~/" is the whole home directory`},
		"home with a dot":                 {allow("~/./"), `p:2: read.allow[0]: "~/./" is the whole home directory`},
		"a parent segment":                {allow("~/a/../b"), `p:2: read.allow[0]: "~/a/../b" holds a ".." segment, which could leave the home directory`},
		"a last parent segment":           {allow("~/.."), `p:2: read.allow[0]: "~/.." holds a ".." segment, which could leave the home directory`},
		"an empty segment":                {allow("~/a//b"), `p:2: read.allow[0]: "~/a//b" holds an empty segment`},
		"two slashes at the start":        {allow("~//a"), `p:2: read.allow[0]: "~//a" holds an empty segment`},
		"two slashes at the end":          {allow("~/a//"), `p:2: read.allow[0]: "~/a//" holds an empty segment`},
		"a NUL":                           {"[read]\nallow = [\"~/a\\u0000b\"]", `p:2: read.allow[0]: "~/a\x00b" holds a NUL`},
		"a bad path of a frontend":        {read + "[frontend.omp]\nown=[]\nstate=[]\ndeny_write=['x']", `p:6: frontend.omp.deny_write[0]: "x" does not start with ~/`},
		"a table twice":                   {read + "[frontend.omp]\n[frontend.omp]", "p:4: "},
		"a key twice":                     {"[read]\nallow=[]\nallow=[]", "p:3: "},
		"no TOML":                         {"[read\n", "p:1: "},
		"no UTF-8":                        {"[read]\nallow = ['~/\xff']", "p:2: "},
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

func FuzzParse(f *testing.F) {
	f.Add([]byte("[read]\nallow = ['~/a', '~/b/']\n[frontend.x]\nstate=['~/c']\nown=[]\ndeny_write=[]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("p", data)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("more than one line: %q", err)
			}
			return
		}
		all := slices.Clone(p.ReadAllow)
		for _, e := range p.Frontends {
			all = slices.Concat(all, e.State, e.Own, e.DenyWrite)
		}
		for _, v := range all {
			if !strings.HasPrefix(v.Text, "~/") || strings.Contains(v.Text, "/../") || v.Origin.Line == 0 {
				t.Errorf("accepted %q of line %d", v.Text, v.Origin.Line)
			}
		}
	})
}
