// Package system holds what a verb knows of the world: the environment, the
// standard streams, the clock and the machine. Every verb gets it through one
// struct, so that a test can run it in-process.
package system

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/research-harness/harness/host/internal/problem"
)

// System is the world around one run of the harness.
type System struct {
	OS, Arch string   // as GOOS and GOARCH
	Env      []string // KEY=value, as os.Environ
	Dir      string   // the current directory, absolute; empty where it is gone
	Exe      string   // this program's own file, links resolved
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Now      func() time.Time
}

// Host returns the world of this process.
func Host() *System {
	s := &System{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Env: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now,
	}
	s.Dir, _ = os.Getwd()
	if exe, err := os.Executable(); err == nil {
		s.Exe = exe
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			s.Exe = real
		}
	}
	return s
}

// LookupEnv returns the value of a variable and whether it is set. Of a name
// that stands twice the last counts, as for a process that is started with
// the list.
func (s *System) LookupEnv(key string) (string, bool) {
	for i := len(s.Env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(s.Env[i], key+"="); ok {
			return v, true
		}
	}
	return "", false
}

// Getenv returns the value of a variable, empty where it is unset.
func (s *System) Getenv(key string) string {
	v, _ := s.LookupEnv(key)
	return v
}

// defaultDirs are what programs take for a variable that is unset, below home.
var defaultDirs = map[string]string{
	"CLAUDE_CONFIG_DIR": ".claude",
	"XDG_CACHE_HOME":    ".cache",
	"XDG_CONFIG_HOME":   ".config",
	"XDG_DATA_HOME":     ".local/share",
	"XDG_STATE_HOME":    ".local/state",
}

// Choice returns the value of a variable by which the user tells a program
// where to keep its files, and whether the user did. To be empty, or to name
// the place that the program takes anyway, is to be unset: which of them it is
// differs between a user's shells and means nothing.
func (s *System) Choice(key string) (string, bool) {
	v, ok := s.LookupEnv(key)
	if dir := defaultDirs[key]; v == "" || dir != "" && filepath.Clean(v) == filepath.Join(s.Getenv("HOME"), dir) {
		return "", false
	}
	return v, ok
}

// Home returns the real path of $HOME. HOME unset, relative, "/" or no
// directory is a problem.
func (s *System) Home() (string, error) {
	home, ok := s.LookupEnv("HOME")
	switch {
	case !ok || home == "":
		return "", problem.New("", "HOME", "is not set").WithHint("export HOME=/home/you")
	case !filepath.IsAbs(home):
		return "", problem.New("", "HOME", "%q is not an absolute path", home).WithHint("export HOME=/home/you")
	}
	real, err := filepath.EvalSymlinks(home)
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		return "", problem.New("", "HOME", "%s: %w", home, err).WithHint("export HOME=/home/you")
	}
	if real == "/" {
		return "", problem.New("", "HOME", "is the root directory").WithHint("export HOME=/home/you")
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", problem.New("", "HOME", "%s is not a directory", home).WithHint("export HOME=/home/you")
	}
	return real, nil
}

// For is the world of a user of another machine whose home directory is home.
// Of this one's environment it has what names the harness's own files, and
// where programs are.
func (s *System) For(home string) *System {
	other := *s
	other.Env = []string{"HOME=" + home}
	for _, kv := range s.Env {
		if strings.HasPrefix(kv, "PATH=") || strings.HasPrefix(kv, "RESEARCH_HARNESS_") {
			other.Env = append(other.Env, kv)
		}
	}
	return &other
}

// Abs makes a path that the user named absolute and clean.
func (s *System) Abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.Dir, path)
}
