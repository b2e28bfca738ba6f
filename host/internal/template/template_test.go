package template

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/internal/origin"
)

func values(source string, texts ...string) []origin.Value {
	out := make([]origin.Value, len(texts))
	for i, text := range texts {
		out[i] = origin.Value{Text: text, Origin: origin.Origin{Source: source, Line: i + 1}}
	}
	return out
}

func fixture() map[string]Value {
	return map[string]Value{
		AllowedDomains:  List(values("net", "a.b", "*.c.d")...),
		DeniedDomains:   List(),
		Workspaces:      List(values("prof", "~/Research", "~/W")...),
		ToolchainCaches: List(values("tool", "~/.cache")...),
		"name":          String(values("prof", "ann")[0]),
		"braces":        String(values("prof", "{workspaces}")[0]),
	}
}

func expand(t *testing.T, data string) *Result {
	t.Helper()
	tmpl, err := Parse("t", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	r, err := tmpl.Expand(fixture())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPlaceholders(t *testing.T) {
	for rule, tt := range map[string]struct{ in, want string }{
		"a string substitutes":                     {`"hi {name}!"`, `"hi ann!"`},
		"a string twice":                           {`"{name}{name}"`, `"annann"`},
		"a string in a list, in an object, in it":  {`[{"k": ["{name}"]}]`, `[{"k":["ann"]}]`},
		"a list repeats its element, in order":     {`["x", "{workspaces}", "y"]`, `["x","~/Research","~/W","y"]`},
		"a list with text around it":               {`["{workspaces}/**/{name}"]`, `["~/Research/**/ann","~/W/**/ann"]`},
		"an empty list drops its element":          {`["x", "a{denied_domains}b", "y"]`, `["x","y"]`},
		"an empty list alone leaves an empty list": {`["{denied_domains}"]`, `[]`},
		"a list in a list of a list":               {`[["{workspaces}"]]`, `[["~/Research","~/W"]]`},
		"doubled braces are braces":                {`"{{name}} }} {{"`, `"{name} } {"`},
		"braces around a placeholder":              {`"{{{name}}}"`, `"{ann}"`},
		"any other brace stays":                    {`"{ } {} {a,b} {Name} {na me} {name"`, `"{ } {} {a,b} {Name} {na me} {name"`},
		"a value is not expanded again":            {`"{braces}"`, `"{workspaces}"`},
		"keys are not expanded":                    {`{"{name}": 1}`, `{"{name}":1}`},
		"a placeholder spelled with an escape":     {`"\u007bname}"`, `"ann"`},
		"other literals stay as they are spelled":  {`[1.50, -0, 1e5, null, true, false]`, `[1.50,-0,1e5,null,true,false]`},
		"comments and trailing commas go":          {"[1, // one\n /* two */ 2,\n]", `[1,2]`},
		"text that needs escapes":                  {`"\t<&> é \u0001"`, `"\t<&> é \u0001"`},
	} {
		t.Run(rule, func(t *testing.T) {
			r := expand(t, `{"x": `+tt.in+`, "sandbox": {}}`)
			if got, want := string(r.Settings), `{"x":`+tt.want+`,"sandbox":{}}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestSandbox(t *testing.T) {
	r := expand(t, `{
  "sandbox": {
    "enabled": true,
    "filesystem": {
      "allowWrite": ["{workspaces}", "{toolchain_caches}"],
      "denyWrite": [
        "~/.bashrc",
        "{workspaces}/x"
      ],
      "denyRead": ["~/.ssh"]
    },
    "credentials": {"files": [{"path": "~/.netrc", "mode": "deny"}, {"path": "~/.{name}"}]},
    "network": {"allowedDomains": ["z.z", "{allowed_domains}"], "deniedDomains": ["*"], "allowLocalBinding": true},
    "excludedCommands": ["docker"]
  }
}`)
	show := func(vs []origin.Value) string {
		var out []string
		for _, v := range vs {
			out = append(out, fmt.Sprintf("%s@%s:%d", v.Text, v.Origin.Source, v.Origin.Line))
		}
		return strings.Join(out, " ")
	}
	got := []string{
		show(r.Sandbox.AllowWrite), show(r.Sandbox.DenyWrite), show(r.Sandbox.DenyRead), show(r.Sandbox.Credentials),
		show(r.Sandbox.AllowedDomains), show(r.Sandbox.DeniedDomains), strconv.FormatBool(r.Sandbox.AllowLocalBinding),
	}
	want := []string{
		"~/Research@prof:1 ~/W@prof:2 ~/.cache@tool:1", "~/.bashrc@t:7 ~/Research/x@t:8 ~/W/x@t:8", "~/.ssh@t:10", "~/.netrc@t:12 ~/.ann@t:12",
		"z.z@t:13 a.b@net:1 *.c.d@net:2", "*@t:13", "true",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if e := r.Sandbox.DenyWrite[1].Origin.Element; e != "sandbox.filesystem.denyWrite[1]" {
		t.Errorf("element is %s", e)
	}
}

func TestEverythingInTheSandboxIsOptional(t *testing.T) {
	for _, data := range []string{`{"sandbox":{}}`, `{"sandbox":{"filesystem":{},"network":{},"credentials":{}}}`, "\ufeff{\r\n\"sandbox\": {} } // end"} {
		if got := expand(t, data).Sandbox; !reflect.DeepEqual(got, Sandbox{}) {
			t.Errorf("%s gives %+v", data, got)
		}
	}
}

func TestRefusals(t *testing.T) {
	sandbox := func(s string) string { return "{\"sandbox\":\n{" + s + "}}" }
	for rule, tt := range map[string]struct{ data, want string }{
		"no content":                           {"", "t:1: is not JSON: parsing value: unexpected EOF"},
		"no JSON":                              {"{\n\"a\" 1}", "t:2: is not JSON: invalid character '1' after object name"},
		"something after the object":           {"{}\n{}", "t:2: is not JSON: invalid character '{' after top-level value"},
		"no UTF-8":                             {"{\"\xff\":1}", "t: is not UTF-8"},
		"a list":                               {"[]", "t:1: must be an object: { … }"},
		"a key twice":                          {"{\n\"a\":1,\n\"\\u0061\":2}", "t:3: a: stands twice"},
		"a key twice within a list":            {`{"a":[{"b":1,"b":2}]}`, "t:1: a[0].b: stands twice"},
		"no sandbox":                           {"{}", "t:1: sandbox: is missing"},
		"a sandbox of another type":            {"{\n\"sandbox\":[]}", "t:2: sandbox: must be an object"},
		"an unknown placeholder":               {sandbox(`"x":"{nope}"`), "t:2: sandbox.x: unknown placeholder {nope}"},
		"an unknown placeholder among others":  {sandbox(`"x":["{workspaces}{nope}"]`), "t:2: sandbox.x[0]: unknown placeholder {nope}"},
		"a list outside a list":                {sandbox(`"x":"{workspaces}"`), "t:2: sandbox.x: placeholder {workspaces} is a list, which can stand only in a string directly in a list"},
		"a list in an object in a list":        {sandbox(`"x":[{"k":"{workspaces}"}]`), "t:2: sandbox.x[0].k: placeholder {workspaces} is a list, which can stand only in a string directly in a list"},
		"two lists in one element":             {sandbox(`"x":["{workspaces}{toolchain_caches}"]`), "t:2: sandbox.x[0]: placeholder {toolchain_caches} is a second list in one element"},
		"one list twice in an element":         {sandbox(`"x":["{workspaces}{workspaces}"]`), "t:2: sandbox.x[0]: placeholder {workspaces} is a second list in one element"},
		"filesystem of another type":           {sandbox(`"filesystem":[]`), "t:2: sandbox.filesystem: must be an object"},
		"allowWrite of another type":           {sandbox(`"filesystem":{"allowWrite":"~/x"}`), "t:2: sandbox.filesystem.allowWrite: must be a list"},
		"an object for a list":                 {sandbox(`"filesystem":{"denyRead":{"a":"b"}}`), "t:2: sandbox.filesystem.denyRead: must be a list"},
		"an element of denyWrite":              {sandbox(`"filesystem":{"denyWrite":["a",1]}`), "t:2: sandbox.filesystem.denyWrite[1]: must be a string"},
		"null":                                 {sandbox(`"network":null`), "t:2: sandbox.network: must be an object"},
		"allowLocalBinding of another type":    {sandbox(`"network":{"allowLocalBinding":"true"}`), "t:2: sandbox.network.allowLocalBinding: must be true or false"},
		"credentials.files of another type":    {sandbox(`"credentials":{"files":{}}`), "t:2: sandbox.credentials.files: must be a list"},
		"a credential that is a string":        {sandbox(`"credentials":{"files":["~/x"]}`), "t:2: sandbox.credentials.files[0]: must be an object with a path"},
		"a credential's path of another type":  {sandbox(`"credentials":{"files":[{"path":1}]}`), "t:2: sandbox.credentials.files[0].path: must be a string"},
		"a domain that srt refuses":            {sandbox(`"network":{"allowedDomains":["*"]}`), `t:2: sandbox.network.allowedDomains[0]: "*" has a "*" elsewhere than in "*." at its start`},
		"a denied domain that srt refuses":     {sandbox(`"network":{"deniedDomains":["a b"]}`), `t:2: sandbox.network.deniedDomains[0]: "a b" holds a space or a control character`},
		"a key with a dot is quoted":           {`{"a.b":"{nope}","sandbox":{}}`, `t:1: "a.b": unknown placeholder {nope}`},
		"a placeholder outside of the sandbox": {"{\"sandbox\":{},\n\"env\":{\"A\":\"{nope}\"}}", "t:2: env.A: unknown placeholder {nope}"},
	} {
		t.Run(rule, func(t *testing.T) {
			tmpl, err := Parse("t", []byte(tt.data))
			if err == nil {
				_, err = tmpl.Expand(fixture())
			}
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestValueThatIsNoUTF8(t *testing.T) {
	tmpl, err := Parse("t", []byte(`{"sandbox":{"x":["{workspaces}"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = tmpl.Expand(map[string]Value{Workspaces: List(values("prof", "~/\xff")...)})
	if want := `prof:1: "~/\xff" is not valid UTF-8, which a settings file cannot hold`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func FuzzExpand(f *testing.F) {
	f.Add([]byte(`{"a":"{name}{{x}}","sandbox":{"filesystem":{"allowWrite":["{workspaces}/x"]}}}`))
	f.Add([]byte("\ufeff{\r\n// c\r\n\"sandbox\":{\"network\":{\"allowedDomains\":[\"{allowed_domains}\",],}}}//"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tmpl, err := Parse("t", data)
		var r *Result
		if err == nil {
			r, err = tmpl.Expand(fixture())
		}
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("more than one line: %q", err)
			}
			return
		}
		var v any
		if err := json.Unmarshal(r.Settings, &v); err != nil {
			t.Errorf("%s: %v", r.Settings, err)
		}
	})
}
