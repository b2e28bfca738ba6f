package access

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// maxLinks is how many links the kernel follows on the way to one path.
const maxLinks = 40

// links resolves paths on the host and remembers what it found.
type links struct {
	// assume takes every missing name for a directory.
	assume bool
	seen   map[string]place // by path, its directory resolved
}

// place is what is at a path.
type place struct {
	real string // with every link on the way resolved
	dir  bool
	link string // where the path itself is a link, what that holds
	err  error  // why nothing is there
}

func newLinks(assume bool) *links {
	return &links{assume: assume, seen: map[string]place{"/": {real: "/", dir: true}}}
}

// at resolves p, a clean absolute path.
func (l *links) at(p string) place { return l.resolve(p, maxLinks) }

// exists tells whether something is at p, links followed.
func (l *links) exists(p string) bool { return l.at(p).err == nil }

// canonical is p resolved, or p itself where it cannot be.
func (l *links) canonical(p string) string {
	if at := l.at(p); at.err == nil {
		return at.real
	}
	return p
}

// name is where the name p lives: its directory resolved, its last component
// as written.
func (l *links) name(p string) string {
	dir := parent(p)
	if real := l.canonical(dir); real != dir {
		return path.Join(real, path.Base(p))
	}
	return p
}

// deepest is p with the part of it that exists resolved, and whether all of it
// exists. A dangling link is followed to the first name that is not there.
func (l *links) deepest(p string) (string, bool) {
	for range maxLinks {
		at := l.at(p)
		if at.err == nil {
			return at.real, true
		}
		first := p
		for !l.exists(parent(first)) {
			first = parent(first)
		}
		dir := l.at(parent(first)).real
		rest := p[len(first):]
		switch target := l.at(first).link; {
		case target == "" && dir == parent(first):
			return p, false
		case target == "":
			return path.Join(dir, path.Base(first)+rest), false
		case path.IsAbs(target):
			p = path.Join(target, rest)
		default:
			p = path.Join(dir, target, rest)
		}
	}
	return p, false
}

func (l *links) resolve(p string, budget int) place {
	if at, ok := l.seen[p]; ok && (at.real == p || at.link != "") {
		return at
	}
	dir := parent(p)
	up := l.resolve(dir, budget)
	switch {
	case up.err != nil:
		return place{err: up.err}
	case up.real == dir:
		return l.look(p, dir, budget)
	case up.real == "/":
		return l.look(p[len(dir):], "/", budget)
	default:
		return l.look(up.real+"/"+path.Base(p), up.real, budget)
	}
}

// look resolves p, a name in dir, which is resolved.
func (l *links) look(p, dir string, budget int) place {
	if at, ok := l.seen[p]; ok {
		return at
	}
	at := l.lstat(p, dir, budget)
	l.seen[p] = at
	return at
}

func (l *links) lstat(p, dir string, budget int) place {
	info, err := os.Lstat(p)
	switch {
	case err != nil && l.assume && errors.Is(err, fs.ErrNotExist):
		return place{real: p, dir: true}
	case err != nil:
		return place{err: err}
	case info.Mode()&fs.ModeSymlink == 0:
		return place{real: p, dir: info.IsDir()}
	}
	target, err := os.Readlink(p)
	if err != nil {
		return place{err: err}
	}
	at := place{real: dir, dir: true}
	if path.IsAbs(target) {
		at.real = "/"
	}
	for name := range strings.SplitSeq(target, "/") {
		switch {
		case name == "" || name == ".":
		case name == "..":
			at = place{real: parent(at.real), dir: true}
		case budget == 0:
			at = place{err: syscall.ELOOP}
		default:
			at = l.look(path.Join(at.real, name), at.real, budget-1)
		}
		if at.err != nil {
			break
		}
	}
	at.link = target
	return at
}

// absent tells whether err means that nothing is there, rather than that it
// could not be looked at.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENAMETOOLONG)
}

// parent is the directory of p, a clean absolute path.
func parent(p string) string {
	if i := strings.LastIndexByte(p, '/'); i > 0 {
		return p[:i]
	}
	return "/"
}
