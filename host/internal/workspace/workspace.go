// Package workspace adds directories to the workspaces of a profile and takes
// them out again. Every other byte of the profile stays as it is.
package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/lock"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/profile"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/toolchain"
)

// Workspaces are those of one profile.
type Workspaces struct {
	File string   // the profile, which may not exist yet
	Dirs []string // as the profile spells them

	home      string
	read, now []byte // the profile as it was and as it will be
}

// Load reads the workspaces of the profile in use: flag, else that of
// [profile.EnvFile], else the default one of home. One that does not exist has
// the default workspaces.
func Load(s *system.System, home, flag string) (*Workspaces, error) {
	w := &Workspaces{home: home}
	switch named := s.Getenv(profile.EnvFile); {
	case flag != "":
		w.File = s.Abs(flag)
	case named != "":
		w.File = s.Abs(named)
	default:
		w.File = layout.Layout{Home: home}.Profile()
	}
	data, err := files.Read(w.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	p, err := profile.Parse(w.File, data)
	if err != nil {
		return nil, err
	}
	w.read, w.now, w.Dirs = data, data, origin.Texts(p.Workspaces)
	return w, nil
}

// real is the directory that a spelling in the profile stands for.
func (w *Workspaces) real(dir string) string { return paths.Real(paths.Expand(w.home, dir)) }

// Holding returns the workspace in which dir lies, dir itself before one above
// it, or "".
func (w *Workspaces) Holding(dir string) string {
	found := ""
	for _, have := range w.Dirs {
		if w.real(have) == w.real(dir) {
			return have
		}
		if found == "" && paths.Below(w.real(dir), w.real(have)) {
			found = have
		}
	}
	return found
}

// Is reports whether dir is a workspace itself.
func (w *Workspaces) Is(dir string) bool {
	have := w.Holding(dir)
	return have != "" && w.real(have) == w.real(dir)
}

// Add makes dir, an absolute path, a workspace. A directory that is missing,
// or that no session may be given, is refused.
func (w *Workspaces) Add(dir string) error {
	real := w.real(dir)
	info, err := os.Stat(real)
	switch {
	case !filepath.IsAbs(real):
		return problem.New("", "", "the current directory is gone").WithHint("cd to one that exists")
	case errors.Is(err, fs.ErrNotExist):
		return problem.New("", dir, "there is no such directory").WithHint("mkdir -p %s", quote(dir))
	case err != nil:
		return files.Problem(dir, err)
	case !info.IsDir():
		return problem.New("", dir, "is not a directory")
	case !utf8.ValidString(real):
		return problem.New("", dir, "its name is not UTF-8, which no profile can hold")
	case paths.IsGlob(real) || strings.HasSuffix(real, "/**"):
		return problem.New("", dir, "srt takes one of * ? [ in its name for a pattern").WithHint("rename the directory")
	}
	if why := toolchain.Refused(real, w.home); why != "" {
		return problem.New("", dir, "%s, so that no session may write it", why).
			WithHint("name a directory of projects, such as ~/Research")
	}
	name := paths.Tilde(w.home, real)
	return w.edit(append(slices.Clone(w.Dirs), name), func(e *edit) error { return e.add(name, w.Dirs) })
}

// Remove makes dir, an absolute path, no workspace, however the profile spells
// it.
func (w *Workspaces) Remove(dir string) error {
	is := func(have string) bool { return w.real(have) == w.real(dir) }
	left := slices.DeleteFunc(slices.Clone(w.Dirs), is)
	return w.edit(left, func(e *edit) error { return e.remove(w.Dirs, is) })
}

// edit changes the profile's bytes and sees that they then say want and
// nothing else has changed.
func (w *Workspaces) edit(want []string, change func(*edit) error) error {
	e, err := newEdit(w.now)
	if err != nil {
		return err
	}
	if err := change(e); err != nil {
		return err
	}
	p, err := profile.Parse(w.File, e.data)
	if err != nil {
		return err
	}
	if got := origin.Texts(p.Workspaces); !slices.Equal(got, want) {
		return problem.New(w.File, "setup.workspaces", "is written in a way that cannot be edited here").
			WithHint("write it as: workspaces = [%s]", strings.Join(quoted(want), ", "))
	}
	w.now, w.Dirs = e.data, want
	return nil
}

// Write puts the profile on the disk, whole or not at all. One that is a
// symbolic link is written through to its target.
func (w *Workspaces) Write(ctx context.Context, d files.Disk) error {
	l, err := lock.Acquire(ctx, d, layout.Layout{Home: w.home})
	if err != nil {
		return err
	}
	defer l.Release()
	switch data, err := files.Read(w.File); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case !bytes.Equal(data, w.read):
		return problem.New(w.File, "", "was changed by another program just now").WithHint("type it again")
	}
	file, mode := paths.Real(w.File), fs.FileMode(0o644)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	if err := d.CreateDir(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return d.Replace(file, w.now, mode)
}

// quote makes one word for sh.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
