package check

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// A field's text holds these in place of what is not known. They cannot stand
// in an argument by themselves.
const (
	runeUnknown = '\x00' // a value that could be a path
	runeOpaque  = '\x01' // one that is none, or none that the command chose
	runeTilde   = '\x02' // a "~" that the shell does not expand

	unknownRunes = "\x00\x01"
)

// clean keeps the marks out of a literal text.
var clean = strings.NewReplacer("\x00", "", "\x01", "", "\x02", "")

// literal is text in which a "~" has no meaning.
func literal(s string) string { return strings.ReplaceAll(clean.Replace(s), "~", string(runeTilde)) }

// show is a field's text for people.
func show(s string) string {
	return strings.NewReplacer(string(runeUnknown), "…", string(runeOpaque), "…", string(runeTilde), "~").Replace(s)
}

// field is an argument after expansion.
type field struct {
	text string
	pos  syntax.Pos
	why  string // why a part of it is not known
	glob bool   // the shell would look for files
	word *syntax.Word

	eitherDir bool // relative to one of several directories by its meaning
}

// source is the word that f came from, as written.
func (f field) source() string {
	if f.word == nil {
		return show(f.text)
	}
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.Minify(true)).Print(&b, f.word); err != nil {
		return show(f.text)
	}
	return b.String()
}

// value is what a variable holds: a field's text.
type value struct {
	text string
	why  string
}

// state is what the walk knows at one point of a command.
type state struct {
	dirs   []string // possible current directories; none is not known
	old    []string // before the last cd
	stack  [][]string
	vars   map[string]value
	params []field
	called bool // params are those of a call
	dead   bool // control does not get here
}

func (st *state) clone() *state {
	c := *st
	c.dirs, c.old, c.stack, c.params = slices.Clone(st.dirs), slices.Clone(st.old), slices.Clone(st.stack), slices.Clone(st.params)
	c.vars = maps.Clone(st.vars)
	return &c
}

// set gives a variable a value. Of very many the last are not known.
func (st *state) set(name string, v value) {
	if _, ok := st.vars[name]; ok || len(st.vars) < maxVars {
		st.vars[name] = v
	}
}

// join makes st what holds after one of several ways was taken.
func (st *state) join(ways ...*state) {
	ways = slices.DeleteFunc(ways, func(w *state) bool { return w.dead })
	if len(ways) == 0 {
		st.dead = true
		return
	}
	first := ways[0].clone()
	for _, w := range ways[1:] {
		if len(w.dirs) == 0 || len(first.dirs) == 0 {
			first.dirs = nil
		} else {
			for _, d := range w.dirs {
				first.dirs = appendNew(first.dirs, d)
			}
		}
		for k, v := range w.vars {
			if old, ok := first.vars[k]; !ok || old != v {
				first.vars[k] = value{string(runeUnknown), "depends on the way that was taken"}
			}
		}
	}
	if len(first.dirs) > maxDirs {
		first.dirs = nil
	}
	*st = *first
}

// fields expands a word as the shell does: braces, variables, substitutions
// and splitting. Globs stay as they are.
func (c *checker) fields(st *state, w *syntax.Word) []field {
	if w == nil {
		return nil
	}
	split := &syntax.Word{Parts: slices.Clone(w.Parts)} // a function's body is expanded again
	words := []*syntax.Word{w}
	if syntax.SplitBraces(split) {
		words = nil
		for each, err := range expand.BracesSeq(nil, split) {
			if err != nil || len(words) == maxFields {
				break
			}
			words = append(words, each)
		}
	}
	var out []field
	for _, each := range words {
		b := builder{pos: w.Pos(), word: w}
		c.parts(st, &b, each.Parts, false)
		out = append(out, b.finish()...)
	}
	return out
}

// joined expands a word to one field, as in an assignment or a redirection.
func (c *checker) joined(st *state, w *syntax.Word) field {
	if w == nil {
		return field{}
	}
	b := builder{pos: w.Pos(), word: w, whole: true}
	c.parts(st, &b, w.Parts, false)
	if all := b.finish(); len(all) > 0 {
		return all[0]
	}
	return field{pos: w.Pos()}
}

// builder puts fields together.
type builder struct {
	pos   syntax.Pos
	word  *syntax.Word
	whole bool // no splitting
	done  []field
	cur   strings.Builder
	some  bool // cur is a field, even if empty
	why   string
	glob  bool
}

func (b *builder) add(text string) {
	if b.cur.Len()+len(text) > maxText { // doubled again and again
		text, b.why = string(runeUnknown), "is too long to follow"
	}
	b.cur.WriteString(text)
	b.some = true
}

func (b *builder) unknown(why string) {
	b.add(string(runeUnknown))
	if b.why == "" {
		b.why = why
	}
}

func (b *builder) next() {
	if b.some && len(b.done) < maxFields {
		b.done = append(b.done, field{text: b.cur.String(), pos: b.pos, word: b.word, why: b.why, glob: b.glob})
	}
	b.cur.Reset()
	b.some, b.why, b.glob = false, "", false
}

func (b *builder) finish() []field {
	b.next()
	return b.done
}

// expansion adds the value of a variable.
func (b *builder) expansion(v value, quoted bool) {
	if v.why != "" && b.why == "" {
		b.why = v.why
	}
	if quoted || b.whole {
		b.add(v.text)
		return
	}
	const space = " \t\n"
	rest := v.text
	for rest != "" {
		if trimmed := strings.TrimLeft(rest, space); trimmed != rest {
			b.next()
			rest = trimmed
			continue
		}
		end := strings.IndexAny(rest, space)
		if end < 0 {
			end = len(rest)
		}
		b.add(rest[:end])
		rest = rest[end:]
	}
}

func (c *checker) parts(st *state, b *builder, parts []syntax.WordPart, quoted bool) {
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			c.lit(b, p.Value, quoted, i == 0)
		case *syntax.SglQuoted:
			text := p.Value
			if p.Dollar {
				if decoded, err := expand.Literal(nil, &syntax.Word{Parts: []syntax.WordPart{p}}); err == nil {
					text = decoded
				}
			}
			b.add(literal(text))
		case *syntax.DblQuoted:
			b.some = b.some || len(p.Parts) == 0
			c.parts(st, b, p.Parts, true)
		case *syntax.ParamExp:
			c.param(st, b, p, quoted)
		case *syntax.CmdSubst:
			c.substitution(st, b, p)
		case *syntax.ProcSubst:
			c.stmts(st.clone(), p.Stmts, true)
			b.add(string(runeOpaque))
		case *syntax.ExtGlob:
			b.glob = true
			b.add(clean.Replace(p.Op.String() + p.Pattern.Value + ")"))
		default: // arithmetic
			c.substitutions(st, part)
			b.add(string(runeOpaque))
		}
	}
}

// lit adds a literal, whose backslashes quote.
func (c *checker) lit(b *builder, raw string, quoted, first bool) {
	if !quoted && strings.ContainsAny(raw, "*?[") {
		b.glob = true
	}
	if raw == "" {
		return
	}
	var out strings.Builder
	for i := 0; i < len(raw); i++ {
		ch := raw[i]
		switch {
		case ch == '\\' && i+1 < len(raw) && raw[i+1] == '\n':
			i++
		case ch == '\\' && i+1 < len(raw) && (!quoted || strings.IndexByte("$`\"\\", raw[i+1]) >= 0):
			i++
			out.WriteString(literal(raw[i : i+1]))
		case ch == '~' && (quoted || !first && i == 0):
			out.WriteByte(runeTilde)
		default:
			out.WriteString(clean.Replace(raw[i : i+1]))
		}
	}
	b.add(out.String())
}

// inherited are lists of places to look for things, which a command extends.
var inherited = []string{
	"PATH", "MANPATH", "INFOPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "PKG_CONFIG_PATH",
	"PYTHONPATH", "NODE_PATH", "CLASSPATH", "XDG_DATA_DIRS", "XDG_CONFIG_DIRS", "TEXINPUTS", "SHELL",
}

// lookup returns a variable's value.
func (c *checker) lookup(st *state, name string) (v value, set bool) {
	if v, ok := st.vars[name]; ok {
		return v, true
	}
	switch {
	case name == "PWD" && len(st.dirs) == 1:
		return value{text: literal(st.dirs[0])}, true
	case name == "OLDPWD" && len(st.old) == 1:
		return value{text: literal(st.old[0])}, true
	case name == "PWD", name == "OLDPWD":
		return value{string(runeUnknown), "is a directory that is not known"}, true
	case slices.Contains([]string{"RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "HOSTNAME", "BASH_VERSION", "IFS", "OPTARG", "OPTIND"}, name):
		return value{text: string(runeOpaque)}, true
	}
	env, ok := c.sys.LookupEnv(name)
	if ok && env != "" && slices.Contains(inherited, name) {
		return value{text: string(runeOpaque)}, true
	}
	return value{text: literal(env)}, ok
}

func (c *checker) param(st *state, b *builder, p *syntax.ParamExp, quoted bool) {
	if p.Param == nil {
		c.substitutions(st, p)
		b.unknown("is not known before it runs")
		return
	}
	name := p.Param.Value
	switch {
	case p.Length || p.Width || p.IsSet || strings.ContainsAny(name[:1], "?#$!-") && len(name) == 1:
		b.add(string(runeOpaque))
		return
	case name == "@" || name == "*":
		c.params(st, b, name == "*" && quoted)
		return
	}
	v, set := c.variable(st, name)
	unknown := strings.ContainsAny(v.text, unknownRunes)
	if e := p.Exp; e != nil {
		switch e.Op {
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
			orNull := e.Op == syntax.DefaultUnsetOrNull || e.Op == syntax.AssignUnsetOrNull
			if !set || orNull && v.text == "" {
				d := c.joined(st, e.Word)
				v = value{d.text, d.why}
				if e.Op == syntax.AssignUnset || e.Op == syntax.AssignUnsetOrNull {
					st.set(name, v)
				}
			}
			b.expansion(v, quoted)
			return
		case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
			if set && (e.Op == syntax.AlternateUnset || v.text != "") {
				d := c.joined(st, e.Word)
				b.expansion(value{d.text, d.why}, quoted)
			} else {
				b.some = b.some || quoted
			}
			return
		case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
			b.expansion(c.orUnset(v, set, name), quoted)
			return
		}
	}
	simple := p.Exp == nil && p.Slice == nil && p.Repl == nil && p.Index == nil && !p.Excl && p.Names == 0 && p.Modifiers == nil
	if simple {
		b.expansion(c.orUnset(v, set, name), quoted)
		return
	}
	c.substitutions(st, p)
	if set && !unknown && !p.Excl && p.Index == nil {
		cfg := &expand.Config{Env: expand.FuncEnviron(func(n string) string {
			v, _ := c.variable(st, n)
			return strings.ReplaceAll(v.text, string(runeTilde), "~")
		})}
		if text, err := expand.Literal(cfg, &syntax.Word{Parts: []syntax.WordPart{p}}); err == nil {
			b.expansion(value{text: literal(text)}, quoted)
			return
		}
	}
	if strings.Contains(v.text, string(runeOpaque)) || p.Index != nil {
		b.add(string(runeOpaque)) // the elements of an array were checked where it was set
		return
	}
	b.unknown("$" + name + " is not known before it runs")
}

// orUnset marks the value of a variable that is not set as unknown: what runs
// the command may set it.
func (c *checker) orUnset(v value, set bool, name string) value {
	if !set {
		return value{string(runeUnknown), "$" + name + " is not set here"}
	}
	return v
}

// variable is lookup that knows positional parameters too.
func (c *checker) variable(st *state, name string) (value, bool) {
	if name == "0" {
		return value{text: string(runeOpaque)}, true
	}
	if name[0] < '1' || name[0] > '9' {
		return c.lookup(st, name)
	}
	if !st.called {
		return value{string(runeUnknown), "$" + name + " is an argument that is not known"}, true
	}
	if n := int(name[0] - '0'); len(name) == 1 && n <= len(st.params) {
		return value{st.params[n-1].text, st.params[n-1].why}, true
	}
	return value{}, false
}

func (c *checker) params(st *state, b *builder, one bool) {
	if !st.called {
		b.unknown("the arguments are not known")
		return
	}
	for i, p := range st.params {
		if i > 0 && one {
			b.add(" ")
		} else if i > 0 && !b.whole {
			b.next()
		}
		if p.why != "" {
			b.why = p.why
		}
		b.add(p.text)
	}
}

// wordsOnly are programs that print no path.
var wordsOnly = []string{
	"nproc", "date", "uname", "whoami", "id", "hostname", "seq", "wc", "pkg-config", "getconf", "arch", "expr", "llvm-config",
	"python3-config", "bc", "tput", "stty",
}

// substitution adds what a command prints, as far as it can be known.
func (c *checker) substitution(st *state, b *builder, p *syntax.CmdSubst) {
	c.stmts(st.clone(), p.Stmts, true)
	var call []*syntax.Word
	if len(p.Stmts) == 1 {
		if cmd, ok := p.Stmts[0].Cmd.(*syntax.CallExpr); ok {
			call = cmd.Args
		}
	}
	name := ""
	if len(call) > 0 {
		name = call[0].Lit()
	}
	switch {
	case name == "pwd" && len(st.dirs) == 1:
		b.add(literal(st.dirs[0]))
	case name == "mktemp" && !c.tooLong(p.Pos()):
		var args []field
		for _, w := range call[1:] {
			args = append(args, c.fields(st.clone(), w)...)
		}
		b.add(literal(c.tempFile(args)))
	case slices.Contains(wordsOnly, name):
		b.add(string(runeOpaque))
	default:
		why := "what a command prints is not known"
		if name != "" {
			why = "what " + show(name) + " prints is not known"
		}
		b.unknown(why)
	}
}

// tempFile is where mktemp makes its file: below the directory or at the
// template that it is given, else below the temporary directory.
func (c *checker) tempFile(args []field) string {
	dir := c.sys.Getenv("TMPDIR")
	if dir == "" {
		dir = "/tmp"
	}
	for i, a := range args {
		switch {
		case a.text == "-p" && i+1 < len(args):
			return args[i+1].text + "/tmp.X"
		case strings.HasPrefix(a.text, "--tmpdir="):
			return strings.TrimPrefix(a.text, "--tmpdir=") + "/tmp.X"
		case strings.Contains(a.text, "/") && !strings.HasPrefix(a.text, "-"):
			return a.text
		}
	}
	return dir + "/tmp.X"
}

// substitutions walks the commands that stand in a node, whatever it is.
func (c *checker) substitutions(st *state, node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			c.stmts(st.clone(), n.Stmts, true)
			return false
		case *syntax.ProcSubst:
			c.stmts(st.clone(), n.Stmts, true)
			return false
		}
		return true
	})
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
