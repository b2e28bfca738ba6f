package access

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/origin"
)

// lists are the entries of a policy that concern the file system, read as srt
// reads them on one operating system.
type lists struct {
	allowWrite, denyWrite, denyRead, allowRead []entry
	// patterns are the entries with wildcards that are not taken as a name.
	patterns []entry
	inert    []Touch
	// at finds the entries by the paths that they name.
	at map[string][]*entry
}

// entry is one path or pattern of a list.
type entry struct {
	Touch
	path string
	// match is the pattern of an entry with wildcards, else nil.
	match *pattern
}

// own is an entry that srt adds by itself.
func own(rule, p string) entry {
	return entry{Touch{Rule: rule, Entry: origin.Value{Text: p, Origin: origin.Origin{Source: "srt"}}}, p, nil}
}

func (m *Model) readLists() *lists {
	l := &lists{}
	l.allowWrite = m.readList(l, AllowWrite, m.policy.AllowWrite)
	l.denyWrite = m.readList(l, DenyWrite, m.policy.DenyWrite)
	l.denyRead = m.readList(l, DenyRead, m.policy.DenyRead)
	l.allowRead = m.readList(l, AllowRead, m.policy.AllowRead)
	l.allowWrite = append(m.defaultWrites(l), l.allowWrite...)
	if m.cwd != "" {
		l.denyWrite = append(l.denyWrite, m.cwdDenies()...)
	}
	if m.goos == "linux" {
		if sshConfig := own(DenyRead, "/etc/ssh/ssh_config.d"); m.links.exists(sshConfig.path) {
			l.denyRead = append(l.denyRead, sshConfig)
		}
		l.allowWrite = m.grantable(l, l.allowWrite)
	}
	l.at = make(map[string][]*entry, len(l.allowWrite)+len(l.denyWrite)+len(l.denyRead)+len(l.allowRead))
	for _, list := range [][]entry{l.allowWrite, l.denyWrite, l.denyRead, l.allowRead} {
		for i := range list {
			e := &list[i]
			l.at[e.path] = append(l.at[e.path], e)
			if real, _ := m.links.deepest(e.path); real != e.path {
				l.at[real] = append(l.at[real], e)
			}
		}
	}
	for i := range l.inert {
		e := &entry{Touch: l.inert[i], path: m.clean(trimAll(l.inert[i].Entry.Text))}
		l.at[e.path] = append(l.at[e.path], e)
	}
	return l
}

// readList splits a list into the paths, which it returns, and the patterns,
// which go to l.
func (m *Model) readList(l *lists, rule string, values []origin.Value) []entry {
	reads := rule == DenyRead || rule == AllowRead
	out := make([]entry, 0, len(values))
	for _, v := range values {
		e := entry{Touch: Touch{Rule: rule, Entry: v}}
		stripped := trimAll(v.Text)
		if !hasWildcard(stripped) {
			if e.path = m.clean(stripped); e.path != "" {
				out = append(out, e)
			}
			continue
		}
		e.path = m.anchor(stripped)
		ends, whole := m.spelledOut(e.path, rule == AllowWrite || rule == AllowRead)
		if whole {
			name := e
			name.path = path.Clean(e.path)
			out = append(out, name)
			if !reads && m.goos == "linux" {
				continue
			}
		}
		switch {
		case m.goos == "linux" && !reads:
			e.Inert = "srt ignores a pattern in " + rule + " on linux"
		case m.goos == "linux" && (path.Dir(staticPrefix(e.path)+"x") == "/"):
			e.Inert = "srt ignores a pattern with no directory before its first wildcard on linux"
		default:
			e.match = m.newPattern(e.path, ends, stripped != v.Text, reads)
			l.patterns = append(l.patterns, e)
			continue
		}
		l.inert = append(l.inert, e.Touch)
	}
	return out
}

// grantable drops from the write list what srt skips on Linux: a path that is
// missing, or that is reached through a link.
func (m *Model) grantable(l *lists, list []entry) []entry {
	out := list[:0:0]
	for _, e := range list {
		if strictlyUnder(e.path, "/dev") {
			continue
		}
		switch at := m.links.at(e.path); {
		case at.err != nil:
			e.Inert = "it does not exist, so srt grants nothing"
		case at.real != e.path:
			e.Inert = "it is reached through a link to " + at.real + ", and srt grants no write through a link"
		default:
			out = append(out, e)
			continue
		}
		if e.Entry.Origin.Source != "srt" {
			l.inert = append(l.inert, e.Touch)
		}
	}
	return out
}

// defaultWrites are the write paths that srt adds: its temporary directory, the
// devices of the standard streams, and two directories in home that no read
// deny covers, or that an allowRead entry below that deny shows again.
func (m *Model) defaultWrites(l *lists) []entry {
	out := []entry{own(AllowWrite, "/tmp/claude")}
	if m.goos == "darwin" {
		for _, p := range []string{
			"/dev/stdout", "/dev/stderr", "/dev/null", "/dev/tty", "/dev/dtracehelper", "/dev/autofs_nowait",
			"/private/tmp/claude",
		} {
			out = append(out, own(AllowWrite, p))
		}
	}
	for _, name := range []string{".npm/_logs", ".claude/debug"} {
		p := path.Join(m.home, name)
		if !m.hiddenAsSpelled(l, p) {
			out = append(out, own(AllowWrite, p))
		}
	}
	return out
}

// hiddenAsSpelled tells whether a read deny covers p, going by the words of the
// entries alone, and no allowRead entry below that deny covers it too.
func (m *Model) hiddenAsSpelled(l *lists, p string) bool {
	var shows []entry
	for _, a := range l.allowRead {
		if atOrUnder(p, a.path) {
			shows = append(shows, a)
		}
	}
	shown := func(covers func(string) bool) bool {
		for _, a := range shows {
			if covers(a.path) {
				return true
			}
		}
		return false
	}
	for _, d := range l.denyRead {
		covers := func(q string) bool { return atOrUnder(q, d.path) }
		if covers(p) && !shown(covers) {
			return true
		}
	}
	for _, d := range l.patterns {
		if d.Rule != DenyRead {
			continue
		}
		covers := func(q string) bool {
			for dir := range upward(q) {
				if d.match.names(dir) {
					return true
				}
			}
			return false
		}
		if covers(p) && !shown(covers) {
			return true
		}
	}
	return false
}

// The files and directories that srt write-denies in the directory where a
// session starts.
var (
	cwdFiles = []string{
		".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".ripgreprc", ".mcp.json",
	}
	cwdDirs = []string{".vscode", ".idea", ".claude/commands", ".claude/agents"}
)

// GuardedNames are what srt write-denies in the directory where a session
// starts.
func GuardedNames() []string {
	return slices.Concat(cwdFiles, cwdDirs, []string{".git/hooks", ".git/config"})
}

// GuardedByName tells whether srt write-denies what p names by its name alone,
// in the directory where a session starts and in those directly below.
func GuardedByName(p string) bool {
	for _, name := range GuardedNames() {
		if strings.HasSuffix(trimAll(p), "/"+name) {
			return true
		}
	}
	return false
}

// cwdDenies are the write denies that srt adds for the directory where a
// session starts. Below it srt searches for more to a depth, which is
// not modelled.
func (m *Model) cwdDenies() []entry {
	names := slices.Concat(cwdFiles, cwdDirs)
	switch at := m.links.at(path.Join(m.cwd, ".git")); {
	case m.goos == "darwin":
		names = append(names, ".git/hooks", ".git/config")
	case at.err != nil:
	case at.dir:
		names = append(names, ".git/hooks", ".git/config")
	default:
		names = append(names, ".git")
	}
	out := make([]entry, len(names))
	for i, name := range names {
		out[i] = own(DenyWrite, path.Join(m.cwd, name))
	}
	return out
}

// clean is text as an absolute clean path, or "" where it is relative and the
// directory where the session starts is not known.
func (m *Model) clean(text string) string {
	switch {
	case text == "~" || strings.HasPrefix(text, "~/"):
		text = m.home + text[1:]
	case !path.IsAbs(text) && m.cwd == "":
		return ""
	case !path.IsAbs(text):
		text = m.cwd + "/" + text
	}
	p := path.Clean(text)
	if m.goos == "darwin" {
		if real := m.links.canonical(p); !m.outside(p, real) {
			return real
		}
	}
	return p
}

// outside tells whether srt takes real, what p resolves to, for a place that
// the entry did not mean. On Linux that is every other place.
func (m *Model) outside(p, real string) bool {
	private := ""
	if strings.HasPrefix(p, "/tmp/") || strings.HasPrefix(p, "/var/") {
		private = "/private" + p
	}
	return real != p && !(real == private && private != "") &&
		!strictlyUnder(real, p) && !(private != "" && strictlyUnder(real, private))
}

// anchor is the pattern text with its directory before the first wildcard
// made absolute.
func (m *Model) anchor(text string) string {
	prefix := staticPrefix(text)
	dir := prefix[:strings.LastIndexByte(prefix, '/')+1]
	abs := m.clean(dir + ".")
	if abs == "/" {
		abs = ""
	}
	return abs + "/" + text[len(dir):]
}

// spelledOut tells how far a pattern, made absolute, is also the name of something
// there: where the components with a wildcard that exist as they are spelled
// end, and whether all do. For an
// allow no link may stand among them, nor after them.
func (m *Model) spelledOut(p string, allow bool) (ends []int, whole bool) {
	linked := false
	end := 0
	for end < len(p) {
		start := end + 1
		if n := strings.IndexByte(p[start:], '/'); n >= 0 {
			end = start + n
		} else {
			end = len(p)
		}
		wild := hasWildcard(p[start:end])
		if !wild && len(ends) == 0 {
			continue
		}
		info, err := os.Lstat(p[:end])
		linked = linked || err == nil && info.Mode()&os.ModeSymlink != 0
		switch {
		case err != nil && hasWildcard(p[start:]), allow && linked && hasWildcard(p[start:]):
			return ends, false
		case err != nil:
			return ends, !allow || !linked
		case wild:
			ends = append(ends, end)
		}
	}
	return ends, !allow || !linked
}

// pattern is an entry with wildcards.
type pattern struct {
	// globs are the readings of it, of which one must match.
	globs []glob
	// tail is set where it ended in "/**".
	tail bool
}

// glob is what must follow a path that is a name. It is compiled when it is
// first needed, which for most is never.
type glob struct {
	base, rest string
	dir, below *regexp.Regexp
}

// newPattern reads p, which had "/**" at its end where tail. Up to each of ends
// it is also a name, below which the rest is a pattern. A pattern of a read list
// counts with that name resolved too.
func (m *Model) newPattern(p string, ends []int, tail, resolved bool) *pattern {
	out := &pattern{tail: tail}
	base := path.Dir(staticPrefix(p) + "x")
	for _, end := range append([]int{len(base)}, ends...) {
		base, rest := p[:end], p[end:]
		if !hasWildcard(rest) {
			continue
		}
		out.globs = append(out.globs, glob{base: base, rest: rest})
		if real := m.links.canonical(base); resolved && real != base && real != "/" {
			out.globs = append(out.globs, glob{base: real, rest: rest})
		}
	}
	return out
}

// names tells whether the pattern, without the "/**" at its end, matches q.
func (p *pattern) names(q string) bool {
	for i := range p.globs {
		g := &p.globs[i]
		if !strings.HasPrefix(q, g.base) {
			continue
		}
		if g.dir == nil {
			g.dir = globRegexp(g.base, g.rest)
		}
		if g.dir.MatchString(q) {
			return true
		}
	}
	return false
}

// exactly tells whether the whole pattern matches q.
func (p *pattern) exactly(q string) bool {
	if !p.tail {
		return p.names(q)
	}
	for i := range p.globs {
		g := &p.globs[i]
		if !strings.HasPrefix(q, g.base) {
			continue
		}
		if g.below == nil {
			g.below = globRegexp(g.base, g.rest+"/**")
		}
		if g.below.MatchString(q) {
			return true
		}
	}
	return false
}

// trimAll drops a trailing "/**", which srt drops too.
func trimAll(text string) string {
	if t, ok := strings.CutSuffix(text, "/**"); ok {
		if t == "" {
			return "/"
		}
		return t
	}
	return text
}

func hasWildcard(text string) bool { return strings.ContainsAny(text, "*?[]") }

// staticPrefix is text before its first wildcard.
func staticPrefix(text string) string {
	if i := strings.IndexAny(text, "*?[]"); i >= 0 {
		return text[:i]
	}
	return text
}

// globRegexp compiles a pattern below base, which is a name, by srt's syntax: "*" and "?" stay within a
// name, "**" does not, "[abc]" is a set that nothing negates, and brackets that
// spell no set stand for themselves.
func globRegexp(base, p string) *regexp.Regexp {
	p = strings.ToValidUTF8(p, "\uFFFD")
	var b strings.Builder
	b.WriteString(`(?s)^`)
	b.WriteString(regexp.QuoteMeta(strings.ToValidUTF8(base, "\uFFFD")))
	textUntil := 0 // brackets before it are known to spell no set
	for i := 0; i < len(p); {
		switch p[i] {
		case '?':
			b.WriteString(`[^/]`)
			i++
		case '*':
			end := i
			for end < len(p) && p[end] == '*' {
				end++
			}
			stars := end - i
			slash := stars >= 2 && end < len(p) && p[end] == '/'
			if slash {
				stars -= 2
			}
			switch {
			case stars >= 2:
				b.WriteString(`.*`)
			case stars == 1:
				b.WriteString(`[^/]*`)
			}
			if slash {
				b.WriteString(`(.*/)?`)
				end++
			}
			i = end
		case '[':
			n := strings.IndexByte(p[i+1:], ']')
			if i < textUntil || n <= 0 || !isSet(p[i+1:i+1+n]) {
				textUntil = max(textUntil, i+n+2)
				b.WriteString(`\[`)
				i++
				break
			}
			b.WriteString(setRegexp(p[i+1 : i+1+n]))
			i += n + 2
		default:
			end := i + 1
			for end < len(p) && !strings.ContainsRune("?*[", rune(p[end])) {
				end++
			}
			b.WriteString(regexp.QuoteMeta(p[i:end]))
			i = end
		}
	}
	b.WriteString(`$`)
	return regexp.MustCompile(b.String())
}

// isSet tells whether members spells a set: no range in it runs backwards.
func isSet(members string) bool {
	rs := []rune(members)
	for i := 0; i < len(rs); i++ {
		if i+2 < len(rs) && rs[i+1] == '-' {
			if rs[i+2] < rs[i] {
				return false
			}
			i += 2
		}
	}
	return true
}

func setRegexp(members string) string {
	rs := []rune(members)
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; i < len(rs); i++ {
		b.WriteString(setRune(rs[i]))
		if i+2 < len(rs) && rs[i+1] == '-' {
			b.WriteByte('-')
			b.WriteString(setRune(rs[i+2]))
			i += 2
		}
	}
	b.WriteByte(']')
	return b.String()
}

func setRune(r rune) string {
	if strings.ContainsRune(`\^-[]&~|`, r) {
		return `\` + string(r)
	}
	return string(r)
}
