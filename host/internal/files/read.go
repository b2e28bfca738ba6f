package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/research-harness/harness/host/internal/problem"
)

// What is larger is no file of ours, and reading it would only take long.
const (
	maxText    = 4 << 20
	maxProgram = 256 << 20
)

var errNotRegular = errors.New("is not a regular file")

// Read returns the content of the regular file at path, which may be a link to
// one. It does not block, whatever lies there, and has no effect on it. The
// error is a [problem.Error] of path whose cause says the rest; it matches
// [fs.ErrNotExist] where there is nothing.
func Read(path string) ([]byte, error) { return read(path, maxText) }

// ReadProgram is Read for a program, which may be larger.
func ReadProgram(path string) ([]byte, error) { return read(path, maxProgram) }

func read(path string, limit int64) ([]byte, error) {
	// A device may act on being opened, so that it is looked at before.
	info, err := os.Stat(path)
	if err == nil {
		err = Regular(info)
	}
	if err != nil {
		return nil, Problem(path, err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, Problem(path, err)
	}
	defer f.Close()
	var data bytes.Buffer
	if info, err = f.Stat(); err == nil {
		err = Regular(info)
	}
	if err == nil && info.Size() <= limit {
		data.Grow(int(info.Size()) + bytes.MinRead)
		_, err = data.ReadFrom(io.LimitReader(f, limit+1))
	}
	if err == nil && max(info.Size(), int64(data.Len())) > limit {
		err = fmt.Errorf("is larger than %d MiB", limit>>20)
	}
	return data.Bytes(), Problem(path, err)
}

// Regular says what is wrong with a file that is to be a regular one.
func Regular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return syscall.EISDIR
	case !info.Mode().IsRegular():
		return errNotRegular
	}
	return nil
}

// Problem says what went wrong with path, once, or returns nil.
func Problem(path string, err error) error {
	if err == nil {
		return nil
	}
	return problem.New(path, "", "%w", Cause(err))
}

// Cause is the error of a file operation without the file's name.
func Cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}
