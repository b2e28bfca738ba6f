// Package version holds what the build says of itself. The build sets the
// variables with -ldflags -X.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

var (
	version = "0.0.0-dev" // set by the build
	commit  = ""          // set by the build
	bundled = ""          // set by the build: "name=sha256 name=sha256 …"
)

// Info is what "harness version" prints.
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// Get returns the build's information. The commit is "unknown" where neither
// the build nor Go's own stamp tells it.
func Get() Info {
	i := Info{Version: version, Commit: commit, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if i.Commit == "" {
		i.Commit = "unknown"
		if bi, ok := debug.ReadBuildInfo(); ok {
			for _, s := range bi.Settings {
				if s.Key == "vcs.revision" {
					i.Commit = s.Value
				}
			}
		}
	}
	return i
}

// String is the information on one line.
func (i Info) String() string {
	return fmt.Sprintf("%s (commit %s, %s, %s/%s)", i.Version, i.Commit, i.Go, i.OS, i.Arch)
}

// Bundled returns the SHA-256, in lower-case hex, of each plugin that was
// built with this host, by policy name. They are trusted as they are.
func Bundled() map[string]string {
	m := map[string]string{}
	for pair := range strings.FieldsSeq(bundled) {
		if name, sum, ok := strings.Cut(pair, "="); ok {
			m[name] = sum
		}
	}
	return m
}
