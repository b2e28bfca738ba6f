// Package jsonc parses JSON with comments and trailing commas into a syntax
// tree whose nodes know their line.
package jsonc

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/problem"
)

// File is a parsed file.
type File struct {
	Name string
	BOM  bool         // a byte order mark precedes Data
	Data []byte       // without the byte order mark; the offsets of Root refer to it
	Root hujson.Value // an object

	newlines []int // their offsets in Data
}

const bom = "\ufeff"

// maxDepth is far beyond any settings file.
const maxDepth = 100

// Parse reads a file that holds one object. A fault of syntax, bytes that are
// no UTF-8, a key that stands twice in an object, or another value than an
// object is a problem with its line.
func Parse(name string, data []byte) (*File, error) {
	f := &File{Name: name}
	f.Data, f.BOM = bytes.CutPrefix(data, []byte(bom))
	for i, b := range f.Data {
		if b == '\n' {
			f.newlines = append(f.newlines, i)
		}
	}
	if !utf8.Valid(f.Data) {
		return nil, problem.New(name, "", "is not UTF-8")
	}
	if line := f.tooDeep(); line > 0 {
		return nil, origin.Origin{Source: name, Line: line}.Problem("is nested more than %d levels deep", maxDepth)
	}
	// The parser wants a line comment to end in a newline.
	root, err := hujson.Parse(append(bytes.Clone(f.Data), '\n'))
	if err != nil {
		return nil, f.syntax(err)
	}
	f.Root = root
	if _, ok := root.Value.(*hujson.Object); !ok {
		return nil, f.Problem(root, "", "must be an object: { … }")
	}
	return f, f.check(root, "")
}

// tooDeep returns the line on which the nesting exceeds the limit, or 0. The
// parser, which calls itself for each level, would run out of stack.
func (f *File) tooDeep() (line int) {
	depth := 0
	for d, i := f.Data, 0; i < len(d); i++ {
		switch d[i] {
		case '"':
			for i++; i < len(d) && d[i] != '"'; i++ {
				if d[i] == '\\' {
					i++
				}
			}
		case '/':
			end := "\n"
			if bytes.HasPrefix(d[i:], []byte("/*")) {
				end = "*/"
			}
			if _, after, ok := bytes.Cut(d[min(i+2, len(d)):], []byte(end)); ok {
				i = len(d) - len(after) - 1
			}
		case '[', '{':
			if depth++; depth > maxDepth {
				return 1 + bytes.Count(d[:i], []byte{'\n'})
			}
		case ']', '}':
			depth--
		}
	}
	return 0
}

// position is where the parser says what it found.
var position = regexp.MustCompile(`^hujson: line (\d+), column \d+: `)

func (f *File) syntax(err error) error {
	reason := err.Error()
	line := 0
	if m := position.FindStringSubmatch(reason); m != nil {
		line, _ = strconv.Atoi(m[1])
		line = min(line, len(f.newlines)+1)
		reason = reason[len(m[0]):]
	}
	return origin.Origin{Source: f.Name, Line: line}.Problem("is not JSON: %s", reason)
}

// check finds a key that stands twice, whose meaning would depend on the
// reader.
func (f *File) check(v hujson.Value, path string) error {
	switch n := v.Value.(type) {
	case *hujson.Object:
		seen := make(map[string]bool, len(n.Members))
		for _, m := range n.Members {
			key := Text(m.Name)
			if seen[key] {
				return f.Problem(m.Name, Join(path, key), "stands twice")
			}
			seen[key] = true
			if err := f.check(m.Value, Join(path, key)); err != nil {
				return err
			}
		}
	case *hujson.Array:
		for i, e := range n.Elements {
			if err := f.check(e, Index(path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Line is the line of a value.
func (f *File) Line(v hujson.Value) int {
	before, _ := slices.BinarySearch(f.newlines, v.StartOffset)
	return before + 1
}

// Origin is the place of a value whose key is path.
func (f *File) Origin(v hujson.Value, path string) origin.Origin {
	return origin.Origin{Source: f.Name, Line: f.Line(v), Element: path}
}

// Problem is a fault of a value whose key is path.
func (f *File) Problem(v hujson.Value, path, format string, args ...any) *problem.Error {
	return f.Origin(v, path).Problem(format, args...)
}

// Text is the decoded string of a string value, and the spelling of any other
// literal.
func Text(v hujson.Value) string {
	lit, _ := v.Value.(hujson.Literal)
	return LiteralText(lit)
}

// LiteralText is [Text] of a literal. Most strings hold no escape, and decoding
// one as JSON costs far more than slicing it.
func LiteralText(lit hujson.Literal) string {
	if n := len(lit); n >= 2 && lit[0] == '"' && bytes.IndexByte(lit, '\\') < 0 && utf8.Valid(lit) {
		return string(lit[1 : n-1])
	}
	return lit.String()
}

// Member returns the value of a key of an object, nil where there is none.
func Member(v hujson.Value, key string) *hujson.ObjectMember {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	for i := range obj.Members {
		if Text(obj.Members[i].Name) == key {
			return &obj.Members[i]
		}
	}
	return nil
}

// Join is the name of a key below path.
func Join(path, key string) string {
	if strings.ContainsAny(key, ".[") || key == "" {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Index is the name of an element of the list at path.
func Index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
