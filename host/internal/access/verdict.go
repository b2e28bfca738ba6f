package access

import (
	"os"
	"path"
	"slices"
	"strings"
)

func (m *Model) askLinux(target string, write bool) Verdict {
	real, there := m.links.deepest(target)
	extra := m.matched(target, real)
	t := m.tableFor(extra)
	loc := m.walk(t, target)
	over := t.over(loc)
	v := m.judge(t, loc, over, write)
	if v.Allowed && over.source != "" && over.host(loc) != real {
		v.Allowed, v.Reason = false, "a link on the way leads elsewhere there, to "+loc
	}
	if loc != target && v.Rule != Default && t.fault == "" {
		v.Reason = "it leads to " + loc + ", where " + v.Reason
	}
	if v.Allowed && !there {
		v.Reason += "; nothing is there yet"
	}
	m.touch(&v, extra, write, target, loc, real)
	return v
}

// tableFor is the session's view with the entries that patterns matched.
func (m *Model) tableFor(extra []entry) *table {
	var key strings.Builder
	for _, e := range extra {
		key.WriteString(e.Rule + "\x00" + e.path + "\x00")
	}
	t, ok := m.tables[key.String()]
	if !ok {
		if m.tables == nil {
			m.tables = map[string]*table{}
		}
		t = m.table(extra)
		m.tables[key.String()] = t
	}
	return t
}

// matched are the entries with wildcards that name something at or above the
// paths. srt looks for what they name once, at its start, so it must be there.
// A place that a pattern reaches through a link in its middle is found only
// when it is asked about by that way.
func (m *Model) matched(paths ...string) []entry {
	var out []entry
	for _, e := range m.lists.patterns {
		for _, p := range paths {
			for q := range upward(p) {
				e.path = q
				if m.names(e, q) && !slices.ContainsFunc(out, func(o entry) bool { return o.Rule == e.Rule && o.path == q }) {
					out = append(out, e)
				}
			}
		}
	}
	return out
}

// names tells whether the pattern of e names q, which must be there.
func (m *Model) names(e entry, q string) bool {
	if e.match.exactly(q) {
		at := m.links.at(q)
		return at.err == nil || at.link != ""
	}
	if e.Rule != DenyRead || !e.match.names(q) {
		return false
	}
	entries, err := os.ReadDir(q)
	return m.links.assume || err == nil && len(entries) > 0
}

// walk follows p in the session as the kernel would there: a link counts where
// it can be seen.
func (m *Model) walk(t *table, p string) string {
	loc := "/"
	rest := strings.Split(p, "/")
	for budget := maxLinks; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			loc = parent(loc)
			continue
		}
		next := path.Join(loc, name)
		over := t.over(next)
		// A destination is what was mounted there, never a link.
		if (over.kind == readOnly || over.kind == writable) && (over.dest != next || over.source == next) && budget > 0 {
			if target, err := os.Readlink(over.host(next)); err == nil {
				budget--
				rest = append(strings.Split(target, "/"), rest...)
				if path.IsAbs(target) {
					loc = "/"
				}
				continue
			}
		}
		loc = next
	}
	return loc
}

// The devices that the session's own /dev has.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

func (m *Model) judge(t *table, loc string, over *mount, write bool) Verdict {
	by := func(allowed bool, e *entry, reason string) Verdict {
		if e == nil {
			return Verdict{Allowed: allowed, Rule: Default, Reason: reason}
		}
		return Verdict{Allowed: allowed, Rule: e.Rule, Entry: e.Entry, Reason: reason}
	}
	switch {
	case t.fault != "":
		return by(false, t.faultBy, "srt does not start: "+t.fault)
	case slices.Contains(devices, loc):
		return by(true, nil, "every session has it")
	case atOrUnder(loc, "/dev"):
		return by(false, nil, "the session has its own /dev")
	case atOrUnder(loc, "/proc"):
		return by(!write, nil, "the session has its own /proc")
	}
	switch over.kind {
	case masked:
		if over.deny != nil {
			return by(false, over.deny, "srt keeps a placeholder there so that nothing is made")
		}
		return by(false, over.by, "the file is hidden")
	case empty:
		if write {
			return by(false, over.by, "the place is hidden, and what the session writes there is lost")
		}
		return by(false, over.by, "the place is hidden")
	case writable:
		if write {
			return by(true, over.by, "it is a write path")
		}
	case readOnly:
		switch {
		case !write:
		case over.deny != nil:
			return by(false, over.deny, "it is write-denied")
		case over.by != nil && t.grants(loc) != nil:
			return by(false, over.by, "an allowRead entry above the write path "+t.grants(loc).path+" makes it read-only")
		default:
			return by(false, nil, "no write path covers it")
		}
	}
	r := t.reading(loc)
	for q := range upward(loc) {
		if t.hides[q] > 0 {
			return by(true, r.by, "it is shown again where a directory above it is hidden")
		}
	}
	return by(true, nil, "nothing hides it")
}

// touch adds the other entries at or above the paths to v. Write denies do not
// bear on reading.
func (m *Model) touch(v *Verdict, extra []entry, write bool, paths ...string) {
	var seen []*entry
	add := func(e *entry) {
		if slices.Contains(seen, e) || !write && e.Rule == DenyWrite {
			return
		}
		seen = append(seen, e)
		if e.Rule == v.Rule && e.Entry == v.Entry {
			return
		}
		v.Touches = append(v.Touches, e.Touch)
		if write && !v.Allowed && v.Rule == Default && e.Rule == AllowWrite && e.Inert != "" {
			v.Reason = "the allowWrite entry " + e.Entry.Text + " does nothing: " + e.Inert
		}
	}
	for _, p := range paths {
		for q := range upward(p) {
			for _, e := range m.lists.at[q] {
				add(e)
			}
		}
	}
	for i := range extra {
		add(&extra[i])
	}
}
