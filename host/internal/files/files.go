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
	"regexp"

	"github.com/google/renameio/v2"

	"github.com/research-harness/harness/host/internal/problem"
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
			return failed(path, err)
		}
	}
	return failed(path, do())
}

// failed says what went wrong with path, once.
func failed(path string, err error) error {
	if err == nil {
		return nil
	}
	cause := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		cause = pe.Err
	} else if le, ok := errors.AsType[*os.LinkError](err); ok {
		cause = le.Err
	}
	return problem.New(path, "", "%w", cause)
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
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(path); parent != path {
		if err := d.CreateDir(parent, mode); err != nil {
			return err
		}
	}
	err := d.step("mkdir", path, func() error { return os.Mkdir(path, mode) })
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.step("chmod", path, func() error { return os.Chmod(path, mode) })
}

// Chmod sets the mode of a file.
func (d Disk) Chmod(path string, mode fs.FileMode) error {
	return d.step("chmod", path, func() error { return os.Chmod(path, mode) })
}

// Remove removes a file or an empty directory. One that is gone already is no
// error.
func (d Disk) Remove(path string) error {
	err := d.step("remove", path, func() error { return os.Remove(path) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// leftover matches the temporary files that Replace leaves when it is killed.
var leftover = regexp.MustCompile(`^\.(.+?)\d+$`)

// Sweep removes what a killed Replace of one of paths left beside it.
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
			m := leftover.FindStringSubmatch(e.Name())
			if m == nil || !bases[m[1]] || !e.Type().IsRegular() {
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
