// Package sources finds the four files that every policy is made from: each
// in the directory that the user names, where that holds it, else the
// embedded one.
package sources

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/research-harness/harness/host/defaults"
	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
)

// EnvDir names the directory of sources where no flag does.
const EnvDir = "RESEARCH_HARNESS_SOURCE"

// Source is one file.
type Source struct {
	// Name is the file as the user knows it: its path, or for an embedded one
	// its name below a source directory.
	Name     string
	Data     []byte
	Embedded bool
}

// Sources are the four files, and the directory that replaces some of them.
type Sources struct {
	Dir string // absolute, or empty

	Template Source // the Claude Code settings template
	Network  Source // the domain lists
	Policy   Source // the read limit
	Agentbox Source // the launcher
}

// Load reads the sources. The directory is dir, else that of [EnvDir], else
// none. A directory that is missing, or a file in it that cannot be read, is
// a problem.
func Load(s *system.System, dir string) (*Sources, error) {
	key := "--source"
	if dir == "" {
		dir, key = s.Getenv(EnvDir), EnvDir
	}
	if dir != "" {
		dir = s.Abs(dir)
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, problem.New(dir, key, "there is no such directory")
		case err != nil:
			return nil, files.Problem(dir, err)
		case !info.IsDir():
			return nil, problem.New(dir, key, "is not a directory")
		}
	}
	all := &Sources{Dir: dir}
	for _, f := range []struct {
		name string
		into *Source
	}{
		{defaults.Template, &all.Template},
		{defaults.Network, &all.Network},
		{defaults.Policy, &all.Policy},
		{defaults.Agentbox, &all.Agentbox},
	} {
		source, err := read(dir, f.name)
		if err != nil {
			return nil, err
		}
		*f.into = source
	}
	return all, nil
}

func read(dir, name string) (Source, error) {
	if dir != "" {
		path := filepath.Join(dir, name)
		data, err := files.Read(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return Source{Name: path, Data: data}, err
		}
		if target, err := os.Readlink(path); err == nil {
			return Source{}, problem.New(path, "", "is a symbolic link to %s, which does not exist", target)
		}
	}
	return Source{Name: name, Data: defaults.Read(name), Embedded: true}, nil
}
