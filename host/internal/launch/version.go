package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/research-harness/harness/host/internal/system"
)

const (
	versionTimeout = 5 * time.Second
	versionOutput  = 64 << 10 // bytes of output that are looked at
)

// FindVersion runs program --version and returns the first version in what it
// prints, such as "1.18.33", or "" where it fails, takes longer than five
// seconds or prints none. env is its environment.
//
// The program runs outside the sandbox, so it gets as little as it can: no
// terminal, no input, and the root as its current directory, where no project
// can change what it does. Nothing that it started outlives the call.
func FindVersion(ctx context.Context, program string, env []string) string {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	var out limited
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Dir, cmd.Env, cmd.Stdout = "/", env, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 100 * time.Millisecond
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left running
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return ""
	}
	return parseVersion(out.Bytes())
}

// limited keeps the first bytes written to it and drops the rest.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), versionOutput-l.Len())])
	return len(p), nil
}

func parseVersion(out []byte) string {
	// Compiled here, because few starts need it.
	version := regexp.MustCompile(`(?:^|[^0-9A-Za-z.])v?([0-9]{1,9}\.[0-9]{1,9}(?:\.[0-9]{1,9})?(?:-[0-9A-Za-z][0-9A-Za-z.-]*)?)`)
	if m := version.FindSubmatch(out); m != nil {
		return string(m[1])
	}
	return ""
}

// satisfies reports whether version meets the constraint. A pre-release counts
// as its release, and an unknown version as newer than any.
func satisfies(version, constraint string) (bool, error) {
	c, err := semver.NewConstraint(constraint)
	if err != nil {
		return false, err
	}
	v, err := semver.NewVersion(version)
	if err != nil {
		return c.Check(semver.New(math.MaxInt32, 0, 0, "", "")), nil
	}
	return c.Check(semver.New(v.Major(), v.Minor(), v.Patch(), "", "")), nil
}

// FindProgram finds command on the caller's PATH and its version, or returns
// nil where there is no such program. specFile is the frontend's launch file,
// which may be missing: what it or an earlier start found out is used as long
// as the program is the same file.
func FindProgram(ctx context.Context, s *system.System, specFile, command string) *Program {
	path := lookPath(s, command)
	if path == "" {
		return nil
	}
	var spec Spec
	if data, err := readFile(specFile); err == nil {
		_ = decode(data, &spec) // a broken one knows no program
	}
	p, _ := findVersion(ctx, s, path, spec.Program, VersionCache(specFile))
	return p
}

// VersionCache is the file in which the launcher keeps the version of a
// program that changed since the install, by the frontend's launch file.
func VersionCache(specFile string) string {
	return strings.TrimSuffix(specFile, ".json") + ".version.json"
}

// findVersion describes the program that the user runs as path. The version
// comes from installed or from the file cache where they know this very file,
// else from the program itself; asked tells which.
func findVersion(ctx context.Context, s *system.System, path string, installed *Program, cache string) (p *Program, asked bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, false
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, false
	}
	p = &Program{Path: real, Size: info.Size(), ModTime: info.ModTime().UnixNano()}
	var kept Program
	if data, err := readFile(cache); err == nil {
		_ = json.Unmarshal(data, &kept)
	}
	for _, known := range []*Program{installed, &kept} {
		// A failure is not remembered, because the next call may do better.
		if known != nil && known.Version != "" && known.sameFile(p) {
			return known, false
		}
	}
	p.Version = FindVersion(ctx, path, s.Env)
	return p, true
}

func (p *Program) sameFile(q *Program) bool {
	return p.Path == q.Path && p.Size == q.Size && p.ModTime == q.ModTime
}
