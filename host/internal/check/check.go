// Package check says of a shell command whether it would stay in the workspace
// scope.
package check

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/scope"
	"github.com/research-harness/harness/host/internal/system"
)

// Report is what [Check] found in one command.
type Report struct {
	Command    string    `json:"command"`
	OK         bool      `json:"ok"` // no violations
	Violations []Finding `json:"violations"`
	Unknown    []Finding `json:"unknown"`         // what only a run can tell
	Error      string    `json:"error,omitempty"` // why nothing can be said
}

// Finding is a word of a command, and what is the matter with it.
type Finding struct {
	Line   uint   `json:"line"`
	Column uint   `json:"column"`
	Token  string `json:"token"`
	Reason string `json:"reason"`
}

func (f Finding) String() string {
	return problem.OneLine(fmt.Sprintf("%d:%d: %s: %s", f.Line, f.Column, f.Token, f.Reason))
}

// limits of what one check looks at.
const (
	maxCommand = 1 << 17 // what the system takes as one argument
	maxNested  = 500     // parentheses in parentheses
	maxSteps   = 20_000  // statements and commands
	maxFields  = 256     // from one word
	maxText    = 1 << 17
	maxDepth   = 20  // of functions, eval and sh -c
	maxDirs    = 8   // possible current directories
	maxVars    = 500 // variables that the command sets
)

// Check parses a command as a shell does and reports the words that name a
// place outside the workspace and the scope's writable directories, and the
// steps that leave the workspace. It runs nothing and reads no file of the
// command's; variables have the values of s and those that the command gives
// them. A command that does not parse is a problem.
//
// It is a heuristic that tells an agent early what the sandbox would refuse
// late. It is no boundary: [scope.Scope.Run] is.
func Check(sc *scope.Scope, s *system.System, command string) (*Report, error) {
	if len(command) > maxCommand {
		return nil, problem.New("", "command", "is longer than %d bytes", maxCommand)
	}
	c := &checker{
		scope:  sc,
		sys:    s,
		report: &Report{Command: command, Violations: []Finding{}, Unknown: []Finding{}},
		funcs:  map[string]*syntax.Stmt{},
		called: map[string]bool{},
	}
	st := &state{dirs: []string{sc.Dir}, vars: map[string]value{}}
	if err := c.script(st, command, syntax.Pos{}); err != nil {
		return nil, problem.New("", "command", "%w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.funcs)) {
		if !c.called[name] {
			c.call(st.clone(), name, nil)
		}
	}
	c.report.OK = len(c.report.Violations) == 0
	return c.report, nil
}

// checker walks one command.
type checker struct {
	scope  *scope.Scope
	sys    *system.System
	report *Report
	funcs  map[string]*syntax.Stmt
	called map[string]bool
	steps  int

	given    []string // variables that the present command is given
	prefixed bool     // an earlier step was told where to install
	asRoot   bool     // within sudo
	depth    int
	within   syntax.Pos // of the word that a nested script stands in
}

func (c *checker) add(list *[]Finding, pos syntax.Pos, token, reason string) {
	if c.within.IsValid() {
		pos = c.within
	}
	f := Finding{Line: pos.Line(), Column: pos.Col(), Token: show(token), Reason: reason}
	if !slices.ContainsFunc(*list, func(g Finding) bool { return g.Token == f.Token && g.Reason == f.Reason }) {
		*list = append(*list, f)
	}
}

func (c *checker) violation(pos syntax.Pos, token, reason string) {
	c.add(&c.report.Violations, pos, token, reason)
}

func (c *checker) unknown(pos syntax.Pos, token, reason string) {
	c.add(&c.report.Unknown, pos, token, reason)
}

const (
	outside = "is outside the workspace and the writable directories"
	leaves  = "leaves the workspace"
	hidden  = "is a credential, which cannot be read here"
)

var (
	systemBins = []string{"/bin", "/usr/bin", "/sbin", "/usr/sbin"}
	// devices can be opened by everyone and hold nothing.
	devices = []string{
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
		"/dev/stdin", "/dev/stdout", "/dev/stderr",
	}
)

// judge returns why an absolute path is out of bounds, or "".
func (c *checker) judge(path string) string {
	path = filepath.Clean(path)
	if slices.Contains(devices, path) || filepath.Dir(path) == "/dev/fd" {
		return ""
	}
	real := paths.Real(path)
	for _, h := range c.scope.Hidden {
		if paths.AtOrBelow(path, h) || paths.AtOrBelow(real, h) {
			return hidden
		}
	}
	if c.scope.CanWrite(path) || c.scope.CanWrite(real) {
		return ""
	}
	return outside
}

// path checks one path of a word. The dirs are those that a relative one may
// be relative to: it is out of bounds only if it is from each of them.
func (c *checker) path(f field, text string, dirs []string) {
	text = strings.TrimPrefix(text, "file://")
	known, rest := text, ""
	if i := strings.IndexAny(text, unknownRunes); i >= 0 {
		known, rest = text[:i], text[i:]
	}
	switch {
	case known == "" && rest == "":
		return
	case known == "":
		if rest[0] == runeUnknown {
			c.unknown(f.pos, f.source(), cmp.Or(f.why, "is not known before it runs"))
		}
		return
	case known[0] == '~':
		user, tail, slash := strings.Cut(known[1:], "/")
		switch {
		case user == "" && (slash || rest == ""):
			known = c.scope.Home + "/" + tail
		case user == "+" && len(dirs) == 1:
			known = dirs[0] + "/" + tail
		default:
			c.violation(f.pos, text, "is another user's home directory")
			return
		}
	}
	if rest != "" { // what is unknown may change the last component
		known = known[:strings.LastIndexByte(known, '/')+1]
	}
	if filepath.IsAbs(known) {
		reason := c.judge(known)
		if reason == outside && rest != "" && c.above(filepath.Clean(known)) {
			c.unknown(f.pos, f.source(), cmp.Or(f.why, "is not known before it runs"))
		} else if reason != "" {
			c.violation(f.pos, text, reason)
		}
		return
	}
	c.relative(f, text, known, dirs)
}

// above reports whether dir holds the workspace or a writable directory.
func (c *checker) above(dir string) bool {
	return paths.AtOrBelow(c.scope.Workspace, dir) ||
		slices.ContainsFunc(c.scope.Writable, func(p string) bool { return paths.AtOrBelow(p, dir) })
}

// relative checks a path that is relative to one of dirs. Only ".." leads out.
func (c *checker) relative(f field, text, path string, dirs []string) {
	if !slices.Contains(strings.Split(path, "/"), "..") {
		return
	}
	if len(dirs) == 0 {
		c.unknown(f.pos, f.source(), "is relative to a directory that is not known")
		return
	}
	reasons := 0
	reason := ""
	for _, dir := range dirs {
		target := filepath.Join(dir, path)
		switch inside := paths.AtOrBelow(dir, c.scope.Workspace); {
		case inside && !paths.AtOrBelow(target, c.scope.Workspace):
			reason = leaves
			reasons++
		case !inside && c.judge(dir) == "" && c.judge(target) != "":
			reason = c.judge(target)
			reasons++
		}
	}
	switch {
	case reasons == len(dirs):
		c.violation(f.pos, text, reason)
	case reasons > 0 && !f.eitherDir:
		c.unknown(f.pos, f.source(), reason+", depending on the current directory")
	}
}

// list checks a value that may hold several paths between colons. Where the
// first is no path, as in host:/path, the value names something elsewhere.
func (c *checker) list(f field, text string, dirs []string) {
	if url := strings.Index(text, "://"); url >= 0 && !strings.HasPrefix(text, "file://") {
		return
	}
	text = strings.TrimPrefix(text, "@") // a file of arguments or data
	if !strings.HasPrefix(text, "file://") && (rooted(text) || strings.HasPrefix(text, "..")) {
		for elem := range strings.SplitSeq(text, ":") {
			c.path(f, elem, dirs)
		}
		return
	}
	c.path(f, text, dirs)
}

// rooted reports whether text begins like an absolute path.
func rooted(text string) bool { return text != "" && (text[0] == '/' || text[0] == '~') }

// pathLike reports whether a part of a word begins like a path that could lead
// out.
func pathLike(text string) bool {
	return rooted(text) || text == ".." || strings.HasPrefix(text, "../")
}

// token checks an argument of an ordinary command.
func (c *checker) token(f field, dirs []string) {
	text := f.text
	if name, value, ok := strings.Cut(text, "="); ok && (strings.HasPrefix(text, "-") || !pathLike(text)) {
		bare := strings.TrimPrefix(strings.TrimLeft(name, "-"), "D")
		switch {
		case flagsLike(name) || flagsLike(bare):
			c.flags(f, value, dirs)
		case programLike(name) && inSystemBin(value):
		case pathLike(value) || strings.HasPrefix(value, "file://"):
			c.list(f, value, dirs)
		case value != "" && strings.IndexAny(value, unknownRunes) == 0 && strings.Contains(value, "/"):
			c.path(f, value, dirs)
		}
		return
	}
	if strings.HasPrefix(text, "-") {
		if len(text) > 2 && pathLike(text[2:]) && text[1] != '-' {
			c.list(f, text[2:], dirs)
		}
		return
	}
	c.list(f, text, dirs)
}

// assignment checks the value that a variable is given. What is relative
// counts where the variable is used.
func (c *checker) assignment(f field, name string, value string, dirs []string) {
	switch {
	case flagsLike(name):
		c.flags(f, value, dirs)
	case name == "IFS", name == "PS1", name == "PS4":
	case programLike(name) && inSystemBin(value):
	case name == "PATH":
		current := filepath.SplitList(c.sys.Getenv("PATH"))
		for elem := range strings.SplitSeq(value, ":") {
			if clean := filepath.Clean(elem); rooted(elem) && !slices.Contains(systemBins, clean) && !slices.Contains(current, clean) {
				c.path(f, elem, dirs)
			}
		}
	case strings.Contains(value, "://"):
		if strings.HasPrefix(value, "file://") {
			c.path(f, value, dirs)
		}
	default:
		for elem := range strings.SplitSeq(value, ":") {
			if rooted(elem) && elem != "~" && elem != c.scope.Home { // of which a part may be used
				c.path(f, elem, dirs)
			}
		}
	}
}

// flags checks a value that holds options for a compiler or linker.
func (c *checker) flags(f field, value string, dirs []string) {
	var args []field
	for text := range strings.FieldsSeq(value) {
		args = append(args, field{text: text, pos: f.pos, why: f.why})
	}
	for _, arg := range withoutSearch(args) {
		c.token(arg, dirs)
	}
}

// searchFlags name directories that a compiler or linker only looks into.
var searchFlags = []string{
	"-isystem", "-iquote", "-idirafter", "-isysroot", "-iframework", "-iprefix", "-iwithprefix", "--sysroot",
	"-rpath-link", "-rpath", "-I", "-L", "-B", "-F",
}

// withoutSearch drops search flags and their values from a compiler's
// arguments. What -Wl hands to the linker counts alike.
func withoutSearch(args []field) []field {
	var out []field
	for i := 0; i < len(args); i++ {
		text := args[i].text
		if linker, ok := strings.CutPrefix(text, "-Wl,"); ok {
			var parts []field
			for part := range strings.SplitSeq(linker, ",") {
				part, value, eq := strings.Cut(part, "=")
				parts = append(parts, field{text: part, pos: args[i].pos})
				if eq {
					parts = append(parts, field{text: value, pos: args[i].pos})
				}
			}
			out = append(out, withoutSearch(parts)...)
			continue
		}
		flag := slices.IndexFunc(searchFlags, func(s string) bool { return strings.HasPrefix(text, s) })
		switch {
		case flag < 0:
			out = append(out, args[i])
		case text == searchFlags[flag]:
			i++ // the value is the next argument
		}
	}
	return out
}

var (
	flagNames    = lazy(`(?i)(flags(_[a-z]+)?|copts?|linkopts?|_LIBS|^LIBS)$`)
	programNames = lazy(`^(CC|CXX|CPP|LD|AR|AS|NM|RANLIB|STRIP|FC|F77|OBJCOPY|(CONFIG_)?SHELL|BASH|PYTHON3?|PERL|RUBY|NODE|RUSTC|RUSTC_WRAPPER|MAKE|CMAKE|NINJA|PKG_CONFIG|(GIT_)?EDITOR|VISUAL|(GIT_)?PAGER)$`)
)

// lazy compiles an expression when it is first needed: most runs of the harness
// check nothing.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// flagsLike reports whether a variable or option holds compiler options.
func flagsLike(name string) bool { return flagNames().MatchString(name) }

// programLike reports whether a variable names a program that a build runs.
func programLike(name string) bool { return programNames().MatchString(name) }

// inSystemBin reports whether a value begins with the path of a program of the
// system.
func inSystemBin(value string) bool {
	program, _, _ := strings.Cut(value, " ")
	return filepath.IsAbs(program) && slices.Contains(systemBins, filepath.Dir(filepath.Clean(program)))
}
