// Package files makes every change of the harness to the disk, each so that a
// crash leaves a file old or new.
package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
)

// Disk changes files. The zero value is ready for use.
type Disk struct {
	// Before, where set, is asked before each step with its name and path. An
	// error takes the step's place. Tests inject faults with it.
	Before func(step, path string) error
}

func (d Disk) step(name, path string, do func() error) error {
	if d.Before != nil {
		if err := d.Before(name, path); err != nil {
			return Problem(path, err)
		}
	}
	return Problem(path, do())
}

// Replace puts data at path with exactly mode, whatever the umask. The parent
// must exist. The data is on the disk before the name refers to it.
func (d Disk) Replace(path string, data []byte, mode fs.FileMode) error {
	var tmp *renameio.PendingFile
	err := d.step("create", path, func() (err error) {
		tmp, err = renameio.NewPendingFile(path,
			renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(mode))
		return err
	})
	if err != nil {
		return err
	}
	defer tmp.Cleanup()
	if err := d.step("write", path, func() error { _, err := tmp.Write(data); return err }); err != nil {
		return err
	}
	return d.step("rename", path, tmp.CloseAtomicallyReplace)
}

// CreateDir makes path and what is missing above it, each with mode.
func (d Disk) CreateDir(path string, mode fs.FileMode) error {
	if isDir(path) {
		return nil
	}
	if parent := filepath.Dir(path); parent != path {
		if err := d.CreateDir(parent, mode); err != nil {
			return err
		}
	}
	err := d.step("mkdir", path, func() error { return os.Mkdir(path, mode) })
	if errors.Is(err, fs.ErrExist) && isDir(path) {
		return nil // another made it just now
	}
	if err != nil {
		return err
	}
	return d.step("chmod", path, func() error { return os.Chmod(path, mode) })
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Chmod sets the mode of a file.
func (d Disk) Chmod(path string, mode fs.FileMode) error {
	return d.step("chmod", path, func() error { return os.Chmod(path, mode) })
}

// Remove removes a file. One that is gone already is no error.
func (d Disk) Remove(path string) error {
	return d.step("remove", path, func() error { return unlessGone(os.Remove(path)) })
}

// RemoveDir removes a directory that is empty, and reports whether it did.
func (d Disk) RemoveDir(path string) (removed bool, err error) {
	err = d.step("remove", path, func() error {
		err := syscall.Rmdir(path)
		removed = err == nil
		if errors.Is(err, syscall.ENOTEMPTY) {
			return nil
		}
		return unlessGone(err)
	})
	return removed, err
}

func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Sweep removes what a killed Replace of one of paths left beside it: a file
// of the same name between a dot and a number.
func (d Disk) Sweep(paths []string) error {
	names := map[string]map[string]bool{}
	for _, p := range paths {
		dir, base := filepath.Split(p)
		if names[dir] == nil {
			names[dir] = map[string]bool{}
		}
		names[dir][base] = true
	}
	for dir, bases := range names {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // nothing can have been left in it
		}
		for _, e := range entries {
			base, hidden := strings.CutPrefix(strings.TrimRight(e.Name(), "0123456789"), ".")
			if !hidden || !bases[base] || e.Name() == "."+base || !e.Type().IsRegular() {
				continue
			}
			if err := d.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Digest is the SHA-256 of data in lower-case hex.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
