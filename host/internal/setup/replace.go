package setup

import (
	"errors"
	"io/fs"
	"os"

	"github.com/research-harness/harness/host/internal/files"
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
		return files.Problem(old, err)
	}
	if err := os.Rename(fresh, old); err != nil {
		return errors.Join(files.Problem(old, err), os.Rename(aside, old))
	}
	return os.RemoveAll(aside)
}
