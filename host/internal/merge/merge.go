// Package merge puts a settings template into a settings file of the user's
// and takes it out again, touching only the bytes that change.
//
// Objects are merged recursively, lists are united with the user's entries
// first, and scalars are replaced. A [Record] remembers which values are not
// the user's, so that a later merge withdraws what the template no longer
// gives, and [Withdraw] all of it. Without a change of the user's in between,
// Withdraw undoes Merge byte for byte.
package merge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/research-harness/harness/host/internal/jsonc"
	"github.com/research-harness/harness/host/internal/problem"
)

// Record is what merges put into a file. It encodes as JSON. The zero value
// is the record of a file that no merge has touched.
type Record struct {
	// Blank is the whole file where it held no value before.
	Blank *string `json:"blank,omitempty"`
	Root  change  `json:"root"`
}

// change is what merges did to one value.
type change struct {
	// Added says that the value's key was not there. Old is the scalar, as the
	// user spelled it, that was there in place of the value. With neither, the
	// value is an object or a list of the user's.
	Added bool   `json:"added,omitempty"`
	Old   string `json:"old,omitempty"`

	// One of these is what was put there, by the value's kind.
	Value    json.RawMessage   `json:"value,omitempty"`
	Members  map[string]change `json:"members,omitempty"`
	Elements []string          `json:"elements,omitempty"` // as by canonical

	// Inner is the text between the brackets of a list or object of the
	// user's that was empty.
	Inner *string `json:"inner,omitempty"`
}

func (c change) isZero() bool {
	return !c.Added && c.Old == "" && c.Value == nil && len(c.Members) == 0 && len(c.Elements) == 0
}

// Merge puts want, a JSON object, into old, a JSON object with comments, or a
// file that is blank or missing. prev is the record of the merge before, whose
// values that want does not give are withdrawn. file names old in errors: old
// is no JSON object, or holds an object or a list where want holds something
// else.
func Merge(file string, old, want []byte, prev Record) (merged []byte, rec Record, err error) {
	wanted, err := jsonc.Parse("settings template", want)
	if err != nil {
		return nil, Record{}, err
	}
	rec = Record{Blank: prev.Blank}
	text := old
	if len(bytes.TrimSpace(old)) == 0 {
		blank := string(old)
		rec.Blank, prev, text = &blank, Record{}, []byte("{}\n")
	}
	f, err := jsonc.Parse(file, text)
	if err != nil {
		return nil, Record{}, err
	}
	m := newMerger(f)
	if rec.Root, err = m.object(&f.Root, &wanted.Root, prev.Root, "", ""); err != nil {
		return nil, Record{}, err
	}
	merged, err = m.pack()
	return merged, rec, err
}

// Withdraw takes back what rec records from cur. What the user has changed
// since stays and is named in left, one clause each.
func Withdraw(file string, cur []byte, rec Record) (restored []byte, left []string, err error) {
	if rec.Root.isZero() && rec.Blank == nil || len(bytes.TrimSpace(cur)) == 0 {
		return cur, nil, nil
	}
	f, err := jsonc.Parse(file, cur)
	if err != nil {
		return nil, nil, err
	}
	m := newMerger(f)
	nothing := hujson.Value{Value: &hujson.Object{}}
	if _, err := m.object(&f.Root, &nothing, rec.Root, "", ""); err != nil {
		return nil, nil, err
	}
	if rec.Blank != nil && open(f.Root).isEmpty() {
		return []byte(*rec.Blank), m.left, nil
	}
	restored, err = m.pack()
	return restored, m.left, err
}

// merger changes the syntax tree of one file.
type merger struct {
	file  *jsonc.File
	style style
	left  []string // what a withdrawal left, in words
}

func newMerger(f *jsonc.File) *merger {
	return &merger{file: f, style: styleOf(f)}
}

// pack returns the file's bytes. A record that was changed by hand may hold what
// is no JSON.
func (m *merger) pack() ([]byte, error) {
	data := bytes.TrimSuffix(m.file.Root.Pack(), []byte("\n")) // the parser's
	if m.file.BOM {
		data = append([]byte("\ufeff"), data...)
	}
	if _, err := jsonc.Parse(m.file.Name, data); err != nil {
		return nil, problem.New(m.file.Name, "", "the record of what install changed in it is damaged").
			WithHint("move ~/.config/research-harness/installed.json away; what was changed then stays")
	}
	return data, nil
}

// object brings an object to what want gives, and returns the record of it.
// indent is that of the line on which the object begins.
func (m *merger) object(v, want *hujson.Value, prev change, path, indent string) (change, error) {
	c := open(*v)
	next := change{Added: prev.Added, Old: prev.Old, Inner: prev.Inner, Members: map[string]change{}}
	for _, key := range slices.Sorted(maps.Keys(prev.Members)) {
		if jsonc.Member(*want, key) != nil {
			continue
		}
		i := c.index(key)
		if i < 0 {
			if was := prev.Members[key]; was.Old != "" {
				m.leave(jsonc.Join(path, key), was)
			}
		} else if m.withdraw(&c.items[i].Value, prev.Members[key], jsonc.Join(path, key), c.indent(i, indent)) {
			c.remove(i, m.style)
		}
	}
	c.restore(next)
	for _, w := range open(*want).items {
		key := jsonc.Text(w.Name)
		i, was := c.index(key), prev.Members[key]
		if i >= 0 && !was.isZero() && !isScalar(c.items[i].Value) && c.items[i].Value.Value.Kind() != w.Value.Value.Kind() {
			// What an earlier template put there had another type.
			if m.withdraw(&c.items[i].Value, was, jsonc.Join(path, key), c.indent(i, indent)) {
				c.remove(i, m.style)
				i = -1
			}
			was = change{}
		}
		if i < 0 {
			next.noteInner(c)
			var value hujson.Value
			value, was = fresh(w.Value)
			i = c.append(hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(key)}, Value: value}, m.style, indent)
		}
		ch, err := m.value(&c.items[i].Value, &w.Value, was, jsonc.Join(path, key), c.indent(i, indent))
		if err != nil {
			return change{}, err
		}
		if !ch.isZero() {
			next.Members[key] = ch
		}
	}
	c.close(v)
	return next, nil
}

// list unites a list with what want gives, and returns the record of it.
func (m *merger) list(v, want *hujson.Value, prev change, indent string) change {
	c := open(*v)
	next := change{Added: prev.Added, Old: prev.Old, Inner: prev.Inner}
	wanted := open(*want)
	keep, have := wanted.canonical(), c.canonical()
	for _, e := range prev.Elements {
		if slices.Contains(keep, e) {
			continue
		}
		// The user's entries come first, so that of equal ones the last is ours.
		if i := lastIndex(have, e); i >= 0 {
			c.remove(i, m.style)
			have = slices.Delete(have, i, i+1)
		}
	}
	c.restore(next)
	for i, e := range keep {
		switch {
		case slices.Contains(next.Elements, e):
		case !slices.Contains(have, e):
			next.noteInner(c)
			c.append(hujson.ObjectMember{Value: spaced(wanted.items[i].Value)}, m.style, indent)
			next.Elements = append(next.Elements, e)
		case slices.Contains(prev.Elements, e):
			next.Elements = append(next.Elements, e)
		}
	}
	c.close(v)
	return next
}

// value brings a value to want, and returns the record of it.
func (m *merger) value(v, want *hujson.Value, prev change, path, indent string) (change, error) {
	ours := prev.Value != nil && canonical(*v) == string(prev.Value)
	if isScalar(*v) && !isScalar(*want) {
		next := change{Old: string(v.Value.(hujson.Literal))}
		if ours {
			next = change{Added: prev.Added, Old: prev.Old}
		}
		v.Value, prev = emptyLike(*want), next
	}
	switch {
	case !isScalar(*v) && v.Value.Kind() != want.Value.Kind():
		return change{}, m.file.Problem(*v, path, "is %s, where the settings template gives %s", describe(*v), describe(*want)).
			WithHint("remove the key, or give it the template's type")
	case want.Value.Kind() == '{':
		return m.object(v, want, prev, path, indent)
	case want.Value.Kind() == '[':
		return m.list(v, want, prev, indent), nil
	}
	wanted := canonical(*want)
	switch {
	case ours:
	case canonical(*v) == wanted:
		return change{}, nil // the user's own
	default:
		prev = change{Old: string(v.Value.(hujson.Literal))}
	}
	v.Value = want.Value
	return change{Added: prev.Added, Old: prev.Old, Value: json.RawMessage(wanted)}, nil
}

// withdraw takes back what was put into a value, and reports whether nothing
// of it is left, so that its key goes too.
func (m *merger) withdraw(v *hujson.Value, was change, path, indent string) (gone bool) {
	switch {
	case was.Value != nil:
		if canonical(*v) != string(was.Value) {
			m.leave(path, was)
			return false
		}
	case isScalar(*v):
		m.leave(path, was)
		return false
	default:
		nothing := hujson.Value{Value: emptyLike(*v)}
		if v.Value.Kind() == '{' {
			// Only what is wanted can be at fault, and nothing is.
			_, _ = m.object(v, &nothing, was, path, indent)
		} else {
			m.list(v, &nothing, was, indent)
		}
		if !was.Added && was.Old == "" {
			return false
		}
		if !open(*v).isEmpty() {
			m.left = append(m.left, fmt.Sprintf("%s: stays for what you added to it", path))
			return false
		}
	}
	if was.Old != "" {
		v.Value = hujson.Literal(was.Old)
	}
	return was.Added
}

// leave notes that the user changed a value since it was put there.
func (m *merger) leave(path string, was change) {
	switch {
	case was.Old != "":
		m.left = append(m.left, fmt.Sprintf("%s: you changed it since, so it is not set back to %s", path, was.Old))
	case was.Value != nil:
		m.left = append(m.left, fmt.Sprintf("%s: you changed it since", path))
	}
}

// noteInner remembers the text of a user's list or object that is empty and
// about to be filled.
func (c *change) noteInner(in container) {
	if len(in.items) == 0 && !c.Added && c.Old == "" && c.Inner == nil {
		inner := string(in.after)
		c.Inner = &inner
	}
}

// fresh returns a value to put where there is none, empty where it is an
// object or a list and will be filled, with the record of a value just put.
func fresh(want hujson.Value) (hujson.Value, change) {
	if isScalar(want) {
		return hujson.Value{Value: want.Value}, change{Added: true, Value: json.RawMessage(canonical(want))}
	}
	return hujson.Value{Value: emptyLike(want)}, change{Added: true}
}

func emptyLike(v hujson.Value) hujson.ValueTrimmed {
	if v.Value.Kind() == '{' {
		return &hujson.Object{}
	}
	return &hujson.Array{}
}

func isScalar(v hujson.Value) bool {
	_, ok := v.Value.(hujson.Literal)
	return ok
}

func describe(v hujson.Value) string {
	switch v.Value.Kind() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return "a single value"
}

// canonical is a spelling that two values share when they are equal.
func canonical(v hujson.Value) string {
	std := v.Clone()
	std.Minimize()
	dec := json.NewDecoder(bytes.NewReader(std.Pack()))
	dec.UseNumber()
	var decoded any
	if err := dec.Decode(&decoded); err != nil {
		panic(fmt.Sprintf("a parsed value does not decode: %v", err))
	}
	b, err := json.Marshal(decoded)
	if err != nil {
		panic(fmt.Sprintf("a decoded value does not encode: %v", err))
	}
	return string(b)
}

func lastIndex(s []string, e string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == e {
			return i
		}
	}
	return -1
}
