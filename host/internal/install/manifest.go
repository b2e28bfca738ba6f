package install

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/merge"
	"github.com/research-harness/harness/host/internal/problem"
)

// manifest records what install put into a home directory, so that a later
// install removes what it no longer wants and uninstall takes everything back.
type manifest struct {
	Version int `json:"version"`
	// Files are the install's own, with the SHA-256 of what it wrote.
	Files map[string]string `json:"files"`
	// Created are paths that were missing and that are the user's now, each
	// with "dir" or the SHA-256 of what the file was made with.
	Created map[string]string `json:"created"`
	// Merged are the settings files into which the template was merged, with
	// what the merge changed.
	Merged map[string]merge.Record `json:"merged,omitempty"`
	// TempDir is the temporary directory that the settings allow, or empty.
	TempDir string `json:"tempDir,omitempty"`
}

const manifestVersion = 1

// readManifest returns an empty manifest where the file is missing.
func readManifest(path string) (*manifest, error) {
	m := &manifest{Version: manifestVersion, Files: map[string]string{}}
	data, err := files.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, m); err != nil {
		if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = fmt.Errorf("%s has the wrong type", cmp.Or(te.Field, "it"))
		}
		return nil, problem.New(path, "", "is not a manifest: %w", err).
			WithHint("mv %s %s.old, then run the command again; what an earlier install changed elsewhere is then left as it is", path, path)
	}
	if m.Version != manifestVersion {
		return nil, problem.New(path, "version", "%d was written by another version of the harness", m.Version)
	}
	if m.Files == nil {
		m.Files = map[string]string{}
	}
	return m, nil
}

func (m *manifest) encode() []byte {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		panic("a manifest of strings does not encode: " + err.Error())
	}
	return append(data, '\n')
}

// union is a manifest that holds what either does, with the newer sums and
// records. It is what the disk agrees with in the middle of an install.
func (m *manifest) union(next *manifest) *manifest {
	u := *next
	u.Files = maps.Clone(m.Files)
	maps.Copy(u.Files, next.Files)
	return &u
}
