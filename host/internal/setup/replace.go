package setup

import (
	"errors"
	"io/fs"
	"os"

	"github.com/research-harness/harness/host/internal/problem"
)

// replaceDir puts the directory fresh in old's place, in one step where the
// file system can, and leaves the old one under the name of fresh.
func replaceDir(fresh, old string) error {
	err := os.Rename(fresh, old) // enough where there is no old one, or an empty one
	if err == nil {
		return nil
	}
	if err := exchange(fresh, old); err == nil {
		return nil
	}
	aside := fresh + ".old"
	if err := os.Rename(old, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return problem.New(old, "", "%w", errors.Unwrap(err))
	}
	if err := os.Rename(fresh, old); err != nil {
		return errors.Join(problem.New(old, "", "%w", errors.Unwrap(err)), os.Rename(aside, old))
	}
	return os.RemoveAll(aside)
}
