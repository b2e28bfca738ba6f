// Package tomlfile reads a TOML file of strings, lists of strings and
// booleans into entries that know their line.
package tomlfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/problem"
)

// Entry is a table or a value of a file, in the order of the file. A table
// stands as an entry of its own only where it has a header or is written
// inline; the tables of a dotted key do not.
type Entry struct {
	Path   []string      // the key and the tables that it lies in
	Origin origin.Origin // Element is the dotted key

	table bool
	node  any // string, bool, []element, or kind for anything else
}

type element struct {
	node any
	line int
}

// kind is a type of TOML that no file of ours holds, in words.
type kind string

// Parse reads a file. Carriage returns and a byte order mark are accepted. A
// fault of syntax, or a key or table that stands twice, is a problem with its
// line.
func Parse(file string, data []byte) ([]Entry, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var whole map[string]any
	if err := toml.Unmarshal(data, &whole); err != nil {
		return nil, syntax(file, err)
	}
	r := reader{file: file}
	r.parser.Reset(data)
	var table []string
	for r.parser.NextExpression() {
		switch node := r.parser.Expression(); node.Kind {
		case unstable.Table:
			table = r.add(nil, node.Key(), true, nil)
		case unstable.ArrayTable:
			table = r.add(nil, node.Key(), false, kind("an array of tables"))
		case unstable.KeyValue:
			r.keyValue(table, node)
		}
	}
	if err := r.parser.Error(); err != nil {
		return nil, syntax(file, err)
	}
	return r.entries, nil
}

func syntax(file string, err error) error {
	reason := strings.TrimPrefix(err.Error(), "toml: ")
	if de, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := de.Position()
		return problem.New(fmt.Sprintf("%s:%d", file, line), strings.Join(de.Key(), "."), "%s", reason)
	}
	return problem.New(file, "", "%s", reason)
}

type reader struct {
	file    string
	parser  unstable.Parser
	entries []Entry
}

// add appends an entry whose key continues table and returns its path.
func (r *reader) add(table []string, key unstable.Iterator, isTable bool, value any) []string {
	path := table[:len(table):len(table)]
	line := 0
	for key.Next() {
		part := key.Node()
		path = append(path, string(part.Data))
		if line == 0 {
			line = r.line(part)
		}
	}
	r.entries = append(r.entries, Entry{
		Path:   path,
		Origin: origin.Origin{Source: r.file, Line: line, Element: strings.Join(path, ".")},
		table:  isTable, node: value,
	})
	return path
}

func (r *reader) keyValue(table []string, node *unstable.Node) {
	value := node.Value()
	if value.Kind != unstable.InlineTable {
		r.add(table, node.Key(), false, r.value(value))
		return
	}
	path := r.add(table, node.Key(), true, nil)
	for it := value.Children(); it.Next(); {
		r.keyValue(path, it.Node())
	}
}

func (r *reader) value(node *unstable.Node) any {
	switch node.Kind {
	case unstable.String:
		return string(node.Data)
	case unstable.Bool:
		return string(node.Data) == "true"
	case unstable.Array:
		list := []element{}
		for it := node.Children(); it.Next(); {
			child := it.Node()
			list = append(list, element{r.value(child), r.line(child)})
		}
		return list
	case unstable.Integer, unstable.Float:
		return kind("a number")
	case unstable.InlineTable:
		return kind("a table")
	}
	return kind("a date or time")
}

// line is the line of a node, 0 where the parser does not say.
func (r *reader) line(node *unstable.Node) int {
	if node.Raw.Length == 0 {
		return 0
	}
	return 1 + bytes.Count(r.parser.Data()[:node.Raw.Offset], []byte{'\n'})
}

// IsTable reports whether the entry is a table.
func (e Entry) IsTable() bool { return e.table }

// IsList reports whether the entry is a list.
func (e Entry) IsList() bool {
	_, ok := e.node.([]element)
	return ok
}

// Bool returns the entry's boolean.
func (e Entry) Bool() (bool, error) {
	if b, ok := e.node.(bool); ok {
		return b, nil
	}
	return false, e.Origin.Problem("must be true or false, not %s", e.describe())
}

// String returns the entry's string and whether it is one.
func (e Entry) String() (origin.Value, bool) {
	s, ok := e.node.(string)
	return origin.Value{Text: s, Origin: e.Origin}, ok
}

// Strings returns the entry's list, each value with its own line. It is never
// nil.
func (e Entry) Strings() ([]origin.Value, error) {
	list, ok := e.node.([]element)
	if !ok {
		return nil, e.Origin.Problem("must be a list of strings, not %s", e.describe())
	}
	values := make([]origin.Value, len(list))
	for i, el := range list {
		o := origin.Origin{Source: e.Origin.Source, Line: el.line, Element: fmt.Sprintf("%s[%d]", e.Origin.Element, i)}
		if o.Line == 0 {
			o.Line = e.Origin.Line
		}
		s, ok := el.node.(string)
		if !ok {
			return nil, o.Problem("must be a string, not %s", describe(el.node))
		}
		values[i] = origin.Value{Text: s, Origin: o}
	}
	return values, nil
}

func (e Entry) describe() string {
	if e.table {
		return "a table"
	}
	return describe(e.node)
}

func describe(node any) string {
	switch n := node.(type) {
	case string:
		return "a string"
	case bool:
		return "true or false"
	case []element:
		return "a list"
	case kind:
		return string(n)
	}
	return "nothing"
}
