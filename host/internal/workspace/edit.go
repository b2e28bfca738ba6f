package workspace

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// edit is a profile whose list of workspaces changes.
type edit struct {
	data []byte

	// Offsets into data, -1 where there is no such place.
	list   int // the opening bracket of the list
	header int // the end of the name in the header [setup]
	inline int // the opening brace of setup = {…}
	dotted int // the start of the first line like setup.key = …
}

// span is a range of bytes.
type span struct{ start, end int }

// newEdit finds where the list is, or where it belongs. The data is a valid
// profile.
func newEdit(data []byte) (*edit, error) {
	e := &edit{data: slices.Clone(data), list: -1, header: -1, inline: -1, dotted: -1}
	bom := len(e.data) - len(bytes.TrimPrefix(e.data, []byte("\ufeff")))
	var p unstable.Parser
	p.Reset(e.data[bom:])
	var table []string
	for p.NextExpression() {
		node := p.Expression()
		name, first, last := keyOf(node)
		first.start, last.end = first.start+bom, last.end+bom
		switch node.Kind {
		case unstable.Table:
			if table = name; slices.Equal(name, []string{"setup"}) {
				e.header = last.end
			}
		case unstable.KeyValue:
			name = slices.Concat(table, name)
			e.found(name, last.end)
			if len(table) == 0 && name[0] == "setup" && len(name) > 1 && e.dotted < 0 {
				e.dotted = e.lineStart(first.start)
			}
			if value := node.Value(); value.Kind == unstable.InlineTable {
				if slices.Equal(name, []string{"setup"}) {
					e.inline = last.end + bytes.IndexByte(e.data[last.end:], '{')
				}
				for it := value.Children(); it.Next(); {
					inner, _, last := keyOf(it.Node())
					e.found(slices.Concat(name, inner), last.end+bom)
				}
			}
		}
	}
	return e, p.Error()
}

// keyOf returns the parts of a node's key and the ranges of its first and last
// part.
func keyOf(node *unstable.Node) (name []string, first, last span) {
	for it := node.Key(); it.Next(); {
		part := it.Node()
		last = span{int(part.Raw.Offset), int(part.Raw.Offset + part.Raw.Length)}
		if name == nil {
			first = last
		}
		name = append(name, string(part.Data))
	}
	return name, first, last
}

func (e *edit) found(name []string, keyEnd int) {
	if slices.Equal(name, []string{"setup", "workspaces"}) {
		e.list = keyEnd + bytes.IndexByte(e.data[keyEnd:], '[')
	}
}

// add appends name to the list. Where there is none it begins with defaults,
// which held until now.
func (e *edit) add(name string, defaults []string) error {
	if e.list < 0 {
		e.create(append(slices.Clone(defaults), name))
		return nil
	}
	elements, commas := e.scan()
	word := quoted([]string{name})[0]
	if len(elements) == 0 {
		e.insert(e.list+1, word)
		return nil
	}
	last := elements[len(elements)-1]
	at, trailing := last.end, len(commas) == len(elements)
	if trailing {
		at = commas[len(commas)-1] + 1
		word += ","
	}
	if end, ok := e.restOfLine(at); ok { // one to a line, as far as can be seen
		line := e.data[e.lineStart(last.start):last.start]
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		e.insert(end, e.newline()+string(indent)+word)
	} else {
		e.insert(at, " "+word)
	}
	if !trailing {
		e.insert(last.end, ",")
	}
	return nil
}

// remove takes the elements out for which is holds. Elements are the list's,
// or the defaults where there is none.
func (e *edit) remove(elements []string, is func(string) bool) error {
	if e.list < 0 {
		e.create(slices.DeleteFunc(slices.Clone(elements), is))
		return nil
	}
	for i, name := range slices.Backward(elements) {
		if is(name) {
			e.removeAt(i)
		}
	}
	return nil
}

func (e *edit) removeAt(i int) {
	elements, commas := e.scan()
	start, end := elements[i].start, elements[i].end
	last := i == len(elements)-1
	if i < len(commas) {
		end = commas[i] + 1
	}
	// Alone on its line: the line goes, with the comment that belongs to it.
	begin := e.lineStart(start)
	if rest, ok := e.restOfLine(end); ok && len(bytes.TrimLeft(e.data[begin:start], " \t")) == 0 {
		e.cut(begin, rest+len(e.newline()))
		return
	}
	blank := func(b byte) bool { return b == ' ' || b == '\t' }
	switch {
	case !last:
		for blank(e.data[end]) {
			end++
		}
	case i > 0:
		for blank(e.data[start-1]) {
			start--
		}
		if i == len(commas) && start == commas[i-1]+1 { // the comma before it goes where it has none
			start--
		}
	}
	e.cut(start, end)
}

// create puts a whole list where it belongs.
func (e *edit) create(names []string) {
	line := "workspaces = [" + strings.Join(quoted(names), ", ") + "]"
	nl := e.newline()
	switch {
	case e.header >= 0:
		at := e.header
		if i := bytes.IndexByte(e.data[at:], '\n'); i >= 0 {
			e.insert(at+i+1, line+nl)
			return
		}
		e.insert(len(e.data), nl+line+nl)
	case e.inline >= 0:
		if !bytes.HasPrefix(bytes.TrimLeft(e.data[e.inline+1:], " \t"), []byte("}")) {
			line += ","
		}
		e.insert(e.inline+1, " "+line)
	case e.dotted >= 0:
		e.insert(e.dotted, "setup."+line+nl)
	default:
		before := ""
		if len(e.data) > 0 {
			if before = nl; !bytes.HasSuffix(e.data, []byte("\n")) {
				before += nl
			}
		}
		e.insert(len(e.data), before+"[setup]"+nl+line+nl)
	}
}

// scan returns the ranges of the list's elements, all strings, and the places
// of its commas.
func (e *edit) scan() (elements []span, commas []int) {
	for i := e.list + 1; i < len(e.data); i++ {
		switch c := e.data[i]; c {
		case ']':
			return elements, commas
		case ',':
			commas = append(commas, i)
		case '#':
			i += bytes.IndexByte(e.data[i:], '\n')
		case '"', '\'':
			end := i + stringLength(e.data[i:])
			elements = append(elements, span{i, end})
			i = end - 1
		}
	}
	return elements, commas
}

// stringLength is the length of the string with which data begins.
func stringLength(data []byte) int {
	quote := data[:1]
	if triple := bytes.Repeat(quote, 3); bytes.HasPrefix(data, triple) {
		quote = triple
	}
	for i := len(quote); i < len(data); i++ {
		switch {
		case data[i] == '\\' && quote[0] == '"':
			i++
		case bytes.HasPrefix(data[i:], quote):
			i += len(quote)
			// Up to two more quotes may end a string of three.
			for len(quote) == 3 && i < len(data) && data[i] == quote[0] {
				i++
			}
			return i
		}
	}
	return len(data)
}

// restOfLine reports whether nothing but blanks and a comment follows on the
// line, and returns where the line ends.
func (e *edit) restOfLine(at int) (end int, ok bool) {
	i := bytes.IndexByte(e.data[at:], '\n')
	if i < 0 {
		return 0, false
	}
	rest := bytes.TrimRight(e.data[at:at+i], "\r")
	text := bytes.TrimLeft(rest, " \t")
	return at + len(rest), len(text) == 0 || text[0] == '#'
}

func (e *edit) lineStart(at int) int { return bytes.LastIndexByte(e.data[:at], '\n') + 1 }

// newline is what ends the file's lines.
func (e *edit) newline() string {
	if i := bytes.IndexByte(e.data, '\n'); i > 0 && e.data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

func (e *edit) insert(at int, text string) {
	e.data = slices.Insert(e.data, at, []byte(text)...)
}

func (e *edit) cut(start, end int) { e.data = slices.Delete(e.data, start, end) }

// quoted makes strings of TOML, which those of JSON are but for one character.
func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(name) // of a string it cannot fail
		out[i] = strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
	}
	return out
}
