package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/access"
)

// socketName is the longest name that srt gives a socket in its temporary
// directory, the slash before it included.
const socketName = len("/claude-socks-0123456789abcdef.sock")

// tempDir sets the variables that decide where srt and the session keep
// temporary files. srt makes its sockets in TMPDIR, and gives the session a
// TMPDIR of its own choice unless a variable tells it one.
func (l launcher) tempDir(model *access.Model, env []string) []string {
	tmp := l.s.Getenv("TMPDIR")
	if l.s.Getenv("CLAUDE_CODE_TMPDIR") == "" && l.s.Getenv("CLAUDE_TMPDIR") == "" {
		for _, dir := range []string{tmp, "/tmp"} {
			if real, ok := l.writableDir(model, dir); ok {
				env = setenv(env, "CLAUDE_CODE_TMPDIR", real)
				break
			}
		}
	}
	longest := 107 // sun_path without its final NUL
	if l.s.OS == "darwin" {
		longest = 103
	}
	if len(tmp)+socketName > longest {
		env = setenv(env, "TMPDIR", "/tmp")
	}
	return env
}

// writableDir returns the real path of dir and whether it is a directory that
// the session can write.
func (l launcher) writableDir(model *access.Model, dir string) (string, bool) {
	if dir == "" {
		return "", false
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(l.s.Dir, dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(real)
	return real, err == nil && info.IsDir() && model.Write(real).Allowed
}

func setenv(env []string, key, value string) []string {
	env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, key+"=") })
	return append(env, key+"="+value)
}

// cacheWarning names the cache variables whose directory the session cannot
// write, or returns "". Builds in the session would fail or start cold.
func (l launcher) cacheWarning(model *access.Model) string {
	var bad []string
	for _, v := range []struct{ key, below string }{
		{"GOCACHE", ""}, {"GOMODCACHE", ""}, {"GOPATH", "pkg"}, {"XDG_CACHE_HOME", ""},
		{"npm_config_cache", ""}, {"CARGO_HOME", "registry"},
	} {
		value := l.s.Getenv(v.key)
		dirs := []string{value}
		if v.key == "GOPATH" {
			dirs = filepath.SplitList(value)
		}
		for _, dir := range dirs {
			if filepath.IsAbs(dir) && !model.Write(filepath.Join(dir, v.below)).Allowed {
				bad = append(bad, fmt.Sprintf("%s=%s", v.key, dir))
			}
		}
	}
	if bad == nil {
		return ""
	}
	return fmt.Sprintf("warning: the session cannot write %s; type: harness install --apply", strings.Join(bad, ", "))
}
