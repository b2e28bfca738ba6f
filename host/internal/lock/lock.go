// Package lock serialises the verbs that write.
package lock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/problem"
)

// Lock is held until it is released or the process ends.
type Lock struct {
	// Made are the directories that were missing and that it needed, the
	// outermost first.
	Made []string

	file *flock.Flock
}

// Release lets the next verb go on.
func (l *Lock) Release() { _ = l.file.Unlock() }

// An uninstall removes the file that it holds, and the directories around it,
// and whoever waits begins again. More often than this none does.
const attempts = 1000

// Acquire waits until no other verb writes, or ctx ends.
func Acquire(ctx context.Context, d files.Disk, at layout.Layout) (l *Lock, err error) {
	l = &Lock{}
	for range attempts {
		if err = l.acquire(ctx, d, at.Lock()); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return l, err
}

func (l *Lock) acquire(ctx context.Context, d files.Disk, path string) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return problem.New(path, "", "is not a regular file").WithHint("mv %s %s.old", path, path)
	}
	if err := l.createDir(d, filepath.Dir(path)); err != nil {
		return err
	}
	l.file = flock.New(path, flock.SetPermissions(0o600),
		flock.SetFlag(os.O_CREATE|os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW))
	if _, err := l.file.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return problem.New(path, "", "cannot be locked: %w", files.Cause(err))
	}
	locked, err := l.file.Stat()
	if err == nil {
		var now fs.FileInfo
		if now, err = os.Lstat(path); err == nil && !os.SameFile(locked, now) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		l.Release()
	}
	return files.Problem(path, err)
}

// createDir makes the directory of the lock and remembers what was missing.
func (l *Lock) createDir(d files.Disk, dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := l.createDir(d, filepath.Dir(dir)); err != nil {
			return err
		}
		if !slices.Contains(l.Made, dir) {
			l.Made = append(l.Made, dir)
		}
	}
	return d.CreateDir(dir, 0o755)
}
