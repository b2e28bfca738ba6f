// Package launch starts a frontend in its sandbox from what install wrote. It
// reads two files, runs no plugin, and starts nothing unless every check
// passes.
package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"github.com/research-harness/harness/host/internal/access"
	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/srt"
	"github.com/research-harness/harness/host/internal/system"
)

// Start is a session that may start: the sandbox runtime, what it runs, and
// in which environment.
type Start struct {
	Path      string   // the sandbox runtime, absolute
	Argv, Env []string // as for execve
	Warning   string   // one line for the user, or empty
}

// Prepare checks whether args, a frontend's command and its arguments, may
// start, and returns how. An error is a refusal: one line that holds its
// remedy. The first check that fails decides, in the order of the code.
func Prepare(ctx context.Context, s *system.System, args []string) (*Start, error) {
	home, err := s.Home()
	if err != nil {
		return nil, fmt.Errorf("%w; type: export HOME=/home/you", err)
	}
	l := launcher{s: s, lay: layout.Layout{Home: home}}
	if err := l.known(args); err != nil {
		return nil, err
	}
	command, rest := args[0], args[1:]
	if _, ok := s.LookupEnv("AGENTBOX"); ok {
		return nil, errors.New("this is a session already (AGENTBOX is set), and one cannot start in another; type the command without agentbox, or: unset AGENTBOX")
	}
	if !executable(l.lay.Srt()) {
		return nil, fmt.Errorf("%s is not an executable file; type: harness setup --apply", l.lay.Srt())
	}
	spec, settings, err := l.files(command)
	if err != nil {
		return nil, err
	}
	program := lookPath(s, command)
	if program == "" {
		return nil, fmt.Errorf("no program %s on PATH; install %s or add its directory to PATH", command, cmp.Or(spec.Title, command))
	}
	if err := refusedArg(spec, rest); err != nil {
		return nil, err
	}
	// What srt cannot parse it refuses itself, and says why.
	var model *access.Model
	if parsed, err := srt.Decode(settings); err == nil {
		model = access.New(parsed.Policy(spec.Settings), s.OS, home)
		if err := l.visible(model, spec, program); err != nil {
			return nil, err
		}
	}
	if err := l.sameEnv(spec); err != nil {
		return nil, err
	}
	if err := l.programs(); err != nil {
		return nil, err
	}
	extra, err := l.args(ctx, spec, program)
	if err != nil {
		return nil, err
	}
	start := &Start{
		Path: l.lay.Srt(),
		Argv: slices.Concat([]string{l.lay.Srt(), "--settings", spec.Settings, "--", program}, extra, rest),
		Env:  append(slices.Clone(s.Env), "AGENTBOX=1"),
	}
	if model != nil {
		start.Env = l.tempDir(model, start.Env)
		start.Warning = l.warning(model)
	}
	return start, nil
}

type launcher struct {
	s   *system.System
	lay layout.Layout
}

// bundled are the frontends to tell of where nothing is installed.
var bundled = []IndexEntry{
	{"claude", "claude", "Claude Code"},
	{"opencode", "opencode", "OpenCode"},
	{"omp", "omp", "oh-my-pi"},
	{"antigravity", "agy", "Antigravity"},
}

// Frontends returns every frontend that install knew, or the bundled ones
// where it has not run.
func Frontends(lay layout.Layout) []IndexEntry {
	var x Index
	if data, err := readFile(lay.Index()); err == nil && decode(data, &x) == nil && len(x.Frontends) > 0 {
		return x.Frontends
	}
	return bundled
}

var commandName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// known refuses a missing or unknown command. The index is read only where
// the command has no launch file.
func (l launcher) known(args []string) error {
	if len(args) > 0 && commandName.MatchString(args[0]) && l.lay.Launch(args[0]) != l.lay.Index() {
		_, err := os.Lstat(l.lay.Launch(args[0]))
		if !errors.Is(err, fs.ErrNotExist) || l.indexed(args[0]) != nil {
			return nil
		}
	}
	var commands []string
	meant := ""
	for _, f := range Frontends(l.lay) {
		commands = append(commands, f.Command)
		if len(args) > 0 && f.Name == args[0] {
			meant = f.Command
		}
	}
	list := strings.Join(commands, ", ")
	if len(args) == 0 {
		return fmt.Errorf("no frontend named; type agentbox and one of: %s", list)
	}
	if meant = cmp.Or(meant, problem.Nearest(args[0], commands)); meant != "" {
		return fmt.Errorf("no frontend %q; did you mean: agentbox %s (one of: %s)", args[0], meant, list)
	}
	return fmt.Errorf("no frontend %q; type agentbox and one of: %s", args[0], list)
}

func (l launcher) indexed(command string) *IndexEntry {
	for _, f := range Frontends(l.lay) {
		if f.Command == command {
			return &f
		}
	}
	return nil
}

// files reads the launch file of command and its settings, and sees that the
// override files are there.
func (l launcher) files(command string) (Spec, []byte, error) {
	const remedy = "type: harness install --apply"
	var spec Spec
	file := l.lay.Launch(command)
	data, err := readFile(file)
	if err == nil {
		err = decode(data, &spec)
	}
	if err == nil && (spec.Command != command || !filepath.IsAbs(spec.Settings)) {
		err = errors.New("not what install writes")
	}
	if err != nil {
		if f := l.indexed(command); f != nil && errors.Is(err, fs.ErrNotExist) {
			return spec, nil, fmt.Errorf("%s: %w; %s (the profile's [setup] frontends, where it is set, must name %q)", file, err, remedy, f.Name)
		}
		return spec, nil, fmt.Errorf("%s: %w; %s", file, err, remedy)
	}
	settings, err := readFile(spec.Settings)
	if err != nil {
		return spec, nil, fmt.Errorf("%s: %w; %s", spec.Settings, err, remedy)
	}
	for _, o := range spec.Overrides {
		if err := regular(o); err != nil {
			return spec, nil, fmt.Errorf("%s: %w; %s", o, err, remedy)
		}
	}
	return spec, settings, nil
}

// regular reports whether name is a regular file or a link to one. Its error
// does not name the file.
func regular(name string) error {
	info, err := os.Stat(name)
	if err == nil {
		err = files.Regular(info)
	}
	return files.Cause(err)
}

// readFile reads a regular file. Its error does not name the file.
func readFile(name string) ([]byte, error) {
	data, err := files.Read(name)
	return data, errors.Unwrap(err)
}

func executable(name string) bool {
	return regular(name) == nil && unix.Access(name, unix.X_OK) == nil
}

// lookPath finds command on the caller's PATH as "command -v" does, relative
// and empty entries included, or returns "". The result is absolute, so that
// it means the same file wherever it is used.
func lookPath(s *system.System, command string) string {
	path, ok := s.LookupEnv("PATH")
	if !ok {
		return "" // while an empty PATH is the current directory
	}
	for dir := range strings.SplitSeq(path, ":") {
		if !filepath.IsAbs(dir) && s.Dir == "" {
			continue
		}
		if p := filepath.Join(s.Abs(dir), command); executable(p) {
			return p
		}
	}
	return ""
}

func refusedArg(spec Spec, args []string) error {
	for _, arg := range args {
		for _, r := range spec.Refused {
			if arg == r.Arg || strings.HasPrefix(arg, r.Arg+"=") {
				return fmt.Errorf("%s may not be given to %s: %s", r.Arg, spec.Command, r.Reason)
			}
		}
	}
	return nil
}

// visible refuses a start whose program or current directory the session
// would not see: it would fail in ways that hide the cause, or work in an
// empty directory and lose what it writes.
func (l launcher) visible(model *access.Model, spec Spec, program string) error {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return fmt.Errorf("%s: %w; install %s again", program, files.Cause(err), cmp.Or(spec.Title, spec.Command))
	}
	for _, p := range []string{real, program} {
		v := model.Read(p)
		if v.Allowed {
			continue
		}
		remedy := "take that entry out of the settings template"
		if paths.Below(p, l.lay.Home) {
			place := filepath.Dir(p)
			if place == l.lay.Home {
				place = p
			}
			remedy = fmt.Sprintf("add %q to [read] allow in sandbox/policy.toml", paths.Tilde(l.lay.Home, place))
		}
		return fmt.Errorf("the program %s is hidden from the session %s; %s of a source directory DIR and type: harness install --source DIR --apply", p, cause(v), remedy)
	}
	dir, err := filepath.EvalSymlinks(l.s.Dir)
	if l.s.Dir == "" || err != nil {
		return errors.New("the current directory is gone; change to one that exists")
	}
	if v := model.Read(dir); !v.Allowed {
		if paths.AtOrBelow(l.lay.Home, dir) {
			return fmt.Errorf("the current directory %s is hidden from the session %s; change to a workspace, such as ~/Research/project", dir, cause(v))
		}
		return fmt.Errorf("the current directory %s is hidden from the session %s; change to a workspace, or make it one: harness workspace add && harness install --apply", dir, cause(v))
	}
	return nil
}

// cause says what hides something.
func cause(v access.Verdict) string {
	if v.Entry.Text == "" {
		return "(" + v.Reason + ")"
	}
	return fmt.Sprintf("by the %s entry %s", v.Rule, v.Entry.Text)
}

// sameEnv refuses a variable on which the settings depend and which has
// another value than at install.
func (l launcher) sameEnv(spec Spec) error {
	for _, key := range slices.Sorted(maps.Keys(spec.Env)) {
		was := spec.Env[key]
		is, ok := l.s.Choice(key)
		switch {
		case was == nil && ok:
			return fmt.Errorf("%s is %q but was not set at install; unset it, or type: harness install --apply", key, is)
		case was != nil && !ok:
			return fmt.Errorf("%s is not set but was %q at install; set it, or type: harness install --apply", key, *was)
		case was != nil && *was != is:
			return fmt.Errorf("%s is %q but was %q at install; set it back, or type: harness install --apply", key, is, *was)
		}
	}
	return nil
}

// programs refuses a start that the runtime would refuse in its own words.
func (l launcher) programs() error {
	var missing []string
	for _, name := range srt.Programs(l.s.OS) {
		if lookPath(l.s, name) == "" {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("the sandbox needs %s, not found on PATH; type: harness setup --apply --system-packages", strings.Join(missing, ", "))
}

// args returns the frontend's arguments that hold for the program's version,
// which is found out only where one depends on it.
func (l launcher) args(ctx context.Context, spec Spec, program string) ([]string, error) {
	version := sync.OnceValue(func() string { return l.version(ctx, spec, program) })
	var out []string
	for _, a := range spec.Args {
		if a.Versions != "" {
			ok, err := satisfies(version(), a.Versions)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w; type: harness install --apply", l.lay.Launch(spec.Command), a.Versions, err)
			}
			if !ok {
				continue
			}
		}
		out = append(out, a.Value)
	}
	return out, nil
}

// version returns the program's version, and keeps one that it had to ask for.
func (l launcher) version(ctx context.Context, spec Spec, program string) string {
	cache := VersionCache(l.lay.Launch(spec.Command))
	p, asked := findVersion(ctx, l.s, program, spec.Program, cache)
	if p == nil {
		return ""
	}
	if asked && p.Version != "" {
		_ = renameio.WriteFile(cache, encode(p), 0o644) // or the next start asks again
	}
	return p.Version
}

// Exec turns this process into the session. It returns only on failure.
func (s *Start) Exec() error {
	err := syscall.Exec(s.Path, s.Argv, s.Env)
	switch {
	case errors.Is(err, syscall.E2BIG):
		return errors.New("the arguments and the environment are too long; pass less, for example through a file")
	default:
		return fmt.Errorf("%s: %w; type: harness setup --apply --force", s.Path, err)
	}
}

// Usage is what "agentbox --help" prints.
func Usage(s *system.System) string {
	known := bundled
	if home, err := s.Home(); err == nil {
		known = Frontends(layout.Layout{Home: home})
	}
	var b strings.Builder
	b.WriteString("usage: agentbox FRONTEND [ARG...]\n\nStart a coding agent in its sandbox. Every ARG reaches the agent unchanged.\n\nfrontends:\n")
	for _, f := range known {
		b.WriteString(problem.OneLine(fmt.Sprintf("  %-12s %s", f.Command, f.Title)) + "\n")
	}
	return b.String()
}
