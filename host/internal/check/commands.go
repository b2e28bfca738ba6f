package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func join(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// operands says which arguments of a program are text and not files.
type operands struct {
	script  int    // so many first operands are text: a script, a pattern
	instead string // unless one of these flags gives it
	text    string // flags whose argument is text
	pair    string // flags with two arguments, a name and text
	value   string // other flags with an argument of their own
	all     bool   // all operands are text
}

const grepText = "-e --regexp -m --max-count -A -B -C --include --exclude --exclude-dir -g --glob --iglob -t -T --type -r --replace -M -E -j -d"

// programs are those that take scripts and patterns, by name.
var programs = map[string]operands{
	"sed":  {script: 1, instead: "-e --expression -f --file", text: "-e --expression -l", value: "-f --file"},
	"awk":  {script: 1, instead: "-f --file -e --source", text: "-F -v -e --source --field-separator --assign", value: "-f --file"},
	"grep": {script: 1, instead: "-e --regexp -f --file", text: strings.ReplaceAll(grepText, "-r --replace ", ""), value: "-f --file"},
	"rg":   {script: 1, instead: "-e --regexp -f --file --files --type-list", text: grepText, value: "-f --file"},
	"fd":   {script: 1, text: "-e -E -t -d --extension --exclude --type"},
	"jq":   {script: 1, instead: "-f --from-file", text: "--indent", pair: "--arg --argjson", value: "-f --from-file"},
	"yq":   {script: 1, text: "-o -p -I"},
	"perl": {text: "-e -E"}, "ruby": {text: "-e"}, "node": {text: "-e -p -pe --eval --print"}, "bun": {text: "-e"}, "deno": {},
	"python": {text: "-c"}, "php": {text: "-r"}, "lua": {text: "-e"}, "Rscript": {text: "-e"}, "julia": {text: "-e -E"},
	"tclsh": {}, "guile": {text: "-c"}, "gnuplot": {text: "-e"}, "octave": {text: "--eval"}, "latexmk": {text: "-e -r"},
	"sqlite3": {text: "-cmd -separator"}, "psql": {text: "-c"}, "mysql": {text: "-e"}, "gdb": {text: "-ex"}, "vim": {text: "-c --cmd"},
	"tr": {all: true}, "expr": {all: true}, "envsubst": {all: true}, "seq": {all: true}, "kill": {all: true},
	"cut": {text: "-d -f -c -b --delimiter --output-delimiter"}, "sort": {text: "-t -k -S --field-separator"}, "paste": {text: "-d"},
	"column": {text: "-s -o"}, "date": {text: "-d --date"}, "read": {text: "-d -p"}, "tree": {text: "-I -P"}, "ls": {text: "-I"},
	"rsync": {text: "--exclude --include --filter"}, "tar": {text: "--exclude --transform --xform"}, "du": {text: "--exclude"},
	"git": {text: "-m --message --grep --author --format --pretty -S -G -c"},
	"go":  {text: "-run -bench -skip -fuzz -tags -f"}, "pytest": {text: "-k -m"}, "cargo": {text: "--message-format"},
	"curl": {text: "-H --header -A --user-agent -X --request -w --write-out -u -e"}, "gh": {text: "-t -b --title --body -q --jq"},
	"csplit": {all: true}, "vi": {text: "-c --cmd"}, "ex": {text: "-c --cmd"}, "ssh": {all: true, value: "-i -F -E -S", text: "-o -p -l -L -R -D -J -W"},
}

// aliases of programs that take the same arguments.
var aliases = map[string]string{
	"gsed": "sed", "gawk": "awk", "mawk": "awk", "nawk": "awk", "egrep": "grep", "fgrep": "grep", "zgrep": "grep", "ag": "rg", "ack": "rg",
	"ugrep": "grep", "fdfind": "fd", "python3": "python", "python2": "python", "pypy3": "python", "nodejs": "node", "luajit": "lua", "nvim": "vim",
	"pip2": "pip", "pip3": "pip", "pypy": "python", "gpg2": "gpg",
}

// wrappers run the command that their operands are.
var wrappers = map[string]struct {
	value string // flags with an argument
	skip  int    // operands before the command
}{
	"sudo": {value: "-u -g -C -D -h -p -U"}, "doas": {value: "-u"}, "nice": {value: "-n"}, "ionice": {value: "-c -n -p"}, "nohup": {}, "setsid": {},
	"time": {value: "-f -o"}, "timeout": {value: "-s -k --signal --kill-after", skip: 1}, "stdbuf": {value: "-i -o -e"}, "command": {}, "builtin": {},
	"exec": {value: "-a"}, "env": {value: "-u -C -S --unset --chdir"}, "strace": {value: "-o -e -p -s"}, "ltrace": {value: "-o -e"}, "taskset": {skip: 1},
	"ccache": {}, "sccache": {}, "distcc": {}, "bear": {value: "-o --output"}, "unbuffer": {}, "caffeinate": {}, "flock": {skip: 1}, "fakeroot": {},
	"xargs": {value: "-I -n -P -L -d -E -s -a"}, "valgrind": {}, "catchsegv": {}, "script": {value: "-c"}, "busybox": {}, "not": {},
}

var (
	shells    = []string{"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash"}
	compilers = lazy(`^(.*-)?(gcc|g\+\+|cc|c\+\+|clang|clang\+\+|cpp|tcc|ld|lld|mold|as|gfortran|gccgo|icc|icpc|icx|icpx|ifort|ifx|nvcc|hipcc|` +
		`mpicc|mpicxx|mpic\+\+|mpif90|mpifort|rustc|swiftc|gdc|ldc2|dmd|protoc|swig|nasm|yasm|zig|emcc|em\+\+|libtool|moc|bindgen|ocamlopt|ocamlc|ocamlfind|ghc|iverilog|verilator)(-[0-9.]+)?$`)
	versioned = lazy(`^(python|pip|perl|ruby|lua|php|clang|gcc|node)-?[0-9][0-9.]*$`)
	envAssign = lazy(`^[A-Za-z_][A-Za-z0-9_]*=`)
)

// command checks a simple command after expansion.
func (c *checker) command(st *state, args []field, inv invocation) {
	if len(args) == 0 || c.tooLong(args[0].pos) {
		return
	}
	program, rest := args[0], args[1:]
	if strings.ContainsAny(program.text, unknownRunes) {
		c.path(program, program.text, st.dirs)
		c.tokens(st, withoutSearch(rest), operands{})
		return
	}
	name := c.program(st, program)
	if _, ok := c.funcs[name]; ok && name == program.text {
		c.call(st, name, append([]field{}, rest...))
		return
	}
	c.outside(st, name, program, rest)
	switch {
	case name == "cd" || name == "pushd" || name == "popd":
		c.cd(st, name, program, rest)
	case name == "." || name == "source":
		c.activate(st, rest)
		c.ordinary(st, name, rest)
	case name == "alias":
		c.alias(st, rest)
	case name == "su":
		c.su(st, rest)
	case name == "watch":
		c.nested(st.clone(), joinFields(afterFlags(rest, "-n --interval")))
	case name == "eval":
		c.nested(st, joinFields(rest))
	case name == "trap":
		if ops := positional(rest); len(ops) > 1 {
			c.nested(st.clone(), ops[0])
		}
	case name == "set" || name == "shift":
		c.setParams(st, name, rest)
	case name == "exit" || name == "return":
		st.dead = true
	case slices.Contains(shells, name):
		c.shell(st, program, rest, inv)
	case name == "echo" || name == "printf" || name == "basename" || name == "dirname":
		c.echo(st, name, rest, inv)
	case name == "test" || name == "[":
		c.testCommand(st, rest)
	case name == "find":
		c.find(st, rest, inv)
	case name == "docker" || name == "podman":
		c.container(st, rest)
	default:
		if w, ok := wrappers[name]; ok {
			c.wrapper(st, name, program, w.value, w.skip, rest, inv)
			return
		}
		c.code(name, program, rest, inv)
		c.writes(st, name, rest)
		if hasWord("vim vi ex view gvim", name) {
			c.vi(st, rest)
		}
		c.ordinary(st, name, rest)
	}
}

// program checks the word that names the program and returns its base name.
func (c *checker) program(st *state, f field) string {
	text := f.text
	if strings.Contains(text, "/") && !inSystemBin(text) {
		c.path(f, text, st.dirs)
	}
	name := filepath.Base(text)
	if versioned().MatchString(name) && aliases[name] == "" {
		name = strings.TrimRight(name, "-.0123456789")
	}
	if alias, ok := aliases[name]; ok {
		name = alias
	}
	return name
}

func (c *checker) ordinary(st *state, name string, args []field) {
	spec := programs[name]
	switch name {
	case "git":
		if sub := positional(args); len(sub) > 0 && sub[0].text == "grep" {
			spec = programs["grep"]
			spec.script++ // and grep itself
		}
	case "sqlite3":
		if ops := positional(args); len(ops) > 1 {
			args = slices.DeleteFunc(slices.Clone(args), func(f field) bool { return slices.Contains(ops[1:], f) })
		}
	case "ln":
		args = c.links(st, args)
	}
	if compilers().MatchString(name) {
		args = withoutSearch(args)
	}
	c.tokens(st, args, spec)
}

// links checks the targets of symbolic links, which are relative to where the
// link is, and returns the other arguments of ln.
func (c *checker) links(st *state, args []field) []field {
	ops := positional(args)
	symbolic := slices.ContainsFunc(args, func(f field) bool { return f.text == "--symbolic" || short(f.text, 's') })
	if !symbolic || len(ops) < 2 {
		return args
	}
	name := ops[len(ops)-1]
	var dirs []string
	for _, path := range c.resolve(st.dirs, name.text) {
		if info, err := os.Stat(path); (err != nil || !info.IsDir()) && !strings.HasSuffix(name.text, "/") && len(ops) == 2 {
			path = filepath.Dir(path)
		}
		dirs = append(dirs, path)
	}
	for _, target := range ops[:len(ops)-1] {
		c.token(target, dirs)
	}
	return []field{name}
}

// short reports whether a word holds a short flag.
func short(word string, flag byte) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.IndexByte(word, flag) > 0
}

// dirFlags make a program work in another directory. Whether the paths after
// it are relative to that or to the current one is the program's affair.
var dirFlags = []string{"-C", "--directory", "--chdir", "--work-tree", "--prefix", "--cwd", "-S", "-B", "--build"}

// tokens checks the arguments of a program.
func (c *checker) tokens(st *state, args []field, spec operands) {
	has := func(list, flag string) bool { return flag != "" && slices.Contains(strings.Fields(list), flag) }
	dirs, either := st.dirs, false
	script := spec.script
	for _, a := range args {
		flag, _, _ := strings.Cut(a.text, "=")
		if has(spec.instead, flag) || spec.instead != "" && len(a.text) > 2 && a.text[1] != '-' && has(spec.instead, a.text[:2]) {
			script = 0
		}
	}
	operandsOnly := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		a.eitherDir = a.eitherDir || either
		flag, value, glued := strings.Cut(a.text, "=")
		isFlag := !operandsOnly && strings.HasPrefix(a.text, "-") && a.text != "-"
		next := func() (field, bool) {
			if i++; i < len(args) {
				f := args[i]
				f.eitherDir = either
				return f, true
			}
			return field{}, false
		}
		switch {
		case isFlag && a.text == "--":
			operandsOnly = true
		case isFlag && has(spec.text, flag):
			if !glued {
				next()
			}
		case isFlag && has(spec.pair, flag):
			next()
			next()
		case isFlag && has(spec.value, flag) && !glued:
			if f, ok := next(); ok {
				c.token(f, dirs)
			}
		case isFlag && len(a.text) > 2 && a.text[1] != '-' && clusterText(spec, a.text):
			next()
		case isFlag && len(a.text) > 2 && has(spec.text, a.text[:2]) && a.text[1] != '-' && !glued:
			// its text is in the same word
		case isFlag && !glued && flagsLike(flag):
			if f, ok := next(); ok {
				c.flags(f, f.text, dirs)
			}
		case isFlag && slices.Contains(dirFlags, flag):
			dir := field{text: value, pos: a.pos, why: a.why, eitherDir: either}
			if !glued {
				f, ok := next()
				if !ok {
					return
				}
				dir = f
			}
			c.token(dir, st.dirs)
			if !strings.Contains(dir.text, "=") {
				dirs, either = c.either(dirs, dir.text), true
			}
		case isFlag && strings.HasPrefix(a.text, "-C") && len(a.text) > 2 && a.text[1] == 'C' && !glued:
			dir := field{text: a.text[2:], pos: a.pos, why: a.why, eitherDir: either}
			c.token(dir, st.dirs)
			dirs, either = c.either(dirs, dir.text), true
		case isFlag:
			c.token(a, dirs)
		case spec.all:
		case script > 0:
			script--
		default:
			c.token(a, dirs)
		}
	}
}

// clusterText reports whether short flags in one word end in one that takes
// text from the next word, as in "perl -lane CODE" and "sed -ne SCRIPT".
func clusterText(spec operands, word string) bool {
	last := "-" + word[len(word)-1:]
	if last != "-e" && last != "-E" && last != "-c" {
		return false
	}
	for _, r := range word[1:] {
		if r < 'a' || r > 'z' {
			return false
		}
	}
	return slices.Contains(strings.Fields(spec.text), last) && !slices.Contains(strings.Fields(spec.text), word[:2])
}

// positional returns the arguments that are no flags.
func positional(args []field) []field {
	var out []field
	for i, a := range args {
		if a.text == "--" {
			return append(out, args[i+1:]...)
		}
		if !strings.HasPrefix(a.text, "-") {
			out = append(out, a)
		}
	}
	return out
}

// afterFlags drops the flags before the first operand; value are those with an
// argument.
func afterFlags(args []field, value string) []field {
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		n := 1
		if hasWord(value, args[0].text) {
			n = min(2, len(args))
		}
		args = args[n:]
	}
	return args
}

func joinFields(args []field) field {
	if len(args) == 0 {
		return field{}
	}
	all := args[0]
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.text
	}
	all.text = strings.Join(texts, " ")
	return all
}

// cd checks the programs that change the current directory.
func (c *checker) cd(st *state, name string, program field, args []field) {
	ops := positional(args)
	if slices.ContainsFunc(args, func(f field) bool { return f.text == "-" }) {
		ops = []field{{text: "-", pos: program.pos}}
	}
	switch {
	case name == "popd":
		if n := len(st.stack); n > 0 {
			st.dirs, st.old, st.stack = st.stack[n-1], st.dirs, st.stack[:n-1]
		} else {
			st.dirs = nil
		}
		return
	case len(ops) == 0 && name == "cd":
		c.violation(program.pos, "cd", "goes to the home directory, which "+outside)
		st.dirs, st.old = []string{c.scope.Home}, st.dirs
		return
	case len(ops) == 0:
		return
	case name == "pushd":
		st.stack = append(st.stack, st.dirs)
	}
	c.changeDir(st, ops[0])
}

// setParams is set and shift.
func (c *checker) setParams(st *state, name string, args []field) {
	switch {
	case name == "shift" && len(st.params) > 0:
		st.params = st.params[1:]
	case name == "set":
		if i := slices.IndexFunc(args, func(f field) bool { return f.text == "--" }); i >= 0 {
			st.params, st.called = args[i+1:], true
			for _, f := range st.params {
				c.token(f, st.dirs)
			}
		}
	}
}

// shell checks a shell: the script that it is given, or the file that it runs.
func (c *checker) shell(st *state, program field, args []field, inv invocation) {
	for i, a := range args {
		flag := strings.HasPrefix(a.text, "-") || strings.HasPrefix(a.text, "+")
		if flag && !strings.HasPrefix(a.text, "--") && strings.HasSuffix(a.text, "c") {
			if i+1 == len(args) {
				return
			}
			inner := st.clone()
			inner.params, inner.called = nil, true
			if i+3 <= len(args) {
				inner.params = args[i+3:]
			}
			c.nested(inner, args[i+1])
			return
		}
		if flag && a.text != "-s" && a.text != "-" || i > 0 && args[i-1].text == "-o" {
			continue
		}
		if !flag {
			c.tokens(st, args[i:], operands{})
			return
		}
		break
	}
	switch {
	case inv.input.given:
		c.nested(st.clone(), inv.input.text)
	case inv.input.piped:
		c.unknown(program.pos, program.text, "runs what it reads from a pipe")
	}
}

// echo checks the programs whose operands are text. Text that names a file
// counts where another command reads it or where the shell looks for files.
func (c *checker) echo(st *state, name string, args []field, inv invocation) {
	if name == "printf" && len(args) > 0 {
		args = args[1:]
	}
	for _, a := range args {
		if rooted(a.text) && !strings.ContainsAny(a.text, " "+unknownRunes) && !a.glob && !inv.piped {
			if !c.exists(a.text) {
				continue // as in echo /build >> .gitignore
			}
		}
		if rooted(a.text) && !strings.Contains(a.text, " ") {
			c.token(a, st.dirs)
		}
	}
}

// testCommand checks test and [: the operands of comparisons are text.
func (c *checker) testCommand(st *state, args []field) {
	text := make([]bool, len(args))
	for i, a := range args {
		switch a.text {
		case "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
			if i > 0 {
				text[i-1] = true
			}
			if i+1 < len(args) {
				text[i+1] = true
			}
		case "-z", "-n":
			if i+1 < len(args) {
				text[i+1] = true
			}
		}
	}
	for i, a := range args {
		if !text[i] {
			c.token(a, st.dirs)
		}
	}
}

// find checks find: patterns are text, and -exec runs a command.
func (c *checker) find(st *state, args []field, inv invocation) {
	for i := 0; i < len(args); i++ {
		switch strings.TrimPrefix(args[i].text, "-") {
		case "name", "iname", "path", "ipath", "wholename", "iwholename", "regex", "iregex", "lname", "ilname", "printf", "perm", "user", "group", "type", "size", "mtime", "mmin", "maxdepth", "mindepth":
			i++
		case "exec", "execdir", "ok", "okdir":
			end := i + 1
			for end < len(args) && args[end].text != ";" && args[end].text != "+" {
				end++
			}
			c.command(st.clone(), slices.Clone(args[i+1:min(end, len(args))]), inv)
			i = end
		default:
			c.token(args[i], st.dirs)
		}
	}
}

// container checks docker and podman: what they mount and build counts, what
// runs in the container is elsewhere.
func (c *checker) container(st *state, args []field) {
	sub := positional(args)
	inside := len(sub) > 0 && slices.Contains([]string{"run", "exec", "create"}, sub[0].text)
	for i := 0; i < len(args); i++ {
		flag, value, glued := strings.Cut(args[i].text, "=")
		switch {
		case slices.Contains([]string{"-v", "--volume", "--mount", "--env-file", "-f", "--file", "--secret"}, flag):
			f := args[i]
			if !glued {
				if i++; i == len(args) {
					return
				}
				f, value = args[i], args[i].text
			}
			for part := range strings.SplitSeq(value, ",") {
				if key, v, ok := strings.Cut(part, "="); ok && slices.Contains([]string{"source", "src"}, key) {
					c.path(f, v, st.dirs)
				}
			}
			host, _, _ := strings.Cut(value, ":")
			if !strings.Contains(value, "=") {
				c.path(f, host, st.dirs)
			}
		case !inside:
			c.token(args[i], st.dirs)
		}
	}
}

// wrapper checks a program that runs another.
func (c *checker) wrapper(st *state, name string, program field, value string, skip int, args []field, inv invocation) {
	inner := st
	if name != "command" && name != "builtin" && name != "exec" {
		inner = st.clone() // a process of its own: no cd reaches the shell
	}
	if name == "xargs" && inv.input.piped {
		c.unknown(program.pos, name, "takes arguments from a pipe")
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		flag, _, glued := strings.Cut(a.text, "=")
		switch {
		case a.text == "--":
		case name == "env" && envAssign().MatchString(a.text):
			key, v, _ := strings.Cut(a.text, "=")
			c.assignment(a, key, v, st.dirs)
			c.given = append(slices.Clip(c.given), key)
		case strings.HasPrefix(a.text, "-"):
			if glued || !slices.Contains(strings.Fields(value), flag) {
				c.token(a, st.dirs)
				continue
			}
			if i++; i == len(args) {
				return
			}
			switch {
			case flag == "-C" || flag == "--chdir" || flag == "-D":
				c.changeDir(inner, args[i])
			case name == "script" && flag == "-c", name == "env" && flag == "-S":
				c.nested(inner, args[i])
			case name == "xargs" && flag != "-a", flag == "-n", flag == "-s", flag == "-e", flag == "-f" && name == "time":
			default:
				c.token(args[i], st.dirs)
			}
		case skip > 0:
			skip--
			c.token(a, st.dirs)
		default:
			outer := c.asRoot
			c.asRoot = outer || name == "sudo" || name == "doas"
			c.command(inner, args[i:], inv)
			c.asRoot = outer
			if name == "exec" {
				st.dead = true
			}
			return
		}
	}
}
