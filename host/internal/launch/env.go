package launch

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/research-harness/harness/host/internal/access"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/system"
)

// socketName is the longest name that srt gives a socket in its temporary
// directory, the slash before it included.
const socketName = len("/claude-socks-0123456789abcdef.sock")

// tempDir sets the variables that decide where srt and the session keep
// temporary files. The session gets the caller's directory, through a variable
// without which srt would give it one that may not exist. srt itself gets
// another where it cannot work with the caller's: its sockets need a short
// name, and its mounts one without symbolic links.
func (l launcher) tempDir(model *access.Model, env []string) []string {
	if l.s.Getenv("CLAUDE_CODE_TMPDIR") == "" && l.s.Getenv("CLAUDE_TMPDIR") == "" {
		for _, dir := range []string{l.s.Getenv("TMPDIR"), "/tmp"} {
			if real, ok := l.realDir(dir); ok && model.Write(real).Allowed {
				env = setenv(env, "CLAUDE_CODE_TMPDIR", real)
				break
			}
		}
	}
	longest := 107 // a socket's path without the final NUL
	if l.s.OS == "darwin" {
		longest = 103
	}
	// As Node finds it.
	if tmp := cmp.Or(l.s.Getenv("TMPDIR"), l.s.Getenv("TMP"), l.s.Getenv("TEMP")); tmp != "" {
		real, ok := l.realDir(tmp)
		if !ok || unix.Access(real, unix.W_OK|unix.X_OK) != nil || len(real)+socketName > longest {
			real = "/tmp"
		}
		if real != filepath.Clean(tmp) {
			env = setenv(env, "TMPDIR", real)
		}
	}
	return env
}

// realDir returns the real path of dir and whether it is a directory.
func (l launcher) realDir(dir string) (string, bool) {
	if dir == "" {
		return "", false
	}
	real, err := filepath.EvalSymlinks(l.s.Abs(dir))
	if err != nil {
		return "", false
	}
	info, err := os.Stat(real)
	return real, err == nil && info.IsDir()
}

func setenv(env []string, key, value string) []string {
	env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, key+"=") })
	return append(env, key+"="+value)
}

// warning names what the session cannot write although it would, in one line,
// or is "": the current directory, the temporary directory that the caller set
// for it, and the caches of the moment, without which builds fail or start cold.
func (l launcher) warning(model *access.Model) string {
	writes := func(dir string) bool { return model.Write(dir).Allowed }
	var bad []string
	if dir, ok := l.realDir(l.s.Dir); ok && !writes(dir) {
		bad = append(bad, fmt.Sprintf("the current directory %s (start in a workspace)", dir))
	}
	for _, key := range []string{"CLAUDE_CODE_TMPDIR", "CLAUDE_TMPDIR"} {
		if value := l.s.Getenv(key); value != "" {
			if dir, ok := l.realDir(value); !ok || !writes(dir) {
				bad = append(bad, fmt.Sprintf("%s=%s (unset it)", key, value))
			}
			break // of two the first counts
		}
	}
	if caches := l.blockedCaches(writes); caches != nil {
		bad = append(bad, strings.Join(caches, ", ")+"; type: harness install --apply")
	}
	if bad == nil {
		return ""
	}
	return "warning: the session cannot write " + strings.Join(bad, ", nor ")
}

// blockedCaches are the cache variables whose directory the session cannot
// write.
func (l launcher) blockedCaches(writes func(string) bool) []string {
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
			if filepath.IsAbs(dir) && !writes(filepath.Join(dir, v.below)) {
				bad = append(bad, fmt.Sprintf("%s=%s", v.key, dir))
			}
		}
	}
	return bad
}

// SessionEnv is the environment of a session as a start would set it, for the
// sandbox runtime of the settings that model stands for.
func SessionEnv(s *system.System, home string, model *access.Model) []string {
	l := launcher{s: s, lay: layout.Layout{Home: home}}
	return l.tempDir(model, append(slices.Clone(s.Env), "AGENTBOX=1"))
}
