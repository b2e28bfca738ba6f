// Package scope runs one command in the workspace scope, and says of a command
// whether it would stay there.
//
// In the workspace scope a command reads everything but the credentials, uses
// the network, and writes the workspace, the temporary directories and the
// caches of build tools, and nothing else. bubblewrap confines it on Linux and
// sandbox-exec on macOS; without one of them nothing runs.
package scope

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/toolchain"
)

// Scope is a workspace and what surrounds it. All paths are absolute and real.
type Scope struct {
	Workspace string
	Dir       string   // where the command starts, in the workspace
	Home      string   // not writable, even where a writable directory holds it
	Writable  []string // the temporary directories and the caches, in order
	Hidden    []string // existing files and directories that cannot be read
	Protected []string // existing files and directories that stay read-only in a writable one
	Warnings  []string // what was left out of Writable, and why

	create []string // members of Writable that do not exist yet
}

// Options are what [New] makes a scope of.
type Options struct {
	Workspace string   // empty is the current directory
	Home      string   // the real home directory
	DenyRead  []string // absolute paths and globs of credentials
	Protect   []string // absolute paths of what governs the harness
}

// New resolves a scope. It creates nothing. A workspace that is home, holds it,
// or holds or lies in a protected path, a credential or what governs the
// harness is a problem.
func New(s *system.System, o Options) (*Scope, error) {
	ws, err := workspace(s, o)
	if err != nil {
		return nil, err
	}
	sc := &Scope{Workspace: ws, Dir: ws, Home: o.Home}
	if dir := paths.Real(s.Dir); s.Dir != "" && paths.AtOrBelow(dir, ws) {
		sc.Dir = dir
	}

	dirs, warnings := toolchain.WritableDirs(s, o.Home)
	sc.Warnings = warnings
	for _, d := range dirs {
		sc.Writable = append(sc.Writable, d.Path)
		if _, err := os.Stat(d.Path); err != nil {
			sc.create = append(sc.create, d.Path)
		}
	}

	for _, p := range o.Protect {
		p = paths.Real(p)
		if paths.AtOrBelow(ws, p) {
			return nil, problem.New("", ws, "lies in %s, which governs the harness and stays read-only", paths.Tilde(o.Home, p)).
				WithHint("choose another directory with --workspace")
		}
		if _, err := os.Lstat(p); err == nil && sc.CanWrite(p) {
			sc.Protected = appendNew(sc.Protected, p)
		}
	}
	for _, pattern := range o.DenyRead {
		for _, p := range existing(pattern) {
			switch {
			case paths.AtOrBelow(o.Home, p):
				// A rule about home as a whole is for sessions, which are
				// given parts of it back.
			case paths.AtOrBelow(ws, p):
				return nil, problem.New("", ws, "is hidden by the template's denyRead of %s", paths.Tilde(o.Home, p)).
					WithHint("choose another directory with --workspace")
			default:
				sc.Hidden = appendNew(sc.Hidden, p)
			}
		}
	}
	return sc, nil
}

// workspace returns the real path of the directory that o or s names.
func workspace(s *system.System, o Options) (string, error) {
	dir, hint := o.Workspace, "choose a project's directory with --workspace"
	switch {
	case dir == "":
		dir = s.Dir
	case !filepath.IsAbs(dir):
		dir = filepath.Join(s.Dir, dir)
	}
	if dir == "" {
		return "", problem.New("", "", "the current directory does not exist any more").WithHint("cd to one that does")
	}
	ws := paths.Real(dir)
	if info, err := os.Stat(ws); err != nil || !info.IsDir() {
		return "", problem.New("", dir, "is not a directory").WithHint("%s", hint)
	}
	if paths.AtOrBelow(o.Home, ws) {
		return "", problem.New("", ws, "is the home directory or holds it, which is no workspace").WithHint("%s", hint)
	}
	if why := toolchain.Refused(ws, o.Home); why != "" {
		return "", problem.New("", ws, "is no workspace: it %s", why).WithHint("%s", hint)
	}
	return ws, nil
}

// CanWrite reports whether a command could write p, an absolute path,
// credentials aside.
func (sc *Scope) CanWrite(p string) bool {
	root, ok := sc.root(p)
	return ok && root != sc.Home
}

// root returns the innermost of the workspace, the writable directories and
// home that p is at or below.
func (sc *Scope) root(p string) (root string, ok bool) {
	for _, r := range append([]string{sc.Home, sc.Workspace}, sc.Writable...) {
		if paths.AtOrBelow(p, r) && len(r) >= len(root) {
			root, ok = r, true
		}
	}
	return root, ok
}

// Create makes the directories of the scope that may be absent. One that
// cannot be made is dropped with a warning: most commands do not need it.
func (sc *Scope) Create() {
	for _, dir := range sc.create {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			sc.Warnings = append(sc.Warnings, fmt.Sprintf("%v; builds that need it will fail", err))
			sc.Writable = slices.DeleteFunc(sc.Writable, func(p string) bool { return p == dir })
		}
	}
	sc.create = nil
}

// Notice tells an agent what a command may do here, in one sentence.
func (sc *Scope) Notice() string {
	return fmt.Sprintf("workspace scope: %s, temp and per-user cache directories are writable, everything else is read-only; "+
		"credential files cannot be read; the network can be used", sc.Workspace)
}

// existing returns the existing real paths that a path or glob names.
func existing(pattern string) []string {
	pattern = paths.TrimGlobstar(pattern)
	matches := []string{pattern}
	if paths.IsGlob(pattern) {
		matches, _ = doublestar.FilepathGlob(pattern, doublestar.WithNoFollow())
	}
	var out []string
	for _, m := range matches {
		if _, err := os.Stat(m); err == nil && filepath.IsAbs(m) {
			out = append(out, paths.Real(m))
		}
	}
	return out
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
