package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
)

// change is one step of a plan. Its zero fields say what it is: data for a
// file to write, dir for a directory to create, remove for what goes away,
// none of them for a change of mode alone.
type change struct {
	path string
	mode fs.FileMode

	data   []byte // the file's new bytes
	write  bool
	dir    bool
	remove bool

	old     []byte // the bytes before, of a file that is shown
	oldMode fs.FileMode
	existed bool

	quiet bool // not shown: a backup or the manifest
}

// plan collects the differences between what should be and what is. It looks
// at the disk and changes nothing.
type plan struct {
	changes []change
	written []string // the files that the install gives, changed or not
	kept    []string // files of an earlier install that stay as they are
	created []created

	last         []string // directories to remove with the lock, where empty
	mergeChanges bool     // a frontend's own settings change
	oldTempDir   string   // what the earlier install allowed

	root string // of the tree that all paths are in, empty for the machine's own
}

// on is where a path of the plan lies on this machine.
func (p *plan) on(path string) string { return p.root + path }

// inside refuses a plan of which a symbolic link leads out of the root.
func (p *plan) inside() error {
	for _, c := range p.changes {
		dir := filepath.Dir(p.on(c.path))
		if real := paths.Real(dir); p.root != "" && !paths.AtOrBelow(real, p.root) {
			return problem.New(p.on(c.path), "", "lies in %s, which is outside of %s", real, p.root).
				WithHint("replace the symbolic link on the way by a relative one")
		}
	}
	return nil
}

// paths are the files that the plan is about.
func (p *plan) paths() []string {
	all := slices.Clone(p.written)
	for _, c := range p.changes {
		all = append(all, c.path)
	}
	for i, path := range all {
		all[i] = p.on(path)
	}
	return all
}

// created is a path that install makes where it is missing and that belongs
// to the user or a frontend afterwards.
type created struct {
	path string
	dir  bool
	data []byte
}

// file plans that path holds data with mode. A symbolic link or anything else
// that is no regular file is refused, not followed.
func (p *plan) file(path string, mode fs.FileMode, data []byte) error {
	p.written = append(p.written, path)
	c := change{path: path, mode: mode, data: data, write: true}
	info, err := regular(p.on(path))
	if err != nil {
		return err
	}
	if info == nil {
		err := p.parents(path, 0o755)
		p.changes = append(p.changes, c)
		return err
	}
	c.existed, c.oldMode = true, info.Mode().Perm()
	if c.old, err = files.ReadProgram(p.on(path)); err != nil {
		return err
	}
	c.write = !bytes.Equal(c.old, data)
	if c.write || c.oldMode != mode {
		p.changes = append(p.changes, c)
	}
	return nil
}

// regular looks at a file that install writes or removes, nil where it is
// missing. Anything else in its place, a link included, is refused.
func regular(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, files.Problem(path, err)
	case info.Mode().IsRegular():
		return info, nil
	case info.Mode()&fs.ModeSymlink != 0:
		err = problem.New(path, "", "is a symbolic link, which is not followed").WithHint("mv %s %s.old", path, path)
	default:
		err = problem.New(path, "", "is not a regular file").WithHint("mv %s %s.old", path, path)
	}
	return nil, err
}

// ensure plans that path exists, as a directory or as a file with data, and
// leaves what is there alone. It is an error when path is of the other kind.
func (p *plan) ensure(path string, dir bool, data []byte) error {
	info, err := os.Stat(p.on(path))
	switch {
	case err == nil && (dir && info.IsDir() || !dir && info.Mode().IsRegular()):
		return nil
	case err == nil:
		kind := map[bool]string{true: "directory", false: "regular file"}
		return problem.New(path, "", "is not a %s", kind[dir]).WithHint("mv %s %s.old", path, path)
	case !errors.Is(err, fs.ErrNotExist):
		return files.Problem(path, err)
	}
	if target, err := os.Readlink(p.on(path)); err == nil {
		return problem.New(path, "", "is a symbolic link to %s, which does not exist", target).
			WithHint("rm %s", path)
	}
	if p.creates(path) {
		return nil
	}
	if err := p.parents(path, 0o700); err != nil {
		return err
	}
	if dir {
		p.makeDir(path, 0o700)
		return nil
	}
	p.created = append(p.created, created{path: path, data: data})
	p.changes = append(p.changes, change{path: path, mode: 0o600, data: data, write: true})
	return nil
}

// parents plans the directories above path that are missing.
func (p *plan) parents(path string, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	info, err := os.Stat(p.on(dir))
	switch {
	case err == nil && info.IsDir(), dir == path, p.creates(dir):
		return nil
	case err == nil:
		return problem.New(dir, "", "is not a directory").WithHint("mv %s %s.old", dir, dir)
	case !errors.Is(err, fs.ErrNotExist):
		return files.Problem(dir, err)
	}
	if target, err := os.Readlink(p.on(dir)); err == nil {
		return problem.New(dir, "", "is a symbolic link to %s, which does not exist", target).WithHint("rm %s", dir)
	}
	if err := p.parents(dir, mode); err != nil {
		return err
	}
	p.makeDir(dir, mode)
	return nil
}

func (p *plan) makeDir(path string, mode fs.FileMode) {
	p.created = append(p.created, created{path: path, dir: true})
	p.changes = append(p.changes, change{path: path, mode: mode, dir: true})
}

// creates reports whether the plan makes path.
func (p *plan) creates(path string) bool {
	return slices.ContainsFunc(p.created, func(c created) bool { return c.path == path })
}

// contentOf is what the plan makes path with, nil where it does not.
func (p *plan) contentOf(path string) []byte {
	for _, c := range p.created {
		if c.path == path {
			return c.data
		}
	}
	return nil
}

// target is a file of the user's that is written through symbolic links.
type target struct {
	path    string // links resolved
	data    []byte
	mode    fs.FileMode
	existed bool
}

// readThrough reads a file of the user's, which may be a link to one.
func (p *plan) readThrough(name string) (target, error) {
	real := paths.Real(p.on(name))
	t := target{path: strings.TrimPrefix(real, p.root), mode: 0o600}
	info, err := os.Stat(real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t, nil
	case err != nil:
		return t, files.Problem(name, err)
	case !info.Mode().IsRegular(): // said here, where the user knows the name
		return t, problem.New(name, "", "is not a regular file").WithHint("mv %s %s.old", name, name)
	}
	t.existed, t.mode = true, info.Mode().Perm()
	t.data, err = files.Read(real)
	return t, err
}

// backupSuffix marks the copy of a settings file as it was before its last
// change.
const backupSuffix = ".before-harness"

// merge plans new bytes for a file of the user's, with a backup beside it.
func (p *plan) merge(t target, data []byte) error {
	if t.existed && bytes.Equal(t.data, data) {
		return nil
	}
	p.mergeChanges = p.root == "" // nothing runs in another tree
	if t.existed {
		backup := t.path + backupSuffix
		if _, err := regular(p.on(backup)); err != nil {
			return err
		}
		p.changes = append(p.changes, change{path: backup, mode: t.mode, data: t.data, write: true, quiet: true})
	}
	p.drop(t.path)
	p.changes = append(p.changes, change{
		path: t.path, mode: t.mode, data: data, write: true,
		old: t.data, oldMode: t.mode, existed: t.existed,
	})
	return nil
}

// drop forgets what is planned for a path.
func (p *plan) drop(path string) {
	p.changes = slices.DeleteFunc(p.changes, func(c change) bool { return c.path == path })
}

// bracket plans the manifest: halfway before the other changes, final after
// them, so that it agrees with the disk whenever the install is cut off.
func (p *plan) bracket(path string, halfway, final []byte) error {
	disk, err := files.Read(p.on(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(p.changes) == 0 {
		halfway = final
	}
	step := func(data []byte) change {
		return change{path: path, mode: 0o644, data: data, write: true, quiet: true}
	}
	if !bytes.Equal(disk, halfway) {
		p.changes = slices.Insert(p.changes, 0, step(halfway))
	}
	if !bytes.Equal(halfway, final) {
		p.changes = append(p.changes, step(final))
	}
	return nil
}

// absent plans that path, a file of the install, is gone.
func (p *plan) absent(path string) error {
	info, err := regular(p.on(path))
	p.drop(path)
	if info != nil {
		p.changes = append(p.changes, change{path: path, remove: true})
	}
	return err
}

// apply makes the changes, in order.
func (p *plan) apply(d files.Disk, done func(change)) error {
	for _, c := range p.changes {
		c.path = p.on(c.path)
		did, err := c.apply(d)
		if err != nil {
			return err
		}
		if did {
			done(c)
		}
	}
	return nil
}

// apply makes the change. A directory that is in use since the plan was made
// stays, and there is nothing to tell.
func (c change) apply(d files.Disk) (did bool, err error) {
	switch {
	case c.dir && c.remove:
		return d.RemoveDir(c.path)
	case c.remove:
		return true, d.Remove(c.path)
	case c.dir:
		return true, d.CreateDir(c.path, c.mode)
	case !c.write:
		return true, d.Chmod(c.path, c.mode)
	}
	return true, d.Replace(c.path, c.data, c.mode)
}

// tell says on standard error what a change has done.
func tell(s *system.System, home string, c change, more string) {
	if !c.quiet {
		c.path = paths.Tilde(home, c.path)
		fmt.Fprintf(s.Stderr, "harness: %s\n", problem.OneLine(c.String()+more))
	}
}

// String says what the change does, as one line.
func (c change) String() string {
	switch {
	case c.dir && c.remove:
		return "remove directory " + c.path
	case c.dir:
		return fmt.Sprintf("create directory %s (%04o)", c.path, c.mode)
	case c.remove:
		return "remove " + c.path
	case !c.write:
		return fmt.Sprintf("change mode of %s from %04o to %04o", c.path, c.oldMode, c.mode)
	case !c.existed:
		return fmt.Sprintf("create %s (%04o)", c.path, c.mode)
	}
	return "update " + c.path
}
