// Package toolchain names the directories that build tools write outside a
// project: the temporary directories and the user's caches.
package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/sdk/protected"
)

// Dir is a directory that a build tool may write.
type Dir struct {
	Path   string // absolute, symbolic links resolved
	Source string // what named it: "GOCACHE", "TMPDIR", "~/.cache", …
	Temp   bool   // a temporary directory, which is no cache
	Create bool   // may be absent: exec and install --apply create it
}

// Linked is a cache that is reached through a symbolic link below home. srt
// mounts no such path, so what a session writes there is lost.
type Linked struct {
	Name   string // the link
	Target string // the real path that it leads to
}

// WritableDirs returns the temporary and cache directories of the moment, each
// once, in this order: the temporary directory, /tmp, the user's cache
// directory, ~/.cache, Go's build cache, its module cache, pkg of each GOPATH
// element, and the caches of npm and cargo. Directories that do not exist are
// left out, but for the Go module cache and ~/.cache.
//
// Home is the real path of the home directory; where it is empty only what the
// environment names is returned. A value that is relative or holds ".." is
// skipped. One that would let a build write home itself, a directory above it,
// or a protected path of the user or the system is skipped with a warning,
// which names it. /tmp is everyone's and always there; a home below it is not
// writable for that: whoever grants these directories takes home out again.
func WritableDirs(s *system.System, home string) (dirs []Dir, warnings []string) {
	guard, tmp := guarded(home), paths.Real("/tmp")
	for _, c := range candidates(s, home) {
		real := paths.Real(c.Path)
		info, err := os.Stat(real)
		switch {
		case err == nil && !info.IsDir(), err != nil && !c.Create, err != nil && !os.IsNotExist(err):
			continue
		}
		if why := refuse(real, home, guard); why != "" && real != tmp {
			warnings = append(warnings, fmt.Sprintf("%s: %s %s; it stays read-only", c.Source, paths.Tilde(home, real), why))
			continue
		}
		if i := slices.IndexFunc(dirs, func(d Dir) bool { return d.Path == real }); i >= 0 {
			dirs[i].Create = dirs[i].Create || c.Create
			continue
		}
		c.Path = real
		dirs = append(dirs, c)
	}
	return dirs, slices.Compact(warnings)
}

// Links returns the caches of [WritableDirs] that lie behind a symbolic link
// below home, in the same order, each link once.
func Links(s *system.System, home string) []Linked {
	var out []Linked
	for _, c := range candidates(s, home) {
		name := firstLink(home, underHome(s, home, c.Path))
		if name == "" || c.Temp || slices.ContainsFunc(out, func(l Linked) bool { return l.Name == name }) {
			continue
		}
		if info, err := os.Stat(c.Path); c.Create || err == nil && info.IsDir() {
			out = append(out, Linked{Name: name, Target: paths.Real(name)})
		}
	}
	return out
}

// candidates are the directories as the environment spells them: absolute and
// clean, existing or not, in order.
func candidates(s *system.System, home string) []Dir {
	var dirs []Dir
	add := func(source, path string, d Dir) bool {
		if !usable(path) {
			return false
		}
		d.Path, d.Source = filepath.Clean(path), source
		dirs = append(dirs, d)
		return true
	}
	below := func(rel string, d Dir) {
		if home != "" {
			add("~/"+rel, filepath.Join(home, rel), d)
		}
	}

	add("TMPDIR", s.Getenv("TMPDIR"), Dir{Temp: true})
	add("/tmp", "/tmp", Dir{Temp: true})
	if s.OS == "darwin" {
		below("Library/Caches", Dir{})
	} else {
		add("XDG_CACHE_HOME", s.Getenv("XDG_CACHE_HOME"), Dir{})
	}
	below(".cache", Dir{Create: true})

	goenv := newGoEnv(s, home)
	add("GOCACHE", goenv.get("GOCACHE"), Dir{})
	hasModCache := add("GOMODCACHE", goenv.get("GOMODCACHE"), Dir{Create: true})
	hasGoPath := false
	for _, elem := range filepath.SplitList(goenv.get("GOPATH")) {
		if usable(elem) {
			add("GOPATH", filepath.Join(elem, "pkg"), Dir{Create: !hasModCache && !hasGoPath})
			hasGoPath = true
		}
	}
	if !hasGoPath {
		below("go/pkg", Dir{Create: !hasModCache})
	}

	for _, rel := range []string{".npm", ".cargo/registry", ".cargo/git"} {
		below(rel, Dir{})
	}
	return dirs
}

// usable reports whether a value can name a directory: it is absolute, which
// "off" and the empty string are not, and holds no "..".
func usable(path string) bool {
	return filepath.IsAbs(path) && !slices.Contains(strings.Split(path, "/"), "..") && !strings.ContainsRune(path, 0)
}

// systemPaths hold what other users and the system run or read. Values above
// them, such as /usr and /var, are refused with them.
var systemPaths = []string{
	"/bin", "/boot", "/dev/pts", "/etc", "/lib", "/lib64", "/proc", "/run/systemd", "/sbin", "/sys",
	"/usr/bin", "/usr/lib", "/usr/local/bin", "/usr/local/lib", "/usr/local/sbin", "/usr/sbin", "/var/spool",
	"/Applications", "/Library", "/System", "/private/etc", "/private/var/db",
}

// homePaths are beside [protected.Paths] what no directory of work holds. All
// begin with "~/".
var homePaths = []string{"~/.config/systemd", "~/Library/Keychains", "~/Library/LaunchAgents"}

// guarded returns what no value may hold or lie in, as spelled and resolved.
func guarded(home string) []string {
	all := append(slices.Clone(systemPaths), fmt.Sprintf("/run/user/%d/systemd", os.Getuid()))
	if home != "" {
		all = slices.DeleteFunc(all, func(p string) bool { return paths.AtOrBelow(home, p) })
		dirs := map[string]string{} // few hold all
		for _, p := range append(protected.Paths(), homePaths...) {
			p = paths.Expand(home, p)
			dir, base := filepath.Split(p)
			if dirs[dir] == "" {
				dirs[dir] = paths.Real(dir)
			}
			real := filepath.Join(dirs[dir], base)
			if _, err := os.Readlink(real); err == nil {
				real = paths.Real(real)
			}
			all = append(all, p, real)
		}
	}
	return all
}

// Refused says why a session may not be given dir, a real path, to write, or
// returns "".
func Refused(dir, home string) string { return refuse(dir, home, guarded(home)) }

// refuse says why dir may not be written, or returns "".
func refuse(dir, home string, guard []string) string {
	switch {
	case dir == "/":
		return "is the root directory"
	case home != "" && dir == home:
		return "is the home directory"
	case home != "" && paths.Below(home, dir):
		return "holds the home directory"
	}
	for _, p := range guard {
		switch {
		case dir == p:
			return "is protected"
		case paths.AtOrBelow(dir, p):
			return "lies in " + paths.Tilde(home, p) + ", which is protected"
		case paths.Below(p, dir):
			return "holds " + paths.Tilde(home, p) + ", which is protected"
		}
	}
	return ""
}

// underHome spells a path that goes through $HOME by the real home.
func underHome(s *system.System, home, path string) string {
	if spelled := filepath.Clean(s.Getenv("HOME")); spelled != "/" && paths.AtOrBelow(path, spelled) {
		return home + path[len(spelled):]
	}
	return path
}

// firstLink returns the topmost symbolic link of path that lies below home, or
// "".
func firstLink(home, path string) string {
	if home == "" || !paths.Below(path, home) {
		return ""
	}
	at := home
	for elem := range strings.SplitSeq(path[len(home)+1:], "/") {
		at = filepath.Join(at, elem)
		if info, err := os.Lstat(at); err != nil {
			return ""
		} else if info.Mode()&os.ModeSymlink != 0 {
			return at
		}
	}
	return ""
}
