package check

import (
	"errors"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// script parses and walks a script that stands at pos.
func (c *checker) script(st *state, text string, at syntax.Pos) error {
	if c.depth == maxDepth {
		c.unknown(at, "…", "is nested too deep to follow")
		return nil
	}
	text = strings.ReplaceAll(text, string(runeTilde), "~")
	if nesting(text) > maxNested {
		return errors.New("is nested too deep to follow")
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		if pe, ok := errors.AsType[syntax.ParseError](err); ok {
			return errors.New("line " + pe.Pos.String() + ": " + pe.Text)
		}
		return err
	}
	outer := c.within
	if at.IsValid() && !outer.IsValid() {
		c.within = at
	}
	c.depth++
	c.stmts(st, file.Stmts, false)
	c.depth--
	c.within = outer
	return nil
}

// nesting is how many parentheses, brackets and braces stand in each other, at
// least. The parser and the expansion of braces take their time, and memory,
// by the square of it.
func nesting(text string) int {
	depth, most := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '[', '{':
			depth++
			most = max(most, depth)
		case ')', ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return most
}

// nested walks a script that is an argument.
func (c *checker) nested(st *state, f field) {
	if strings.ContainsAny(f.text, unknownRunes) {
		c.unknown(f.pos, f.source(), "is a script of which not all is known")
		return
	}
	if err := c.script(st, f.text, f.pos); err != nil {
		c.unknown(f.pos, f.source(), "is a script that cannot be followed: "+err.Error())
	}
}

// stmts walks statements one after another. What they print is data of
// another command where piped is set.
func (c *checker) stmts(st *state, stmts []*syntax.Stmt, piped bool) {
	for _, s := range stmts {
		if st.dead {
			return
		}
		c.stmt(st, s, piped, false)
	}
}

// stmt walks a statement. Fed says that a pipe is its standard input.
func (c *checker) stmt(st *state, s *syntax.Stmt, piped, fed bool) {
	if c.tooLong(s.Pos()) {
		return
	}
	if s.Background || s.Coprocess {
		st = st.clone()
	}
	input := c.redirections(st, s, fed)
	switch cmd := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		c.simple(st, cmd, invocation{piped: piped, input: input})
	case *syntax.BinaryCmd:
		c.binary(st, cmd, piped, fed)
	case *syntax.Block:
		c.stmts(st, cmd.Stmts, piped)
	case *syntax.Subshell:
		c.stmts(st.clone(), cmd.Stmts, piped)
	case *syntax.IfClause:
		c.ifClause(st, cmd, piped)
	case *syntax.WhileClause:
		c.stmts(st, cmd.Cond, piped)
		body := st.clone()
		c.stmts(body, cmd.Do, piped)
		st.join(st.clone(), body)
	case *syntax.ForClause:
		c.forClause(st, cmd, piped)
	case *syntax.CaseClause:
		c.fields(st, cmd.Word)
		ways := []*state{st.clone()}
		for _, item := range cmd.Items {
			way := st.clone()
			for _, pattern := range item.Patterns {
				c.substitutions(st, pattern)
			}
			c.stmts(way, item.Stmts, piped)
			ways = append(ways, way)
		}
		st.join(ways...)
	case *syntax.FuncDecl:
		if cmd.Name != nil {
			c.funcs[cmd.Name.Value] = cmd.Body
		}
	case *syntax.DeclClause:
		for _, a := range cmd.Args {
			c.assign(st, a, true)
		}
	case *syntax.TimeClause:
		if cmd.Stmt != nil {
			c.stmt(st, cmd.Stmt, piped, fed)
		}
	case *syntax.CoprocClause:
		c.stmt(st.clone(), cmd.Stmt, piped, fed)
	case *syntax.TestClause:
		c.test(st, cmd.X)
	default:
		c.substitutions(st, cmd)
	}
}

// redirections checks a statement's redirections and returns what is known of
// its standard input.
func (c *checker) redirections(st *state, s *syntax.Stmt, fed bool) input {
	in := input{piped: fed}
	for _, r := range s.Redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if r.Hdoc != nil {
				in = input{text: c.heredoc(st, r), given: true}
			}
		case syntax.WordHdoc:
			in = input{text: c.joined(st, r.Word), given: true}
		case syntax.DplIn, syntax.DplOut:
			f := c.joined(st, r.Word)
			if strings.Trim(f.text, "0123456789-") != "" {
				c.target(st, f)
			}
		default:
			c.target(st, c.joined(st, r.Word))
		}
	}
	return in
}

// target checks the file of a redirection.
func (c *checker) target(st *state, f field) { c.path(f, f.text, st.dirs) }

// heredoc returns the text of a here-document. One whose delimiter is quoted
// stays as it is.
func (c *checker) heredoc(st *state, r *syntax.Redirect) field {
	for _, part := range r.Word.Parts {
		if _, plain := part.(*syntax.Lit); !plain {
			var b strings.Builder
			for _, p := range r.Hdoc.Parts {
				if lit, ok := p.(*syntax.Lit); ok {
					b.WriteString(lit.Value)
				}
			}
			return field{text: literal(b.String()), pos: r.Hdoc.Pos()}
		}
	}
	b := builder{pos: r.Hdoc.Pos(), whole: true}
	c.parts(st, &b, r.Hdoc.Parts, true)
	all := b.finish()
	if len(all) == 0 {
		return field{pos: r.Hdoc.Pos()}
	}
	return all[0]
}

func (c *checker) binary(st *state, cmd *syntax.BinaryCmd, piped, fed bool) {
	switch cmd.Op {
	case syntax.AndStmt:
		c.stmt(st, cmd.X, piped, fed)
		if !st.dead {
			c.stmt(st, cmd.Y, piped, fed)
		}
	case syntax.OrStmt:
		failed := st.clone() // a cd that failed changed nothing
		c.stmt(st, cmd.X, piped, fed)
		c.stmt(failed, cmd.Y, piped, fed)
		st.join(st.clone(), failed)
	default: // pipes, each side a process of its own
		c.stmt(st.clone(), cmd.X, true, fed)
		c.stmt(st.clone(), cmd.Y, piped, true)
	}
}

func (c *checker) ifClause(st *state, cmd *syntax.IfClause, piped bool) {
	c.stmts(st, cmd.Cond, piped)
	then, otherwise := st.clone(), st.clone()
	c.stmts(then, cmd.Then, piped)
	if cmd.Else != nil {
		c.ifClause(otherwise, cmd.Else, piped)
	}
	st.join(then, otherwise)
}

func (c *checker) forClause(st *state, cmd *syntax.ForClause, piped bool) {
	iter, ok := cmd.Loop.(*syntax.WordIter)
	if !ok {
		c.substitutions(st, cmd.Loop)
		c.stmts(st, cmd.Do, piped)
		return
	}
	var items []field
	for _, w := range iter.Items {
		items = append(items, c.fields(st, w)...)
	}
	for _, item := range items {
		if !strings.HasPrefix(item.text, string(runeUnknown)) {
			c.token(item, st.dirs)
		}
	}
	if !iter.InPos.IsValid() {
		items = st.params
	}
	const few = 8
	if len(items) == 0 || len(items) > few {
		items = []field{{text: string(runeUnknown), pos: iter.Pos(), why: "$" + iter.Name.Value + " is a loop's variable"}}
	}
	for _, item := range items {
		if st.dead {
			return
		}
		st.set(iter.Name.Value, value{item.text, item.why})
		c.stmts(st, cmd.Do, piped)
	}
}

// assign checks an assignment and makes it.
func (c *checker) assign(st *state, a *syntax.Assign, keep bool) {
	if a.Name == nil { // an argument of export that is not known
		c.fields(st, a.Value)
		return
	}
	name := a.Name.Value
	if a.Index != nil {
		c.substitutions(st, a.Index)
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			for _, f := range c.fields(st, e.Value) {
				if !strings.HasPrefix(f.text, string(runeUnknown)) {
					c.token(f, st.dirs)
				}
			}
		}
		st.set(name, value{text: string(runeOpaque)})
		return
	}
	if a.Naked {
		return
	}
	f := c.joined(st, a.Value)
	f.pos = a.Pos()
	c.assignment(f, name, f.text, st.dirs)
	if !keep {
		return
	}
	v := value{c.expandTildes(f.text), f.why}
	if a.Append {
		old, _ := c.lookup(st, name)
		v.text = old.text + v.text
	}
	st.set(name, v)
}

// expandTildes is what an assignment does with each "~" at the beginning and
// after a colon.
func (c *checker) expandTildes(text string) string {
	if !strings.Contains(text, "~") {
		return text
	}
	elems := strings.Split(text, ":")
	for i, e := range elems {
		if e == "~" || strings.HasPrefix(e, "~/") {
			elems[i] = literal(c.scope.Home) + e[1:]
		}
	}
	return strings.Join(elems, ":")
}

// test checks [[ … ]]: files count, strings and patterns do not.
func (c *checker) test(st *state, x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest, syntax.OrTest, syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
			c.test(st, x.X)
			c.test(st, x.Y)
		default:
			c.substitutions(st, x)
		}
	case *syntax.UnaryTest:
		if x.Op == syntax.TsEmpStr || x.Op == syntax.TsNempStr || x.Op == syntax.TsVarSet {
			c.substitutions(st, x)
			return
		}
		c.test(st, x.X)
	case *syntax.ParenTest:
		c.test(st, x.X)
	case *syntax.Word:
		c.token(c.joined(st, x), st.dirs)
	}
}

// call walks a function's body with the given arguments.
func (c *checker) call(st *state, name string, args []field) {
	if c.depth == maxDepth {
		return
	}
	c.called[name] = true
	params, called := st.params, st.called
	st.params, st.called = args, args != nil
	c.depth++
	c.stmt(st, c.funcs[name], false, false)
	c.depth--
	st.params, st.called, st.dead = params, called, false
}

// input is what is known of a command's standard input.
type input struct {
	piped bool
	given bool // text is it
	text  field
}

// invocation is how a simple command stands in a script.
type invocation struct {
	piped bool // another command reads what it prints
	input input
}

// tooLong counts a step and reports whether there were too many.
func (c *checker) tooLong(pos syntax.Pos) bool {
	c.steps++
	if c.steps == maxSteps+1 {
		c.unknown(pos, "…", "is too long to follow")
	}
	return c.steps > maxSteps
}

// simple walks a simple command.
func (c *checker) simple(st *state, cmd *syntax.CallExpr, inv invocation) {
	for _, a := range cmd.Assigns {
		c.assign(st, a, len(cmd.Args) == 0)
	}
	var args []field
	for _, w := range cmd.Args {
		args = append(args, c.fields(st, w)...)
	}
	if len(args) == 0 {
		return
	}
	outer := c.given
	for _, a := range cmd.Assigns {
		if a.Name != nil {
			c.given = append(slices.Clip(c.given), a.Name.Value)
		}
	}
	c.command(st, args, inv)
	c.given = outer
}

// changeDir is cd.
func (c *checker) changeDir(st *state, f field) {
	target := f.text
	switch {
	case target == "-":
		st.dirs, st.old = st.old, st.dirs
		return
	case strings.ContainsAny(target, unknownRunes):
		c.path(f, target, st.dirs)
		st.dirs, st.old = nil, st.dirs
		return
	}
	c.path(f, target, st.dirs)
	st.dirs, st.old = c.resolve(st.dirs, target), st.dirs
}

// resolve returns the directories that a known path means from each of dirs.
func (c *checker) resolve(dirs []string, path string) []string {
	path = strings.ReplaceAll(c.expandTildes(path), string(runeTilde), "~")
	if strings.HasPrefix(path, "/") {
		return []string{join("/", path)}
	}
	var out []string
	for _, d := range dirs {
		out = appendNew(out, join(d, path))
	}
	return out
}

// either returns dirs with those that a command enters by itself.
func (c *checker) either(dirs []string, path string) []string {
	if strings.ContainsAny(path, unknownRunes) {
		return nil
	}
	return slices.Concat(dirs, c.resolve(dirs, path))
}
