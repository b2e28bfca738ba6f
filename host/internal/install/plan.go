package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

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

	old     []byte // the bytes before
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

	last         []string // directories to remove after the rest, where empty
	mergeChanges bool     // a frontend's own settings change
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
	c := change{path: path, mode: mode, data: data}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := p.parents(path, 0o755); err != nil {
			return err
		}
		c.write = true
		p.changes = append(p.changes, c)
		return nil
	case err != nil:
		return unreadable(path, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return problem.New(path, "", "is a symbolic link, which install does not follow").
			WithHint("mv %s %s.old", path, path)
	case !info.Mode().IsRegular():
		return problem.New(path, "", "is not a regular file").WithHint("mv %s %s.old", path, path)
	}
	c.existed, c.oldMode = true, info.Mode().Perm()
	if c.old, err = os.ReadFile(path); err != nil {
		return unreadable(path, err)
	}
	c.write = !bytes.Equal(c.old, data)
	if c.write || c.oldMode != mode {
		p.changes = append(p.changes, c)
	}
	return nil
}

// ensure plans that path exists, as a directory or as a file with data, and
// leaves what is there alone. It is an error when path is of the other kind.
func (p *plan) ensure(path string, dir bool, data []byte) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir() != dir:
		kind := map[bool]string{true: "a directory", false: "a file"}
		return problem.New(path, "", "is %s and must be %s", kind[info.IsDir()], kind[dir]).
			WithHint("mv %s %s.old", path, path)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return unreadable(path, err)
	}
	if target, err := os.Readlink(path); err == nil {
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
	info, err := os.Stat(dir)
	switch {
	case err == nil && info.IsDir(), dir == path, p.creates(dir):
		return nil
	case err == nil:
		return problem.New(dir, "", "is not a directory").WithHint("mv %s %s.old", dir, dir)
	case !errors.Is(err, fs.ErrNotExist):
		return unreadable(dir, err)
	}
	if target, err := os.Readlink(dir); err == nil {
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
func readThrough(name string) (target, error) {
	t := target{path: paths.Real(name), mode: 0o600}
	info, err := os.Stat(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t, nil
	case err != nil:
		return t, unreadable(name, err)
	case !info.Mode().IsRegular():
		return t, problem.New(name, "", "is not a regular file").WithHint("mv %s %s.old", name, name)
	}
	t.existed, t.mode = true, info.Mode().Perm()
	if t.data, err = os.ReadFile(t.path); err != nil {
		return t, unreadable(name, err)
	}
	return t, nil
}

// backupSuffix marks the copy of a settings file as it was before its last
// change.
const backupSuffix = ".before-harness"

// merge plans new bytes for a file of the user's, with a backup beside it.
func (p *plan) merge(t target, data []byte) {
	if t.existed && bytes.Equal(t.data, data) {
		return
	}
	p.mergeChanges = true
	if t.existed {
		backup := t.path + backupSuffix
		old, err := os.ReadFile(backup)
		p.changes = append(p.changes, change{
			path: backup, mode: t.mode, data: t.data, write: true,
			old: old, oldMode: t.mode, existed: err == nil, quiet: true,
		})
	}
	p.changes = slices.DeleteFunc(p.changes, func(c change) bool { return c.path == t.path })
	p.changes = append(p.changes, change{
		path: t.path, mode: t.mode, data: data, write: true,
		old: t.data, oldMode: t.mode, existed: t.existed,
	})
}

// bracket plans the manifest: halfway before the other changes, final after
// them, so that it agrees with the disk whenever the install is cut off.
func (p *plan) bracket(path string, halfway, final []byte) error {
	disk, err := os.ReadFile(path)
	existed := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unreadable(path, err)
	}
	if len(p.changes) == 0 {
		halfway = final
	}
	step := func(data []byte) change {
		return change{path: path, mode: 0o644, data: data, write: true, old: disk, oldMode: 0o644, existed: existed, quiet: true}
	}
	if !existed || !bytes.Equal(disk, halfway) {
		p.changes = slices.Insert(p.changes, 0, step(halfway))
	}
	if !bytes.Equal(halfway, final) {
		p.changes = append(p.changes, step(final))
	}
	return nil
}

// absent plans that path, a file of the install, is gone.
func (p *plan) absent(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unreadable(path, err)
	case info.IsDir():
		return problem.New(path, "", "is a directory where a file was installed").WithHint("rmdir %s", path)
	}
	old, _ := os.ReadFile(path) // only for the diff
	p.changes = append(p.changes, change{path: path, remove: true, old: old, oldMode: info.Mode().Perm(), existed: true})
	return nil
}

func unreadable(path string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return problem.New(path, "", "%w", err)
}

// apply makes the changes, in order.
func (p *plan) apply(d files.Disk, done func(change)) error {
	for _, c := range p.changes {
		if err := c.apply(d); err != nil {
			return err
		}
		done(c)
	}
	return nil
}

func (c change) apply(d files.Disk) error {
	switch {
	case c.remove:
		return d.Remove(c.path)
	case c.dir:
		return d.CreateDir(c.path, c.mode)
	case !c.write:
		return d.Chmod(c.path, c.mode)
	}
	return d.Replace(c.path, c.data, c.mode)
}

// tell says on standard error what a change has done.
func tell(s *system.System, home string, c change) {
	if !c.quiet {
		c.path = paths.Tilde(home, c.path)
		fmt.Fprintf(s.Stderr, "harness: %s\n", problem.OneLine(c.String()))
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
