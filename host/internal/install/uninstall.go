package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/lock"
	"github.com/research-harness/harness/host/internal/merge"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/setup"
	"github.com/research-harness/harness/host/internal/system"
)

// Uninstall takes back what the manifest of home says that install put there:
// its files, what it merged into a frontend's settings, and what it created
// and nobody has used since. It leaves what the user changed and says so on
// standard error. Without apply it prints the difference and reports whether
// there is one.
func Uninstall(ctx context.Context, s *system.System, home string, o Options) (changed bool, err error) {
	u := &uninstaller{sys: s, at: layout.Layout{Home: home}}
	p, err := u.plan()
	if err != nil {
		return false, err
	}
	changed = len(p.changes) > 0
	switch {
	case o.Apply && (changed || exists(u.at.Lock())):
		if p, err = u.apply(ctx, o.Disk); err != nil {
			return true, err
		}
	case changed:
		p.writeDiff(s.Stdout)
	}
	if !changed {
		fmt.Fprintln(s.Stderr, "harness: nothing is installed")
	}
	if p.mergeChanges {
		fmt.Fprintln(s.Stderr, restartLine)
	}
	for _, l := range u.left {
		fmt.Fprintf(s.Stderr, "harness: left %s\n", problem.OneLine(l))
	}
	if rest := u.others(); rest != "" {
		fmt.Fprintf(s.Stderr, "harness: what setup and frontend trust made stays; to remove it, type: rm -r %s\n", rest)
	}
	return changed, nil
}

type uninstaller struct {
	sys  *system.System
	at   layout.Layout
	left []string // what stays of the plan, and why
}

func (u *uninstaller) leave(path, why string) {
	u.left = append(u.left, paths.Tilde(u.at.Home, path)+": "+why)
}

// apply takes everything back under the lock, and then that too.
func (u *uninstaller) apply(ctx context.Context, d files.Disk) (*plan, error) {
	l, err := lock.Acquire(ctx, d, u.at)
	if err != nil {
		return nil, err
	}
	defer l.Release()
	m, err := readManifest(u.at.Manifest())
	if err != nil {
		return nil, err
	}
	written := slices.Concat(slices.Collect(maps.Keys(m.Files)), slices.Collect(maps.Keys(m.Created)), []string{u.at.Manifest()})
	if err := d.Sweep(written); err != nil {
		return nil, err
	}
	p, err := u.plan() // what another has done since counts
	if err != nil {
		return nil, err
	}
	if err := p.apply(d, func(c change) { tell(u.sys, u.at.Home, c, "") }); err != nil {
		return nil, err
	}
	if err := d.Remove(u.at.Lock()); err != nil {
		return nil, err
	}
	dirs := slices.Sorted(slices.Values(slices.Concat(p.last, l.Made, []string{u.at.Config()})))
	for _, dir := range slices.Backward(slices.Compact(dirs)) {
		if _, err := d.RemoveDir(dir); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// plan plans the way back, and notes what stays.
func (u *uninstaller) plan() (*plan, error) {
	m, err := readManifest(u.at.Manifest())
	if err != nil {
		return nil, err
	}
	p := &plan{}
	u.left = nil
	restored := map[string][]byte{} // what the user's files hold afterwards
	for _, name := range slices.Sorted(maps.Keys(m.Merged)) {
		t, err := p.readThrough(name)
		if err != nil {
			return nil, err
		}
		if t.existed {
			data, kept, err := merge.Withdraw(name, t.data, m.Merged[name])
			if err != nil {
				return nil, err
			}
			for _, k := range kept {
				u.leave(name, k)
			}
			if err := p.merge(t, data); err != nil {
				return nil, err
			}
			if t.path == name {
				restored[name] = data
			}
		}
		if err := p.absent(t.path + backupSuffix); err != nil {
			return nil, err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(m.Files)) {
		switch {
		case !exists(path):
			continue
		case !holds(path, m.Files[path]):
			u.leave(path, "changed since it was installed")
			continue
		}
		if err := p.absentWithCache(u.at, path); err != nil {
			return nil, err
		}
	}
	u.uncreate(p, m.Created, restored)
	return p, p.absent(u.at.Manifest())
}

// uncreate plans the removal of what was made for a frontend and not used: a
// file with the bytes it was made with, and a directory that is empty then.
// The directories of the lock come last, when it is removed.
func (u *uninstaller) uncreate(p *plan, made map[string]string, restored map[string][]byte) {
	gone := map[string]bool{}
	for _, c := range p.changes {
		gone[c.path] = c.remove
	}
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(made))) {
		what := made[path]
		after, merged := restored[path]
		c := change{path: path, remove: true, dir: what == "dir"}
		switch {
		case !exists(path):
			continue
		case c.dir && paths.Below(u.at.Lock(), path):
			p.last = append(p.last, path)
			continue
		case c.dir && becomesEmpty(path, gone),
			merged && files.Digest(after) == what,
			!c.dir && !merged && holds(path, what):
			p.drop(path)
			p.changes = append(p.changes, c)
			gone[path] = true
		default:
			u.leave(path, "in use since it was created")
		}
	}
}

// others names what is not the install's to take back and no choice of the
// user's, as words for rm.
func (u *uninstaller) others() string {
	var words []string
	if setup.Node(u.at) != "" {
		words = append(words, u.at.Srt())
	}
	for _, path := range []string{u.at.Share(), u.at.Trust()} {
		if exists(path) {
			words = append(words, path)
		}
	}
	for i, w := range words {
		words[i] = paths.Tilde(u.at.Home, w)
	}
	return strings.Join(words, " ")
}

// exists reports whether something is at path, a link included.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// holds reports whether path is a regular file with the bytes of a digest.
func holds(path, digest string) bool {
	if info, err := regular(path); err != nil || info == nil {
		return false
	}
	data, err := files.ReadProgram(path)
	return err == nil && files.Digest(data) == digest
}

// becomesEmpty reports whether path is a directory in which nothing is left.
func becomesEmpty(path string, gone map[string]bool) bool {
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return false
	}
	entries, err := os.ReadDir(path)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !gone[filepath.Join(path, e.Name())] })
}
