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
	seen   map[string]place
}

// place is what is at a path.
type place struct {
	real string // with every link on the way resolved
	dir  bool
	err  error
}

func newLinks(assume bool) *links {
	return &links{assume: assume, seen: map[string]place{}}
}

// at resolves p, a clean absolute path.
func (l *links) at(p string) place {
	return l.resolve(p, maxLinks)
}

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
	if p == "/" {
		return p
	}
	return path.Join(l.canonical(path.Dir(p)), path.Base(p))
}

// deepest is p with the part of it that exists resolved, and whether all of it
// exists. A dangling link is followed to the first name that is not there.
func (l *links) deepest(p string) (string, bool) {
	for range maxLinks {
		if at := l.at(p); at.err == nil {
			return at.real, true
		}
		dir, rest := path.Dir(p), path.Base(p)
		for !l.exists(dir) {
			dir, rest = path.Dir(dir), path.Join(path.Base(dir), rest)
		}
		dir = l.at(dir).real
		first, rest, _ := strings.Cut(rest, "/")
		target, err := os.Readlink(path.Join(dir, first))
		switch {
		case err != nil:
			return path.Join(dir, first, rest), false
		case path.IsAbs(target):
			p = path.Join(target, rest)
		default:
			p = path.Join(dir, target, rest)
		}
	}
	return p, false
}

func (l *links) resolve(p string, budget int) place {
	if p == "/" {
		return place{real: "/", dir: true}
	}
	parent := l.resolve(path.Dir(p), budget)
	if parent.err != nil {
		return parent
	}
	return l.step(parent.real, path.Base(p), budget)
}

// step resolves one name in a directory that is resolved.
func (l *links) step(dir, name string, budget int) place {
	p := dir + "/" + name
	if dir == "/" {
		p = dir + name
	}
	if at, ok := l.seen[p]; ok {
		return at
	}
	at := l.look(p, dir, budget)
	l.seen[p] = at
	return at
}

func (l *links) look(p, dir string, budget int) place {
	info, err := os.Lstat(p)
	switch {
	case err != nil && l.assume && errors.Is(err, fs.ErrNotExist):
		return place{real: p, dir: true}
	case err != nil:
		return place{err: err}
	case info.Mode()&fs.ModeSymlink == 0:
		return place{real: p, dir: info.IsDir()}
	case budget == 0:
		return place{err: syscall.ELOOP}
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
		switch name {
		case "", ".":
		case "..":
			at = place{real: path.Dir(at.real), dir: true}
		default:
			if at = l.step(at.real, name, budget-1); at.err != nil {
				return at
			}
		}
	}
	return at
}

// absent tells whether err means that nothing is there, rather than that it
// could not be looked at.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENAMETOOLONG)
}
