package merge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"
	"pgregory.net/rapid"
)

const want = `{"sandbox":{"enabled":true,"filesystem":{"allowWrite":["~/Research","/tmp"]},"credentials":{"files":[{"path":"~/.netrc","mode":"deny"}]}},"model":"opus"}`

func lines(s ...string) string { return strings.Join(s, "\n") }

func TestMerge(t *testing.T) {
	for rule, tt := range map[string]struct{ old, want, merged string }{
		"a missing or empty file": {"", want, lines(
			`{`,
			`  "sandbox": {`,
			`    "enabled": true,`,
			`    "filesystem": {`,
			`      "allowWrite": [`,
			`        "~/Research",`,
			`        "/tmp"`,
			`      ]`,
			`    },`,
			`    "credentials": {`,
			`      "files": [`,
			`        {"path": "~/.netrc", "mode": "deny"}`,
			`      ]`,
			`    }`,
			`  },`,
			`  "model": "opus"`,
			`}`, ``)},
		"an empty object without a newline": {`{}`, `{"a":1}`, "{\n  \"a\": 1\n}"},
		"order, comments, indentation and trailing commas stay": {lines(
			`// mine`,
			`{`,
			"\t\"z\" :  1, // z",
			"\t\"sandbox\": {",
			"\t\t\"enabled\": false, // off",
			"\t\t\"filesystem\": {\"allowWrite\": [\"/tmp\", \"/mine\"],},",
			"\t},",
			`} // end`), want, lines(
			`// mine`,
			`{`,
			"\t\"z\" :  1, // z",
			"\t\"sandbox\": {",
			"\t\t\"enabled\": true, // off",
			"\t\t\"filesystem\": {\"allowWrite\": [\"/tmp\", \"/mine\", \"~/Research\"],},",
			"\t\t\"credentials\":  {",
			"\t\t\t\"files\":  [",
			"\t\t\t\t{\"path\": \"~/.netrc\", \"mode\": \"deny\"}",
			"\t\t\t]",
			"\t\t},",
			"\t},",
			"\t\"model\":  \"opus\",",
			`} // end`)},
		"a comment on the last line stays with it": {
			"{\n  \"a\": 1 // one\n  // more\n}", `{"b":2}`,
			"{\n  \"a\": 1, // one\n  \"b\": 2\n  // more\n}"},
		"an empty list with a comment": {
			"{\n  \"l\": [ // none yet\n  ]\n}", `{"l":["x"]}`,
			"{\n  \"l\": [ // none yet\n    \"x\"\n  ]\n}"},
		"one line":                     {`{"a":[1],"b":{}}`, `{"a":[2,3],"b":{"c":{"d":[4]}}}`, `{"a":[1,2,3],"b":{"c":{"d":[4]}}}`},
		"one line with spaces":         {`{ "a": [1], "l": [ ] }`, `{"a":[2],"l":["x","y"],"c":true}`, `{ "a": [1, 2], "l": ["x", "y"], "c": true }`},
		"carriage returns":             {"{\r\n    \"a\": 1\r\n}\r\n", `{"b":{"c":2}}`, "{\r\n    \"a\": 1,\r\n    \"b\": {\r\n        \"c\": 2\r\n    }\r\n}\r\n"},
		"a byte order mark":            {"\ufeff{\"a\": 1}", `{"b":2}`, "\ufeff{\"a\": 1, \"b\": 2}"},
		"a scalar of another type":     {`{"a": null, "b": "x"}`, `{"a":[1],"b":true}`, `{"a": [1], "b": true}`},
		"equal values stay as spelled": {`{"a": "\u0041", "l": ["\u0041", {"y":1,"x":2}]}`, `{"a":"A","l":["A",{"x":2,"y":1}]}`, `{"a": "\u0041", "l": ["\u0041", {"y":1,"x":2}]}`},
		"a list that names one twice":  {`{"l": []}`, `{"l":["a","a"]}`, `{"l": ["a"]}`},
	} {
		t.Run(rule, func(t *testing.T) {
			merged, rec := merge(t, tt.old, tt.want, Record{})
			if diff := cmp.Diff(tt.merged, merged); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if again, _ := merge(t, merged, tt.want, rec); again != merged {
				t.Errorf("a second merge changes it:\n%s", again)
			}
			restored, left := withdraw(t, merged, rec)
			if restored != tt.old || left != nil {
				t.Errorf("taken back it is %q, not %q; left %q", restored, tt.old, left)
			}
		})
	}
}

// merge runs Merge, and the record through its encoding.
func merge(t interface{ Fatal(...any) }, old, want string, prev Record) (string, Record) {
	merged, rec, err := Merge("f", []byte(old), []byte(want), prev)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	var decoded Record
	if err := json.Unmarshal(data, &decoded); err != nil {
		t.Fatal(err)
	}
	return string(merged), decoded
}

func withdraw(t interface{ Fatal(...any) }, cur string, rec Record) (string, []string) {
	restored, left, err := Withdraw("f", []byte(cur), rec)
	if err != nil {
		t.Fatal(err)
	}
	return string(restored), left
}

func TestLaterTemplate(t *testing.T) {
	for rule, tt := range map[string]struct{ old, first, second, merged string }{
		"an element that it no longer gives goes": {`{"l": ["u"]}`, `{"l":["a","b"]}`, `{"l":["b","c"]}`, `{"l": ["u", "b", "c"]}`},
		"a key that it no longer gives goes":      {`{"u": 1}`, `{"o":{"a":1,"b":2}}`, `{"o":{"b":2}}`, `{"u": 1, "o": {"b": 2}}`},
		"an object that it no longer gives goes":  {`{"u": 1}`, `{"o":{"a":{"b":[1]}}}`, `{}`, `{"u": 1}`},
		"a scalar that it no longer gives goes back to the user's": {
			`{"a": "\u0041"}`, `{"a":"x"}`, `{}`, `{"a": "\u0041"}`},
		"a scalar that it changes":            {`{"a": 1}`, `{"a":2}`, `{"a":3}`, `{"a": 3}`},
		"what the user had stays":             {`{"l": ["a"], "s": 1}`, `{"l":["a"],"s":1}`, `{}`, `{"l": ["a"], "s": 1}`},
		"a list becomes a scalar":             {`{}`, `{"a":[1]}`, `{"a":2}`, "{\n  \"a\": 2\n}"},
		"a scalar becomes an object":          {`{"u": 1}`, `{"a":1}`, `{"a":{"b":1}}`, `{"u": 1, "a": {"b": 1}}`},
		"a replaced scalar becomes an object": {`{"a": 0}`, `{"a":1}`, `{"a":{"b":1}}`, `{"a": {"b": 1}}`},
	} {
		t.Run(rule, func(t *testing.T) {
			first, rec := merge(t, tt.old, tt.first, Record{})
			second, rec := merge(t, first, tt.second, rec)
			if second != tt.merged {
				t.Errorf("got  %s\nwant %s", second, tt.merged)
			}
			if restored, left := withdraw(t, second, rec); restored != tt.old || left != nil {
				t.Errorf("taken back it is %s, not %s; left %q", restored, tt.old, left)
			}
		})
	}
}

func TestWhatTheUserChangedStays(t *testing.T) {
	for rule, tt := range map[string]struct {
		old, want, cur, restored string
		left                     []string
	}{
		"a key added elsewhere": {
			`{"u": 1}`, `{"a":1}`, `{"u": 1, "a": 1, "v": 2}`, `{"u": 1, "v": 2}`, nil},
		"a key added before": {
			`{"u": 1}`, `{"a":1}`, "{\n\"v\": 2,\n\"u\": 1, \"a\": 1}", "{\n\"v\": 2,\n\"u\": 1}", nil},
		"an entry added to our list": {
			`{}`, `{"o":{"l":["a","b"]}}`, `{"o": {"l": ["a", "mine", "b"]}}`, `{"o": {"l": ["mine"]}}`,
			[]string{"o.l: stays for what you added to it", "o: stays for what you added to it"}},
		"an entry added to the user's list": {
			`{"l": ["u"]}`, `{"l":["a","b"]}`, `{"l": ["u", "a", "b", "v"]}`, `{"l": ["u", "v"]}`, nil},
		"an entry taken from our list": {
			`{}`, `{"l":["a","b"]}`, `{"l": ["b"]}`, `{}`, nil},
		"a key of ours removed": {
			`{"u": 1}`, `{"a":1}`, `{"u": 1}`, `{"u": 1}`, nil},
		"a scalar of ours changed": {
			`{"u": 1}`, `{"a":1}`, `{"u": 1, "a": 2}`, `{"u": 1, "a": 2}`, []string{"a: you changed it since"}},
		"a replaced scalar changed": {
			`{"a": 1}`, `{"a":2}`, `{"a": 3}`, `{"a": 3}`, []string{"a: you changed it since, so it is not set back to 1"}},
		"a replaced scalar removed": {
			`{"a": 1, "u": 2}`, `{"a":2}`, `{"u": 2}`, `{"u": 2}`, []string{"a: you changed it since, so it is not set back to 1"}},
		"our object made a scalar": {
			`{}`, `{"o":{"a":1}}`, `{"o": null}`, `{"o": null}`, nil},
		"a comment put into our object": {
			`{"u": 1}`, `{"o":{"a":1}}`, "{\"u\": 1, \"o\": {\n// why\n\"a\": 1}}", "{\"u\": 1, \"o\": {\n// why\n}}",
			[]string{"o: stays for what you added to it"}},
		"a comment put behind our key": {
			`{"u": 1}`, `{"a":1}`, "{\"u\": 1, \"a\": 1 // why\n}", "{\"u\": 1 // why\n}", nil},
		"a comment put before our key": {
			`{"u": 1}`, `{"a":1}`, "{\"u\": 1, /* why */ \"a\": 1}", "{\"u\": 1 /* why */}", nil},
		"the file emptied": {
			`{}`, `{"a":1}`, "", "", nil},
		"a missing file that got a key": {
			"", `{"a":1}`, `{"a": 1, "u": 2}`, `{"u": 2}`, nil},
	} {
		t.Run(rule, func(t *testing.T) {
			_, rec := merge(t, tt.old, tt.want, Record{})
			restored, left := withdraw(t, tt.cur, rec)
			if restored != tt.restored {
				t.Errorf("got  %s\nwant %s", restored, tt.restored)
			}
			if diff := cmp.Diff(tt.left, left); diff != "" {
				t.Errorf("left, -want +got\n%s", diff)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for rule, tt := range map[string]struct{ old, want string }{
		"no JSON":                 {"{\n\"a\": }", "f:2: is not JSON: invalid character '}' at start of value"},
		"a list":                  {"[]", "f:1: must be an object: { … }"},
		"a comment alone":         {"// x", "f:1: is not JSON: parsing value: unexpected EOF"},
		"a key twice":             {"{\"a\": 1,\n\"a\": 1}", "f:2: a: stands twice"},
		"a list for an object":    {"{\n\"sandbox\": []}", "f:2: sandbox: is a list, where the settings template gives an object"},
		"an object for a list":    {`{"sandbox": {"filesystem": {"allowWrite": {}}}}`, "f:1: sandbox.filesystem.allowWrite: is an object, where the settings template gives a list"},
		"an object for a boolean": {`{"sandbox": {"enabled": {}}}`, "f:1: sandbox.enabled: is an object, where the settings template gives a single value"},
	} {
		t.Run(rule, func(t *testing.T) {
			_, _, err := Merge("f", []byte(tt.old), []byte(want), Record{})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// document makes an object with comments and any layout.
func document(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string { return object(t, "doc", depth) })
}

var space = rapid.SampledFrom([]string{"", "", " ", "\n", "\n  ", "\n\t", "\r\n  ", " // c\n", "\n// c\n  ", " /* c */ ", "/* c\n */\n"})

func object(t *rapid.T, label string, depth int) string {
	keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID[string]).Draw(t, label)
	var items []string
	for _, k := range keys {
		items = append(items, fmt.Sprintf("%q%s:%s%s", k, space.Draw(t, "s"), space.Draw(t, "s"), typed(t, label+k, k, depth)))
	}
	return enclose(t, "{", "}", items)
}

// typed makes a value. The type depends on the key, so that merges agree.
func typed(t *rapid.T, label, key string, depth int) string {
	switch {
	case key == "a" && depth > 0:
		return object(t, label, depth-1)
	case key == "b":
		return enclose(t, "[", "]", rapid.SliceOfN(rapid.SampledFrom([]string{"1", `"x"`, `"y"`, `{"k": 1}`, "[]"}), 0, 4).Draw(t, label))
	}
	return rapid.SampledFrom([]string{"1", "null", "true", `"\u0041"`, "1.5e3"}).Draw(t, label)
}

func enclose(t *rapid.T, left, right string, items []string) string {
	var b strings.Builder
	b.WriteString(left)
	for i, item := range items {
		b.WriteString(space.Draw(t, "s") + item + space.Draw(t, "s"))
		if i < len(items)-1 || rapid.Bool().Draw(t, "comma") {
			b.WriteString(",")
		}
	}
	b.WriteString(space.Draw(t, "s") + right)
	return b.String()
}

// template makes an object without comments.
func template(t *rapid.T, label string) string {
	v := decode(t, document(2).Draw(t, label))
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func decode(t interface{ Fatal(...any) }, s string) map[string]any {
	// A merge of nothing is the way to standard JSON that is at hand.
	f, err := standard(s)
	if err != nil {
		t.Fatal(s, err)
	}
	return f
}

func TestWithdrawUndoesMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := space.Draw(t, "before") + document(2).Draw(t, "old") + space.Draw(t, "after")
		if rapid.IntRange(0, 9).Draw(t, "blank") == 0 {
			old = rapid.SampledFrom([]string{"", "\n", " \r\n"}).Draw(t, "blank")
		}
		cur, rec := old, Record{}
		for i := range rapid.IntRange(1, 3).Draw(t, "merges") {
			want := template(t, fmt.Sprint("want", i))
			next, nextRec, err := Merge("f", []byte(cur), []byte(want), rec)
			if err != nil {
				t.Fatalf("merge of %s: %v", want, err)
			}
			if missing := uncovered("", decode(t, want), decode(t, string(next))); missing != "" {
				t.Fatalf("merge of %s into\n%s\ngives\n%s\nwithout %s", want, cur, next, missing)
			}
			again, _, err := Merge("f", next, []byte(want), nextRec)
			if err != nil || string(again) != string(next) {
				t.Fatalf("a second merge of %s changes\n%s\nto\n%s", want, next, again)
			}
			cur, rec = string(next), nextRec
		}
		if restored, left := withdraw(t, cur, rec); restored != old || left != nil {
			t.Fatalf("%q\nmerged is\n%q\nand taken back\n%q\nleft %q", old, cur, restored, left)
		}
	})
}

// uncovered names what a merged value lacks of what was wanted.
func uncovered(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return path
		}
		for _, k := range slices.Sorted(maps.Keys(w)) {
			if _, ok := g[k]; !ok {
				return path + "." + k
			}
			if m := uncovered(path+"."+k, w[k], g[k]); m != "" {
				return m
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		for _, e := range w {
			if !ok || !slices.ContainsFunc(g, func(x any) bool { return cmp.Equal(e, x) }) {
				return fmt.Sprint(path, e)
			}
		}
		return ""
	}
	if !cmp.Equal(want, got) {
		return path
	}
	return ""
}

// TestUsersAdditionsSurvive adds keys and entries to a merged file, and
// expects the file of before with the same additions.
func TestUsersAdditionsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := document(2).Draw(t, "old")
		merged, rec := merge(t, old, template(t, "want"), Record{})
		add := map[string]any{"mine": "m"}
		if list, ok := decode(t, old)["b"].([]any); ok && len(list) > 0 {
			add["b"] = []any{"mine"}
		}
		data, err := json.Marshal(add)
		if err != nil {
			t.Fatal(err)
		}
		edited, _ := merge(t, merged, string(data), Record{})
		expected, _ := merge(t, old, string(data), Record{})
		restored, left := withdraw(t, edited, rec)
		if diff := cmp.Diff(decode(t, expected), decode(t, restored)); diff != "" || left != nil {
			t.Fatalf("%s\nleft %q\n%s", restored, left, diff)
		}
	})
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte("{\"a\": 1, // c\n\"sandbox\": {\"enabled\": null,},}"))
	f.Add([]byte("\ufeff{\r\n}//"))
	f.Add([]byte(" "))
	f.Fuzz(func(t *testing.T, old []byte) {
		merged, rec, err := Merge("f", old, []byte(want), Record{})
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("more than one line: %q", err)
			}
			return
		}
		again, _, err := Merge("f", merged, []byte(want), rec)
		if err != nil || string(again) != string(merged) {
			t.Errorf("%q\nmerged is\n%q\nmerged again\n%q: %v", old, merged, again, err)
		}
		restored, left, err := Withdraw("f", merged, rec)
		if err != nil || left != nil || string(restored) != string(old) {
			t.Errorf("%q\nmerged is\n%q\ntaken back\n%q: %v, left %q", old, merged, restored, err, left)
		}
	})
}

func standard(s string) (map[string]any, error) {
	std, err := hujson.Standardize([]byte(s + "\n"))
	if err != nil {
		return nil, err
	}
	var v map[string]any
	return v, json.Unmarshal(std, &v)
}

// A record that somebody edited must not make the user's file unreadable.
func TestDamagedRecord(t *testing.T) {
	for _, old := range []string{"{", `"x`, "1, 2", "1 // x", "// x"} {
		_, rec, err := Merge("f", []byte(`{"a": 1}`), []byte(`{"a": 2}`), Record{})
		if err != nil {
			t.Fatal(err)
		}
		c := rec.Root.Members["a"]
		c.Old = old
		rec.Root.Members["a"] = c
		restored, _, err := Withdraw("f", []byte(`{"a": 2}`), rec)
		if want := "f: the record of what install changed in it is damaged"; err == nil || err.Error() != want {
			t.Errorf("%q: %q, %v", old, restored, err)
		}
	}
}
