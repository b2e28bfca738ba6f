package lock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/layout"
)

func TestOneAtATime(t *testing.T) {
	at := layout.Layout{Home: t.TempDir()}
	l, err := Acquire(t.Context(), files.Disk{}, at)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{filepath.Join(at.Home, ".config"), at.Config()}; !slices.Equal(l.Made, want) {
		t.Errorf("made %q, want %q", l.Made, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Acquire(ctx, files.Disk{}, at); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another holds it: %v", err)
	}
	l.Release()
	if l, err = Acquire(t.Context(), files.Disk{}, at); err != nil || len(l.Made) > 0 {
		t.Errorf("released: %v, made %q", err, l.Made)
	}
	l.Release()
}

// Each holder removes the lock and its directories before it lets go, as an
// uninstall does. Nobody fails for it, and no two hold it together.
func TestHolderRemovesTheLock(t *testing.T) {
	at := layout.Layout{Home: t.TempDir()}
	inside := filepath.Join(at.Home, "inside")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				l, err := Acquire(t.Context(), files.Disk{}, at)
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.Mkdir(inside, 0o700); err != nil {
					t.Error("two at once")
				}
				os.Remove(inside)
				os.Remove(at.Lock())
				os.Remove(at.Config())
				os.Remove(filepath.Dir(at.Config()))
				l.Release()
			}
		})
	}
	wg.Wait()
}

func TestSomethingElseInPlaceOfTheLock(t *testing.T) {
	for rule, plant := range map[string]func(path string) error{
		"a FIFO":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a symbolic link": func(path string) error { return os.Symlink("/dev/null", path) },
		"a directory":     func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(rule, func(t *testing.T) {
			at := layout.Layout{Home: t.TempDir()}
			if err := os.MkdirAll(at.Config(), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := plant(at.Lock()); err != nil {
				t.Fatal(err)
			}
			_, err := Acquire(t.Context(), files.Disk{}, at)
			if err == nil || err.Error() != at.Lock()+": is not a regular file" {
				t.Error(err)
			}
		})
	}
	t.Run("a link that dangles, in place of its directory", func(t *testing.T) {
		at := layout.Layout{Home: t.TempDir()}
		if err := os.Symlink("gone", filepath.Join(at.Home, ".config")); err != nil {
			t.Fatal(err)
		}
		_, err := Acquire(t.Context(), files.Disk{}, at)
		if err == nil || !strings.HasPrefix(err.Error(), filepath.Join(at.Home, ".config")+": ") {
			t.Error(err)
		}
	})
}
