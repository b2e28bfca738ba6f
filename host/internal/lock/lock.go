// Package lock serialises the verbs that write.
package lock

import (
	"context"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/problem"
)

// Acquire waits until no other verb writes, or ctx ends. The returned function
// lets the next one go on. The lock is the kernel's and ends with the process.
func Acquire(ctx context.Context, d files.Disk, at layout.Layout) (release func(), err error) {
	path := at.Lock()
	if err := d.CreateDir(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	l := flock.New(path, flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return nil, problem.New(path, "", "cannot be locked: %w", err)
	}
	return func() { _ = l.Unlock() }, nil
}
