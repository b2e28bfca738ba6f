package toolchain

import (
	"path/filepath"
	"strings"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/system"
)

// goEnv looks Go's settings up as the go command does: a variable that is set
// and not empty, else the file that "go env -w" writes.
type goEnv struct {
	s    *system.System
	file map[string]string
}

// newGoEnv reads the file that GOENV names, else go/env in the user's
// configuration directory. Without one, or with GOENV=off, there is the
// environment alone.
func newGoEnv(s *system.System, home string) goEnv {
	file := s.Getenv("GOENV")
	if file == "" {
		dir := s.Getenv("XDG_CONFIG_HOME")
		switch {
		case s.OS == "darwin":
			dir = filepath.Join(home, "Library", "Application Support")
		case dir == "":
			dir = filepath.Join(home, ".config")
		}
		file = filepath.Join(dir, "go", "env")
	}
	e := goEnv{s: s, file: map[string]string{}}
	if !filepath.IsAbs(file) {
		return e
	}
	data, err := files.Read(file)
	if err != nil {
		return e
	}
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		if ok && key != "" && key[0] >= 'A' && key[0] <= 'Z' {
			e.file[key] = value
		}
	}
	return e
}

func (e goEnv) get(key string) string {
	if v := e.s.Getenv(key); v != "" {
		return v
	}
	return e.file[key]
}
