package scope

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/paths"
)

// mount is a path and whether the command may write it.
type mount struct {
	path string
	rw   bool
}

// mounts are the parts of the read-only file system that differ, in an order
// in which a later one may lie in an earlier one: the writable directories, and
// home where one of them holds it, then the workspace, then what lies in that.
func (sc *Scope) mounts() []mount {
	var before, after []mount
	add := func(path string, rw bool) {
		list := &before
		if paths.Below(path, sc.Workspace) {
			list = &after
		}
		*list = append(*list, mount{path, rw})
	}
	for _, p := range sc.Writable {
		add(p, true)
	}
	if slices.ContainsFunc(sc.Writable, func(p string) bool { return paths.AtOrBelow(sc.Home, p) }) {
		add(sc.Home, false)
	}
	for _, p := range sc.Protected {
		for _, dir := range sc.pins(p) {
			add(dir, true)
		}
		add(p, false)
	}
	depth := func(a, b mount) int { return strings.Count(a.path, "/") - strings.Count(b.path, "/") }
	slices.SortStableFunc(before, depth)
	slices.SortStableFunc(after, depth)
	return slices.Concat(before, []mount{{sc.Workspace, true}}, after)
}

// pins are the directories between the writable root that p lies in and p. A
// mount point cannot be renamed, so with each of them one, the way to p cannot
// be moved aside and built anew.
func (sc *Scope) pins(p string) []string {
	root, _ := sc.root(p)
	var dirs []string
	for dir := filepath.Dir(p); paths.Below(dir, root); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	return dirs
}

// BwrapArgs are bubblewrap's arguments for the scope, without the program and
// the command. Later mounts cover earlier ones; what is hidden comes last.
//
// Processes get a namespace of their own, so that nothing outlives the command
// and no process outside can be signalled or traced. The session stays the
// caller's, so that job control works; [filter] keeps the command from typing
// into the terminal.
func (sc *Scope) BwrapArgs() []string {
	args := []string{"--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc", "--die-with-parent"}
	for _, m := range sc.mounts() {
		how := "--ro-bind"
		if m.rw {
			how = "--bind"
		}
		args = append(args, how, m.path, m.path)
	}
	for _, p := range sc.Hidden {
		if isDir(p) {
			args = append(args, "--tmpfs", p, "--remount-ro", p)
		} else {
			args = append(args, "--ro-bind", "/dev/null", p)
		}
	}
	return append(args, "--chdir", sc.Dir)
}

func isDir(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}
