package access

import (
	"cmp"
	"os"
	"path"
	"slices"
	"sort"
	"strings"
)

// kind is what a mount shows.
type kind uint8

const (
	readOnly kind = iota // a place of the host, read-only
	writable             // a place of the host
	empty                // an empty directory that is lost with the session
	masked               // nothing, read-only
)

// mount is one step of building the session's view, as srt asks it of
// bubblewrap.
type mount struct {
	kind kind
	dest string
	// source is the place of the host that is shown, dest for most.
	source string
	// by is the entry of the read rules or the write path that asked for it,
	// deny the write deny that did. The root has neither.
	by, deny *entry
}

// table is the session's view: mounts in order, of which the last at or above a
// path decides.
type table struct {
	mounts []mount
	last   map[string]int    // by destination, the last mount
	reads  map[string]int    // likewise, without those of write denies alone
	hides  map[string]int    // by destination, the last unit, from 1
	write  map[string]*entry // what is granted, by path
	// fault is why bubblewrap would not start, empty where it would.
	fault   string
	faultBy *entry
}

func (t *table) add(m mount) {
	t.mounts = append(t.mounts, m)
	t.last[m.dest] = len(t.mounts) - 1
	if m.by != nil || m.deny == nil {
		t.reads[m.dest] = len(t.mounts) - 1
	}
}

// over is the mount that decides about p, a path in the session.
func (t *table) over(p string) *mount { return t.pick(t.last, p) }

// reading is the mount that made p readable, or not, below the write denies.
func (t *table) reading(p string) *mount { return t.pick(t.reads, p) }

func (t *table) pick(by map[string]int, p string) *mount {
	best := 0
	for q := range upward(p) {
		if i, ok := by[q]; ok && i > best {
			best = i
		}
	}
	return &t.mounts[best]
}

// host is the place of the host that p, below m, shows.
func (m *mount) host(p string) string {
	return path.Join(m.source, p[len(m.dest):])
}

// unit is an empty directory over a read deny, with what is shown in it again.
type unit struct {
	by            *entry
	landing       string
	writes, reads []mount
}

// plan is the work of building a table.
type plan struct {
	*table
	links *links

	writes     []string        // what is granted, sorted
	aboveWrite map[string]bool // the directories above one

	shown  []shown         // what allowRead names, sorted by name
	lifted map[string]bool // the names

	readDenies []readDeny
	landings   map[string]bool // where one lands, to its being a directory
	overDeny   map[string]bool // the directories above a landing

	units  []unit
	wrote  map[string]int // by write path, the last unit that showed it again
	readIt map[string]int // by read path, likewise
	masks  map[string]*entry
	masked []string
}

// shown is an allowRead entry.
type shown struct {
	by     *entry
	order  int
	name   string // where its name lives
	source string // what it resolves to
	ok     bool   // whether it does
}

// readDeny is a place that a read deny hides.
type readDeny struct {
	by      *entry
	landing string
	dir     bool
	blind   bool // it stands in for a place that could not be looked at
	depth   int
}

// writeDeny is a mount that a write deny asks for.
type writeDeny struct {
	mount
	raw         string // the path as written
	placeholder bool
}

// table builds the view, with the entries that patterns matched.
func (m *Model) table(extra []entry) *table {
	l := m.lists
	p := &plan{
		table:      &table{last: map[string]int{}, reads: map[string]int{}, hides: map[string]int{}, write: map[string]*entry{}},
		links:      m.links,
		aboveWrite: map[string]bool{}, lifted: map[string]bool{}, landings: map[string]bool{}, overDeny: map[string]bool{},
		wrote: map[string]int{}, readIt: map[string]int{}, masks: map[string]*entry{},
	}
	denyRead, allowRead := slices.Clip(l.denyRead), slices.Clip(l.allowRead)
	for _, e := range extra {
		if e.Rule == DenyRead {
			denyRead = append(denyRead, e)
		} else {
			allowRead = append(allowRead, e)
		}
	}
	p.add(mount{kind: readOnly, dest: "/", source: "/"})
	p.grant(l.allowWrite)
	p.planShow(allowRead)
	p.planHide(denyRead)
	denies := p.planDeny(l.denyWrite)
	p.hide()
	p.deny(denies)
	return p.table
}

func (p *plan) grant(list []entry) {
	for i := range list {
		e := &list[i]
		p.add(mount{kind: writable, dest: e.path, source: e.path, by: e})
		if p.write[e.path] != nil {
			continue
		}
		p.write[e.path] = e
		p.writes = append(p.writes, e.path)
		for q := range above(e.path) {
			if p.aboveWrite[q] {
				break
			}
			p.aboveWrite[q] = true
		}
	}
	slices.Sort(p.writes)
}

// grants is the write path at or above q, or nil.
func (t *table) grants(q string) *entry {
	for dir := range upward(q) {
		if e := t.write[dir]; e != nil {
			return e
		}
	}
	return nil
}

// planDeny plans the mounts of write denies, which go above all others.
func (p *plan) planDeny(list []entry) []writeDeny {
	type deny struct {
		by        *entry
		real      string
		there     bool
		directory bool
	}
	var denies []deny
	seen := map[string]bool{}
	recorded := map[string]string{} // directories that are denied and there, to the path as written
	for i := range list {
		e := &list[i]
		if strictlyUnder(e.path, "/dev") {
			continue
		}
		real, there := p.links.deepest(e.path)
		if seen[real] || strictlyUnder(real, "/dev") {
			continue
		}
		seen[real] = true
		d := deny{by: e, real: real, there: there, directory: there && p.links.at(real).dir}
		denies = append(denies, d)
		if d.directory && (p.grants(real) != nil || p.aboveWrite[real]) {
			recorded[real] = e.path
		}
	}
	bare := func(w string) bool { // a write path that no recorded directory lies above
		for q := range above(w) {
			if _, ok := recorded[q]; ok {
				return false
			}
		}
		return true
	}

	var out []writeDeny
	decided := map[string]bool{}
	for _, d := range denies {
		if d.there {
			if p.grants(d.real) != nil || p.aboveWrite[d.real] {
				out = append(out, writeDeny{mount: mount{kind: readOnly, dest: d.real, source: d.real, deny: d.by}, raw: d.by.path})
			}
			continue
		}
		open := false
		for q := range upward(d.real) {
			if p.write[q] != nil && bare(q) {
				open = true
			}
			if decided[q] {
				open = false
				break
			}
		}
		if !open || p.covered(d.real, recorded) {
			continue
		}
		dest := p.firstMissing(d.real)
		if at := p.links.at(parent(dest)); at.err == nil && !at.dir {
			// Nothing can be made below a file for as long as it is there.
			dest = parent(dest)
			if seen[dest] {
				continue
			}
			decided[dest] = true
			out = append(out, writeDeny{mount: mount{kind: readOnly, dest: dest, source: dest, deny: d.by}, raw: d.by.path})
			continue
		}
		decided[dest] = true
		out = append(out, writeDeny{mount: mount{kind: masked, dest: dest, deny: d.by}, raw: d.by.path, placeholder: true})
	}
	return out
}

// firstMissing is the first component of q that is not there.
func (p *plan) firstMissing(q string) string {
	first := q
	for dir := range upward(q) {
		if p.links.exists(dir) {
			break
		}
		first = dir
	}
	return first
}

// covered tells whether a write deny that srt relies on lies above q, an absent
// path. Of several every one must be relied on.
func (p *plan) covered(q string, recorded map[string]string) bool {
	found := false
	for dir := range above(q) {
		raw, ok := recorded[dir]
		switch {
		case !ok:
		case dir == "/":
			found = found || p.tmpfsAbove(q) == ""
		case p.relied(dir, raw):
			found = true
		default:
			return false
		}
	}
	return found
}

// relied tells whether no read deny can take away the mount of a write deny at
// dir.
func (p *plan) relied(dir, raw string) bool {
	if p.tmpfsAbove(dir) != "" || p.tmpfsAbove(raw) != "" {
		return false
	}
	for _, w := range below(p.writes, dir, func(s string) string { return s }) {
		if w != dir && p.tmpfsAbove(w) != "" {
			return false
		}
	}
	return true
}

// tmpfsAbove is a directory at or above q that a read deny hides, or "".
func (p *plan) tmpfsAbove(q string) string {
	for dir := range upward(q) {
		if p.landings[dir] {
			return dir
		}
	}
	return ""
}

func (p *plan) planShow(list []entry) {
	for i := range list {
		e := &list[i]
		at := p.links.at(e.path)
		s := shown{by: e, order: i, name: p.links.name(e.path), source: at.real, ok: at.err == nil}
		p.shown = append(p.shown, s)
		p.lifted[s.name] = true
	}
	slices.SortFunc(p.shown, func(a, b shown) int { return cmp.Or(strings.Compare(a.name, b.name), a.order-b.order) })
}

// planHide settles where each read deny lands, shallow places first.
func (p *plan) planHide(list []entry) {
	for i := range list {
		e := &list[i]
		for _, q := range p.expandRoot(e.path) {
			d := readDeny{by: e, depth: strings.Count(p.links.canonical(q), "/")}
			found := p.links.at(q)
			for found.err != nil && !absent(found.err) && q != "/" {
				q, d.blind = parent(q), true
				found = p.links.at(q)
			}
			if found.err != nil || q == "/" {
				continue
			}
			d.landing, d.dir = found.real, found.dir
			if d.landing == "/" { // a link to the root: what holds the link is hidden
				d.landing, d.dir, d.blind = p.links.canonical(parent(q)), true, true
			}
			if d.landing == "/" || !d.dir && p.lifted[d.landing] {
				continue
			}
			p.readDenies = append(p.readDenies, d)
			p.landings[d.landing] = d.dir
			for q := range above(d.landing) {
				if p.overDeny[q] {
					break
				}
				p.overDeny[q] = true
			}
		}
	}
	slices.SortStableFunc(p.readDenies, func(a, b readDeny) int { return a.depth - b.depth })
}

// hide adds the empty directories and masks of read denies, and what is shown
// in them again.
func (p *plan) hide() {
	for _, d := range p.readDenies {
		switch {
		case p.hidden(d.landing, true):
		case d.dir:
			p.units = append(p.units, unit{by: d.by, landing: d.landing})
			p.add(mount{kind: empty, dest: d.landing, by: d.by})
			p.hides[d.landing] = len(p.units)
			if !d.blind {
				p.restore(&p.units[len(p.units)-1])
			}
		case p.masks[d.landing] == nil:
			p.add(mount{kind: masked, dest: d.landing, by: d.by})
			p.masks[d.landing] = d.by
			p.masked = append(p.masked, d.landing)
		}
	}
}

// expandRoot is what a read deny of the root stands for, or q alone.
func (p *plan) expandRoot(q string) []string {
	if q != "/" {
		return []string{q}
	}
	children, err := os.ReadDir("/")
	if err != nil {
		return nil
	}
	var out []string
next:
	for _, c := range children {
		child := "/" + c.Name()
		if child == "/proc" || child == "/dev" || child == "/sys" {
			continue
		}
		for dir := range upward(p.links.canonical(child)) {
			if p.lifted[dir] {
				continue next
			}
		}
		out = append(out, child)
	}
	return out
}

// restore shows again, in a directory that was just emptied, first the write
// paths below it and then the read paths. So a read path above a write path
// makes that read-only.
func (p *plan) restore(u *unit) {
	n := len(p.units)
	for _, w := range below(p.writes, u.landing, func(s string) string { return s }) {
		mnt := mount{kind: writable, dest: w, source: w, by: p.write[w]}
		p.add(mnt)
		p.wrote[w] = n
		u.writes = append(u.writes, mnt)
	}
	restored := func(q string) bool {
		for dir := range upward(q) {
			if p.wrote[dir] == n {
				return true
			}
		}
		return false
	}
	reads := below(p.shown, u.landing, func(s shown) string { return s.name })
	slices.SortFunc(reads, func(a, b shown) int { return a.order - b.order })
	for _, s := range reads {
		if !s.ok || !atOrUnder(s.source, u.landing) || restored(s.name) {
			continue
		}
		if s.source != s.name && p.denied(s.source, u.landing) {
			continue
		}
		dest, ok := p.lands(s.name)
		if !ok {
			p.fail(s.by, "bubblewrap cannot mount "+s.source+" on "+s.name+", a link in a directory that it shows already")
			continue
		}
		mnt := mount{kind: readOnly, dest: dest, source: s.source, by: s.by}
		p.add(mnt)
		p.readIt[dest] = n
		u.reads = append(u.reads, mnt)
	}
}

// lands is where bubblewrap mounts what goes to the name q. It follows a link
// that is there, but an absolute one leads it out of the tree that it builds.
func (p *plan) lands(q string) (string, bool) {
	for range maxLinks {
		over := p.over(q)
		if over.kind != readOnly && over.kind != writable || over.dest == q && over.source != q {
			return q, true
		}
		target, err := os.Readlink(over.host(q))
		if err != nil {
			return q, p.links.exists(over.host(q))
		}
		if path.IsAbs(target) {
			return "", false
		}
		q = path.Join(parent(q), target)
	}
	return "", false
}

// fail notes the first reason why bubblewrap does not start.
func (t *table) fail(by *entry, reason string) {
	if t.fault == "" {
		t.fault, t.faultBy = reason, by
	}
}

// denied tells whether a read deny lies at, below or above source, those at or
// above landing aside.
func (p *plan) denied(source, landing string) bool {
	if p.overDeny[source] {
		return true
	}
	for q := range upward(source) {
		if q == landing {
			break
		}
		if _, ok := p.landings[q]; ok {
			return true
		}
	}
	return false
}

// below is the part of a list sorted by name that lies at or below dir.
func below[T any](list []T, dir string, name func(T) string) []T {
	// All names that begin with "dir/" stand together; "dir-x" stands before
	// them, "dir" itself before that.
	at := func(key string) int {
		return sort.Search(len(list), func(i int) bool { return name(list[i]) >= key })
	}
	var out []T
	for i := at(dir); i < len(list) && name(list[i]) == dir; i++ {
		out = append(out, list[i])
	}
	return append(out, list[at(dir+"/"):at(dir+"0")]...) // "0" follows "/"
}

// hidden tells whether q lies in an emptied directory and nothing shows it
// again: no write path, and no read path where reads count.
func (p *plan) hidden(q string, reads bool) bool {
	hides, shows := 0, 0
	for dir := range upward(q) {
		hides = max(hides, p.hides[dir])
		shows = max(shows, p.wrote[dir])
		if reads {
			shows = max(shows, p.readIt[dir])
		}
	}
	return hides > shows
}

// deny adds the mounts of write denies, and again what they uncover.
func (p *plan) deny(denies []writeDeny) {
	added := map[string]*entry{}
	made := map[string]bool{}
	for _, d := range denies {
		if p.masks[d.dest] != nil {
			continue
		}
		if p.hidden(d.dest, false) {
			// What it denies is hidden, but for the write paths below it.
			for _, u := range p.units {
				for _, w := range u.writes {
					if !atOrUnder(w.dest, d.dest) && !atOrUnder(w.dest, d.raw) || p.masks[w.dest] != nil || made[w.dest] {
						continue
					}
					made[w.dest] = true
					w.kind, w.deny = readOnly, d.deny
					p.add(w)
					added[w.dest] = d.deny
				}
			}
			continue
		}
		if d.placeholder {
			if over := p.over(parent(d.dest)); over.kind == readOnly {
				p.fail(d.deny, "bubblewrap cannot make "+d.dest+" in a directory that is read-only there")
			}
		}
		p.add(d.mount)
		added[d.dest] = d.deny
		added[d.raw] = d.deny
	}
	for _, u := range p.units {
		deny := denyAbove(added, parent(u.landing))
		if deny == nil {
			continue
		}
		p.add(mount{kind: empty, dest: u.landing, by: u.by})
		for _, w := range u.writes {
			w.kind, w.deny = readOnly, deny
			p.add(w)
		}
		for _, r := range u.reads {
			p.add(r)
		}
	}
	for _, q := range p.masked {
		if denyAbove(added, q) != nil {
			p.add(mount{kind: masked, dest: q, by: p.masks[q]})
		}
	}
}

// denyAbove is the entry of a write deny at or above q, or nil.
func denyAbove(added map[string]*entry, q string) *entry {
	for dir := range upward(q) {
		if e := added[dir]; e != nil {
			return e
		}
	}
	return nil
}
