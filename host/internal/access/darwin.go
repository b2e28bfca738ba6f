package access

import (
	"path"
	"slices"
	"strings"
)

// seatbelt is a policy as srt's profile for macOS states it: of the rules that
// match a path the last decides. It is about real paths alone.
type seatbelt struct {
	write, denyWrite    rules
	denyRead, allowRead rules
	// The read denies that stand after the allowRead entries: the paths below
	// one of them, and the patterns, each less what it covers of them.
	latePaths    rules
	latePatterns []lateDeny
	// aboveDeny are the directories above a write deny, which must not be made.
	aboveDeny map[string]*entry
	cwd       string
}

// rules are the entries of one list.
type rules struct {
	at       map[string]*entry
	patterns []*entry
}

// lateDeny is a read deny that no allowRead entry but those of except lifts.
type lateDeny struct {
	deny   *entry
	except []*entry
}

func (r *rules) add(e *entry, p string) {
	if r.at == nil {
		r.at = map[string]*entry{}
	}
	if e.match != nil {
		r.patterns = append(r.patterns, e)
	} else if r.at[p] == nil {
		r.at[p] = e
	}
}

// over is an entry that covers p, or nil. A pattern of a deny covers what lies
// below what it matches; that of an allow does not.
func (r *rules) over(p string, deny bool) *entry {
	for q := range upward(p) {
		if e := r.at[q]; e != nil {
			return e
		}
	}
	for _, e := range r.patterns {
		if e.covers(p, deny) {
			return e
		}
	}
	return nil
}

// covers tells whether a pattern covers p.
func (e *entry) covers(p string, deny bool) bool {
	if !deny {
		return e.match.names(p)
	}
	for q := range upward(p) {
		if e.match.names(q) {
			return true
		}
	}
	return false
}

func (m *Model) newSeatbelt() *seatbelt {
	l, s := m.lists, &seatbelt{aboveDeny: map[string]*entry{}, cwd: m.cwd}
	both := func(r *rules, list []entry, spelling func(string) string) {
		for i := range list {
			e := &list[i]
			r.add(e, e.path)
			if real := spelling(e.path); real != "/" && !atOrUnder(real, "/dev") {
				r.add(e, real)
			}
		}
	}
	asWritten := func(p string) string { return p }
	both(&s.write, l.allowWrite, asWritten)
	both(&s.denyWrite, l.denyWrite, asWritten)
	both(&s.denyRead, l.denyRead, m.links.canonical)
	both(&s.allowRead, l.allowRead, m.links.name)
	for i := range l.patterns {
		e := &l.patterns[i]
		switch e.Rule {
		case AllowWrite:
			s.write.add(e, "")
		case DenyWrite:
			s.denyWrite.add(e, "")
		case DenyRead:
			s.denyRead.add(e, "")
		case AllowRead:
			s.allowRead.add(e, "")
		}
	}
	for p, e := range s.denyWrite.at {
		for q := range above(p) {
			if s.aboveDeny[q] != nil {
				break
			}
			s.aboveDeny[q] = e
		}
	}
	for _, e := range s.denyWrite.patterns {
		for q := range upward(path.Dir(staticPrefix(e.path) + "x")) {
			s.aboveDeny[q] = e
		}
	}
	for p, e := range s.denyRead.at {
		for q := range above(p) {
			if s.allowRead.at[q] != nil {
				s.latePaths.add(e, p)
				break
			}
		}
	}
	for _, e := range s.denyRead.patterns {
		d := lateDeny{deny: e}
		for p, a := range s.allowRead.at {
			if e.covers(p, true) {
				d.except = append(d.except, &entry{Touch: a.Touch, path: p})
			}
		}
		for _, a := range s.allowRead.patterns {
			if e.covers(sample(a.path), true) {
				d.except = append(d.except, a)
			}
		}
		s.latePatterns = append(s.latePatterns, d)
	}
	return s
}

// sample is a path that a pattern matches, as srt makes one to compare two
// patterns.
func sample(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '*', '?':
			if !strings.HasSuffix(b.String(), "x") {
				b.WriteByte('x')
			}
		case '[':
			if n := strings.IndexByte(p[i:], ']'); n > 0 {
				i += n
				b.WriteByte('x')
				continue
			}
			b.WriteByte('[')
		default:
			b.WriteByte(p[i])
		}
	}
	return b.String()
}

func (m *Model) askDarwin(target string, write bool) Verdict {
	if m.seat == nil {
		m.seat = m.newSeatbelt()
	}
	real, there := m.links.deepest(target)
	v := m.seat.read(real, m.policy.AllowPty)
	if write {
		v = m.seat.writes(real, there)
	}
	if real != target && v.Rule != Default {
		v.Reason = "it leads to " + real + ", where " + v.Reason
	}
	if v.Allowed && !there {
		v.Reason += "; nothing is there yet"
	}
	m.touch(&v, m.lists.touching(target, real), write, target, real)
	return v
}

// touching are the patterns that cover one of the paths.
func (l *lists) touching(paths ...string) []entry {
	var out []entry
	for _, e := range l.patterns {
		if slices.ContainsFunc(paths, func(p string) bool { return e.covers(p, true) }) {
			out = append(out, e)
		}
	}
	return out
}

func (s *seatbelt) read(p string, pty bool) Verdict {
	if pty && (p == "/dev/ptmx" || strings.HasPrefix(p, "/dev/ttys")) {
		return Verdict{Allowed: true, Rule: Default, Reason: "the session may use terminals"}
	}
	deny := s.denyRead.over(p, true)
	if deny == nil {
		return Verdict{Allowed: true, Rule: Default, Reason: "nothing hides it"}
	}
	if p == "/" {
		return Verdict{Allowed: true, Rule: Default, Reason: "the root itself can be listed"}
	}
	late := s.latePaths.over(p, true)
	for _, d := range s.latePatterns {
		if d.covers(p) {
			late = d.deny
		}
	}
	if late != nil {
		return Verdict{Rule: DenyRead, Entry: late.Entry, Reason: "it is read-denied, also below what is shown again"}
	}
	if allow := s.allowRead.over(p, false); allow != nil {
		return Verdict{Allowed: true, Rule: AllowRead, Entry: allow.Entry, Reason: "it is shown again where it would be hidden"}
	}
	return Verdict{Rule: DenyRead, Entry: deny.Entry, Reason: "it is read-denied"}
}

func (d lateDeny) covers(p string) bool {
	return d.deny.covers(p, true) && !slices.ContainsFunc(d.except, func(e *entry) bool {
		if e.match == nil {
			return atOrUnder(p, e.path)
		}
		return e.covers(p, false)
	})
}

func (s *seatbelt) writes(p string, there bool) Verdict {
	if deny := s.denyWrite.over(p, true); deny != nil {
		return Verdict{Rule: DenyWrite, Entry: deny.Entry, Reason: "it is write-denied"}
	}
	if name := cwdName(s.cwd, p); name != "" {
		return Verdict{Rule: DenyWrite, Entry: own(DenyWrite, name).Entry, Reason: "srt write-denies the name below the directory where a session starts"}
	}
	if deny := s.aboveDeny[p]; deny != nil && !there {
		return Verdict{Rule: DenyWrite, Entry: deny.Entry, Reason: "it would be a directory above what is write-denied"}
	}
	if allow := s.write.over(p, false); allow != nil {
		return Verdict{Allowed: true, Rule: AllowWrite, Entry: allow.Entry, Reason: "it is a write path"}
	}
	return Verdict{Rule: Default, Reason: "no write path covers it"}
}

// cwdName is the name in p, a path below dir, that srt write-denies at every
// depth below the directory where a session starts, or "".
func cwdName(dir, p string) string {
	if dir == "" || !strictlyUnder(p, dir) {
		return ""
	}
	rest := p[len(dir):]
	for _, name := range append(slices.Clone(cwdFiles), ".git/config") {
		if strings.Contains(rest+"/", "/"+name+"/") {
			return name
		}
	}
	for _, name := range append(slices.Clone(cwdDirs), ".git/hooks") { // but what lies in them
		if strings.Contains(rest, "/"+name+"/") {
			return name
		}
	}
	return ""
}
