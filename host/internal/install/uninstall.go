package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/lock"
	"github.com/research-harness/harness/host/internal/merge"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/system"
)

// Uninstall takes back what the manifest of home says that install put there:
// its files, what it merged into a frontend's settings, and what it created
// and nobody has used since. It leaves what the user changed and says so on
// standard error. Without apply it prints the difference and reports whether
// there is one.
func Uninstall(ctx context.Context, s *system.System, home string, o Options) (changed bool, err error) {
	at := layout.Layout{Home: home}
	p, left, err := uninstallPlan(at)
	if err != nil {
		return false, err
	}
	switch {
	case len(p.changes) == 0:
		fmt.Fprintln(s.Stderr, "harness: nothing is installed")
		return false, nil
	case !o.Apply:
		p.writeDiff(s.Stdout)
	default:
		release, err := lock.Acquire(ctx, o.Disk, at)
		if err != nil {
			return false, err
		}
		defer release()
		if p, left, err = uninstallPlan(at); err != nil {
			return false, err
		}
		if err := p.apply(o.Disk, func(c change) { tell(s, home, c) }); err != nil {
			return true, err
		}
		for _, dir := range p.last {
			if err := removeIfEmpty(o.Disk, dir); err != nil {
				return true, err
			}
		}
	}
	if p.mergeChanges {
		fmt.Fprintln(s.Stderr, restartLine)
	}
	for _, l := range left {
		fmt.Fprintf(s.Stderr, "harness: left %s\n", l)
	}
	return true, nil
}

// uninstallPlan plans the way back, and names what stays.
func uninstallPlan(at layout.Layout) (p *plan, left []string, err error) {
	m, err := readManifest(at.Manifest())
	if err != nil {
		return nil, nil, err
	}
	p = &plan{}
	say := func(path, why string) { left = append(left, paths.Tilde(at.Home, path)+": "+why) }

	restored := map[string][]byte{} // what the user's files hold afterwards
	for _, name := range slices.Sorted(maps.Keys(m.Merged)) {
		t, err := readThrough(name)
		if err != nil {
			return nil, nil, err
		}
		if !t.existed {
			continue
		}
		data, kept, err := merge.Withdraw(name, t.data, m.Merged[name])
		if err != nil {
			return nil, nil, err
		}
		for _, k := range kept {
			say(name, k)
		}
		p.merge(t, data)
		p.changes = slices.DeleteFunc(p.changes, func(c change) bool { return c.path == t.path+backupSuffix })
		restored[name] = data
		if err := p.absent(t.path + backupSuffix); err != nil {
			return nil, nil, err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(m.Files)) {
		data, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, nil, unreadable(path, err)
		case files.Digest(data) != m.Files[path]:
			say(path, "changed since it was installed")
			continue
		}
		if err := p.absentWithCache(at, path); err != nil {
			return nil, nil, err
		}
	}
	if err := p.uncreate(m.Created, restored, at.Lock(), say); err != nil {
		return nil, nil, err
	}
	if len(p.changes)+len(p.last) > 0 {
		p.changes = append(p.changes, change{path: at.Lock(), remove: true, quiet: true})
	}
	return p, left, p.absent(at.Manifest())
}

// uncreate plans the removal of what was made for a frontend and not used: a
// file with the bytes it was made with, then a directory that is empty. The
// directories of the lock come last, when it is released.
func (p *plan) uncreate(made []createdEntry, restored map[string][]byte, lock string, say func(path, why string)) error {
	gone := map[string]bool{}
	for _, c := range p.changes {
		gone[c.path] = c.remove
	}
	for _, e := range slices.Backward(made) {
		info, err := os.Lstat(e.Path)
		if err != nil {
			continue
		}
		if e.What == "dir" && paths.Below(lock, e.Path) {
			p.last = append(p.last, e.Path)
			continue
		}
		if e.What == "dir" {
			entries, err := os.ReadDir(e.Path)
			if err != nil || !info.IsDir() || slices.ContainsFunc(entries, func(d fs.DirEntry) bool { return !gone[e.Path+"/"+d.Name()] }) {
				say(e.Path, "in use since it was created")
				continue
			}
			p.changes = append(p.changes, change{path: e.Path, mode: info.Mode().Perm(), dir: true, remove: true})
			gone[e.Path] = true
			continue
		}
		data, ok := restored[e.Path]
		if !ok {
			if data, err = os.ReadFile(e.Path); err != nil {
				return unreadable(e.Path, err)
			}
		}
		if files.Digest(data) != e.What {
			say(e.Path, "in use since it was created")
			continue
		}
		p.changes = slices.DeleteFunc(p.changes, func(c change) bool { return c.path == e.Path })
		if err := p.absent(e.Path); err != nil {
			return err
		}
		gone[e.Path] = true
	}
	return nil
}

// removeIfEmpty removes a directory of the harness's own that holds nothing.
func removeIfEmpty(d files.Disk, dir string) error {
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return nil
	}
	return d.Remove(dir)
}
