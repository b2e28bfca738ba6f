package merge

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/research-harness/harness/host/internal/jsonc"
)

// container is an object or a list, taken apart. An element of a list is a
// member without a name.
type container struct {
	object bool
	items  []hujson.ObjectMember
	after  hujson.Extra // before the closing bracket
}

func open(v hujson.Value) container {
	switch t := v.Value.(type) {
	case *hujson.Object:
		return container{object: true, items: t.Members, after: t.AfterExtra}
	case *hujson.Array:
		c := container{after: t.AfterExtra}
		for _, e := range t.Elements {
			c.items = append(c.items, hujson.ObjectMember{Value: e})
		}
		return c
	}
	panic("a scalar holds nothing")
}

// close puts the container back into its value.
func (c container) close(v *hujson.Value) {
	if c.object {
		v.Value = &hujson.Object{Members: c.items, AfterExtra: c.after}
		return
	}
	a := &hujson.Array{AfterExtra: c.after}
	for _, item := range c.items {
		a.Elements = append(a.Elements, item.Value)
	}
	v.Value = a
}

// lead is the text before an item.
func (c container) lead(i int) *hujson.Extra {
	if c.object {
		return &c.items[i].Name.BeforeExtra
	}
	return &c.items[i].Value.BeforeExtra
}

func (c container) index(key string) int {
	return slices.IndexFunc(c.items, func(m hujson.ObjectMember) bool { return jsonc.Text(m.Name) == key })
}

// isEmpty reports whether there is neither an item nor a comment.
func (c container) isEmpty() bool {
	comments, _ := cutComments(c.after)
	return len(c.items) == 0 && comments == ""
}

func (c container) canonical() []string {
	out := make([]string, len(c.items))
	for i, item := range c.items {
		out[i] = canonical(item.Value)
	}
	return out
}

// indent is that of the line on which an item stands, in a container that
// begins on a line of indent outer.
func (c container) indent(i int, outer string) string {
	for ; i >= 0; i-- {
		if own, ok := lastLine(string(*c.lead(i))); ok {
			return own
		}
	}
	return outer
}

// append adds an item at the end, with the container's own separator, and
// returns its index. Comments on the line of the item before stay there.
func (c *container) append(item hujson.ObjectMember, s style, outer string) int {
	separator := c.separator(s, outer)
	lead := ""
	if len(c.items) == 0 {
		lead, _ = cutComments(c.after)
		c.after = nil
		if strings.HasPrefix(separator, s.newline) {
			c.after = hujson.Extra(s.newline + outer)
		} else if lead == "" {
			separator = ""
		}
	} else {
		lead, c.after = cutLine(c.after)
		if c.items[len(c.items)-1].Value.AfterExtra != nil { // a trailing comma
			item.Value.AfterExtra = hujson.Extra{}
		}
	}
	if c.object {
		item.Value.BeforeExtra = hujson.Extra(s.colon)
	}
	c.items = append(c.items, item)
	i := len(c.items) - 1
	*c.lead(i) = hujson.Extra(lead + separator)
	return i
}

// separator is the white space that goes before another item: what separates
// the present ones, else the file's style.
func (c container) separator(s style, outer string) string {
	for i := len(c.items) - 1; i >= 0; i-- {
		if own, ok := lastLine(string(*c.lead(i))); ok {
			return s.newline + own
		}
	}
	switch {
	case bytes.ContainsRune(c.after, '\n') || len(c.items) == 0 && !s.oneLine:
		return s.newline + outer + s.unit
	case len(c.items) > 1:
		if comments, space := cutComments(*c.lead(len(c.items) - 1)); comments == "" {
			return space
		}
	}
	return s.colon
}

// remove takes an item out together with the white space before it and one
// comma. Comments around it stay.
func (c *container) remove(i int, s style) {
	item, lead := c.items[i], *c.lead(i)
	kept := ""
	for _, extra := range []hujson.Extra{item.Name.BeforeExtra, item.Name.AfterExtra, item.Value.BeforeExtra, item.Value.AfterExtra} {
		comments, _ := cutComments(extra)
		kept += comments
	}
	last := i == len(c.items)-1
	c.items = slices.Delete(c.items, i, i+1)
	if !last {
		next := c.lead(i)
		if kept == "" && i == 0 && len(bytes.TrimSpace(*next)) == 0 {
			*next = lead
		}
		*next = join(kept, *next, s)
		return
	}
	if i > 0 {
		before := &c.items[i-1].Value
		if item.Value.AfterExtra == nil {
			kept, before.AfterExtra = string(before.AfterExtra)+kept, nil
		} else if before.AfterExtra == nil {
			before.AfterExtra = hujson.Extra{}
		}
	}
	c.after = join(kept, c.after, s)
}

// restore gives a container of the user's that is empty again its text of
// before, but for comments that have come or gone since.
func (c *container) restore(was change) {
	if len(c.items) > 0 || was.Inner == nil {
		return
	}
	now, _ := cutComments(c.after)
	if before, _ := cutComments(hujson.Extra(*was.Inner)); now == before {
		c.after = hujson.Extra(*was.Inner)
	}
}

// join puts comments before other text. A line comment ends in a newline.
func join(comments string, rest hujson.Extra, s style) hujson.Extra {
	if comments == "" {
		return rest
	}
	if endsInLineComment(comments) && !bytes.HasPrefix(rest, []byte("\n")) && !bytes.HasPrefix(rest, []byte("\r\n")) {
		comments += s.newline
	}
	return append(hujson.Extra(comments), rest...)
}

// style is how a file is laid out.
type style struct {
	newline string
	unit    string // of indentation
	colon   string // the space after a colon
	oneLine bool   // the file has values and all on one line
}

func styleOf(f *jsonc.File) style {
	s := style{newline: "\n", unit: "  ", colon: " "}
	if bytes.Contains(f.Data, []byte("\r\n")) {
		s.newline = "\r\n"
	}
	root := open(f.Root)
	if len(root.items) == 0 {
		return s
	}
	if space := string(root.items[0].Value.BeforeExtra); strings.Trim(space, " \t") == "" {
		s.colon = space
	}
	s.oneLine = !bytes.ContainsRune(bytes.TrimSpace(f.Data), '\n')
	for i := range root.items {
		if own, ok := lastLine(string(*root.lead(i))); ok {
			s.unit = own
			break
		}
	}
	return s
}

// spaced lays a value out on one line.
func spaced(v hujson.Value) hujson.Value {
	v = v.Clone()
	v.Minimize()
	for n := range v.All() {
		if isScalar(*n) {
			continue
		}
		c := open(*n)
		for i := range c.items {
			if c.object {
				c.items[i].Value.BeforeExtra = hujson.Extra(" ")
			}
			if i > 0 {
				*c.lead(i) = hujson.Extra(" ")
			}
		}
		c.close(n)
	}
	v.BeforeExtra, v.AfterExtra = nil, nil
	return v
}

// lastLine returns what follows the last newline of white space and comments,
// without a comment, and whether there is a newline.
func lastLine(extra string) (string, bool) {
	i := strings.LastIndexByte(extra, '\n')
	if i < 0 {
		return "", false
	}
	line := extra[i+1:]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))], true
}

// cutComments splits white space and comments after the last comment, whose
// newline, where it is a line comment, belongs to the rest.
func cutComments(extra hujson.Extra) (comments, space string) {
	s := string(extra)
	end := 0
	for _, c := range scanComments(s) {
		end = c.end
	}
	return s[:end], s[end:]
}

// cutLine splits white space and comments after the last comment that begins
// on the first line.
func cutLine(extra hujson.Extra) (line string, rest hujson.Extra) {
	s := string(extra)
	end := 0
	for _, c := range scanComments(s) {
		if strings.ContainsRune(s[end:c.start], '\n') {
			break
		}
		end = c.end
	}
	return s[:end], hujson.Extra(s[end:])
}

func endsInLineComment(s string) bool {
	comments := scanComments(s)
	if len(comments) == 0 {
		return false
	}
	last := comments[len(comments)-1]
	return last.end == len(s) && strings.HasPrefix(s[last.start:], "//")
}

type comment struct{ start, end int }

// scanComments finds the comments, each without the newline that ends it.
func scanComments(s string) []comment {
	var out []comment
	for i := 0; i < len(s); {
		var n int
		switch {
		case strings.HasPrefix(s[i:], "//"):
			if n = strings.IndexByte(s[i:], '\n'); n < 0 {
				n = len(s) - i
			} else if s[i+n-1] == '\r' {
				n--
			}
		case strings.HasPrefix(s[i:], "/*"):
			if n = strings.Index(s[i+2:], "*/"); n < 0 {
				n = len(s) - i
			} else {
				n += 4
			}
		default:
			i++
			continue
		}
		out = append(out, comment{i, i + n})
		i += n
	}
	return out
}
