package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/research-harness/harness/host/internal/problem"
)

// image is a private copy of a plugin's file that nothing can change: its
// digest is the digest of what is executed, whatever happens to the file.
type image struct {
	digest string
	path   string   // what the started process executes
	file   *os.File // inherited by the process as descriptor 3, or nil
}

// Close gives the copy up.
func (i *image) Close() error {
	if i.file == nil {
		return os.Remove(i.path)
	}
	return i.file.Close()
}

// files are the descriptors that the process inherits, from 3 on.
func (i *image) files() []*os.File {
	if i.file == nil {
		return nil
	}
	return []*os.File{i.file}
}

// openImage copies file, where the system can into memory, else into dir.
func openImage(file, dir string) (*image, error) {
	src, err := open(file)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	img, err := memoryImage(src)
	if err != nil {
		img, err = copyImage(src, dir)
	}
	if err != nil {
		return nil, problem.New(file, "", "%w", cause(err))
	}
	return img, nil
}

// copyImage copies src into a file of its own in dir.
func copyImage(src *os.File, dir string) (*image, error) {
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	// A process that is forked while the copy is open for writing would keep
	// it from being executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	dst, err := os.OpenFile(filepath.Join(dir, filepath.Base(src.Name())), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o500) //nolint:gosec // it is executed
	if err != nil {
		return nil, err
	}
	sum, err := hashCopy(dst, src)
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(dst.Name())
		return nil, err
	}
	return &image{digest: sum, path: dst.Name()}, nil
}

// open opens a plugin's file. It cannot block, whatever the file is.
func open(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, problem.New(file, "", "%w", cause(err))
	}
	info, err := f.Stat()
	if reason := unusable(info, err); reason != "" {
		f.Close()
		return nil, problem.New(file, "", "%s", reason)
	}
	return f, nil
}

// digest returns the SHA-256 of a plugin's file in hex.
func digest(file string) (string, error) {
	f, err := open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, err := hashCopy(io.Discard, f)
	if err != nil {
		return "", problem.New(file, "", "%w", cause(err))
	}
	return sum, nil
}

// hashCopy copies and returns the SHA-256 of what it copied, in hex.
func hashCopy(dst io.Writer, src io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.CopyBuffer(io.MultiWriter(dst, h), struct{ io.Reader }{src}, make([]byte, 256<<10)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
