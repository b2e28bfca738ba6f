// Package template reads the Claude Code settings template and fills in its
// placeholders.
package template

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/research-harness/harness/host/internal/jsonc"
	"github.com/research-harness/harness/host/internal/origin"
)

// Template is a parsed template.
type Template struct{ file *jsonc.File }

// Parse reads a template. Comments and trailing commas are accepted. A key
// that stands twice, or a template that is no object or has no sandbox
// object, is a problem with its line.
func Parse(file string, data []byte) (*Template, error) {
	f, err := jsonc.Parse(file, data)
	if err != nil {
		return nil, err
	}
	sandbox := jsonc.Member(f.Root, "sandbox")
	if sandbox == nil {
		return nil, f.Problem(f.Root, "sandbox", "is missing")
	}
	if _, ok := sandbox.Value.Value.(*hujson.Object); !ok {
		return nil, f.Problem(sandbox.Value, "sandbox", "must be an object")
	}
	return &Template{f}, nil
}

// Result is a template with its placeholders filled in.
type Result struct {
	Sandbox Sandbox
	// Settings is the whole object as standard JSON, keys in the template's
	// order, for the merge into Claude Code's own settings.
	Settings json.RawMessage
}

// Expand fills in the placeholders. An unknown placeholder, a misplaced list,
// a wrong type in the sandbox object, or a domain that srt would refuse is a
// problem with its line.
func (t *Template) Expand(values map[string]Value) (*Result, error) {
	e := expander{file: t.file, values: values}
	root, err := e.value(t.file.Root, "")
	if err != nil {
		return nil, err
	}
	sandbox, err := readSandbox(*root.member("sandbox"))
	if err != nil {
		return nil, err
	}
	return &Result{Sandbox: *sandbox, Settings: root.appendJSON(nil)}, nil
}

// node is a value of the expanded template.
type node struct {
	origin  origin.Origin
	key     string // within an object
	object  bool
	list    bool
	items   []node         // members or elements
	literal hujson.Literal // where it is neither an object nor a list
}

// text returns the value of a string.
func (n node) text() (string, bool) {
	return jsonc.LiteralText(n.literal), n.literal.Kind() == '"'
}

// member returns the value of a key of an object, nil where there is none.
func (n node) member(key string) *node {
	for i := range n.items {
		if n.object && n.items[i].key == key {
			return &n.items[i]
		}
	}
	return nil
}

// appendJSON appends the value as compact JSON.
func (n node) appendJSON(b []byte) []byte {
	brackets := "[]"
	switch {
	case n.object:
		brackets = "{}"
	case !n.list:
		return append(b, n.literal...)
	}
	b = append(b, brackets[0])
	for i, item := range n.items {
		if i > 0 {
			b = append(b, ',')
		}
		if n.object {
			b = append(append(b, hujson.String(item.key)...), ':')
		}
		b = item.appendJSON(b)
	}
	return append(b, brackets[1])
}

type expander struct {
	file   *jsonc.File
	values map[string]Value
}

func (e expander) value(v hujson.Value, path string) (node, error) {
	n := node{origin: e.file.Origin(v, path)}
	switch t := v.Value.(type) {
	case *hujson.Object:
		n.object = true
		for _, m := range t.Members {
			key := jsonc.Text(m.Name)
			item, err := e.value(m.Value, jsonc.Join(path, key))
			if err != nil {
				return node{}, err
			}
			item.key = key
			n.items = append(n.items, item)
		}
	case *hujson.Array:
		n.list = true
		for i, element := range t.Elements {
			items, err := e.element(element, jsonc.Index(path, i))
			if err != nil {
				return node{}, err
			}
			n.items = append(n.items, items...)
		}
	case hujson.Literal:
		n.literal = t
		if t.Kind() == '"' {
			texts, err := e.expand(v, path, false)
			if err != nil {
				return node{}, err
			}
			n.literal, n.origin = hujson.String(texts[0].Text), texts[0].Origin
		}
	}
	return n, nil
}

// element expands an element of a list, which may stand for any number.
func (e expander) element(v hujson.Value, path string) ([]node, error) {
	if v.Value.Kind() != '"' {
		n, err := e.value(v, path)
		return []node{n}, err
	}
	texts, err := e.expand(v, path, true)
	nodes := make([]node, len(texts))
	for i, t := range texts {
		nodes[i] = node{origin: t.Origin, literal: hujson.String(t.Text)}
	}
	return nodes, err
}

// expand fills in the placeholders of a string. Where it may stand for a list
// and does, the result is any number of strings, else it is one. A string
// that is one placeholder and nothing else has the origin of its value.
func (e expander) expand(v hujson.Value, path string, mayRepeat bool) ([]origin.Value, error) {
	parts := parse(jsonc.Text(v))
	repeat := -1
	for i, p := range parts {
		if p.key == "" {
			continue
		}
		value, ok := e.values[p.key]
		switch {
		case !ok:
			return nil, e.file.Problem(v, path, "unknown placeholder {%s}", p.key).
				WithHint("give it a value in the profile's table [template], or write {{%s}} for the text itself", p.key)
		case !value.IsList:
		case !mayRepeat:
			return nil, e.file.Problem(v, path, "placeholder {%s} is a list, which can stand only in a string directly in a list", p.key)
		case repeat >= 0:
			return nil, e.file.Problem(v, path, "placeholder {%s} is a second list in one element", p.key)
		default:
			repeat = i
		}
	}
	choices := []origin.Value{{}}
	if repeat >= 0 {
		choices = e.values[parts[repeat].key].List
	}
	out := make([]origin.Value, 0, len(choices))
	for _, choice := range choices {
		text := origin.Value{Origin: e.file.Origin(v, path)}
		for i, p := range parts {
			value := origin.Value{Text: p.literal}
			switch {
			case i == repeat:
				value = choice
			case p.key != "":
				value = e.values[p.key].List[0]
			}
			if p.key != "" && len(parts) == 1 {
				text.Origin = value.Origin
			}
			if !utf8.ValidString(value.Text) {
				return nil, value.Origin.Problem("%q is not valid UTF-8, which a settings file cannot hold", value.Text)
			}
			text.Text += value.Text
		}
		out = append(out, text)
	}
	return out, nil
}
