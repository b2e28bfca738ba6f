// Package plugin finds the frontend plugins, decides which may run, runs them
// and returns their checked answers. It is the only importer of go-plugin in
// the host.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/srt"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/version"
	"github.com/research-harness/harness/sdk"
)

// Host runs the plugins of one machine.
type Host struct {
	System *system.System
	Home   string   // the real path of the home directory
	Dirs   []string // directories that the user named with --plugins, searched first
	Log    hclog.Logger

	// Timeout is the time from the start of a plugin to its answer.
	Timeout time.Duration
	// Bundled are the SHA-256 of the plugins that the host was built with, by
	// policy name. They need no trust.
	Bundled map[string]string

	probe     sync.Once
	bwrapFile string
}

// New returns a host for the world s with the limits of a real run. Its log
// goes nowhere.
func New(s *system.System, home string, dirs []string) *Host {
	return &Host{
		System: s, Home: home, Dirs: dirs, Log: hclog.NewNullLogger(),
		Timeout: 10 * time.Second, Bundled: version.Bundled(),
	}
}

// Found is a plugin's file.
type Found struct {
	Name    string // the policy name, from the file's name
	File    string
	Digest  string // SHA-256 of the file, lower-case hex
	Bundled bool   // the digest is the one that the build put in the host
}

// Frontend is a plugin with its checked answer.
type Frontend struct {
	sdk.Contribution
	Plugin  Found
	Request sdk.Request // what it answers
}

// prefix begins the file name of every plugin.
const prefix = "harness-frontend-"

var pluginName = regexp.MustCompile(`^` + prefix + `([a-z][a-z0-9-]*)$`)

// Dir is the directory of the plugins that belong to this host: the bundled
// ones, and those that were added.
func (h *Host) Dir() string {
	return filepath.Join(filepath.Dir(filepath.Dir(h.System.Exe)), "libexec", "research-harness", "frontends")
}

// search returns the directories that are searched, in order.
func (h *Host) search() ([]string, error) {
	var dirs []string
	for _, dir := range h.Dirs {
		dir = h.System.Abs(dir)
		if info, err := os.Stat(dir); err != nil {
			return nil, problem.New(dir, "--plugins", "%w", cause(err))
		} else if !info.IsDir() {
			return nil, problem.New(dir, "--plugins", "is not a directory")
		}
		dirs = append(dirs, dir)
	}
	for _, dir := range filepath.SplitList(h.System.Getenv("RESEARCH_HARNESS_PLUGINS")) {
		if dir != "" {
			dirs = append(dirs, h.System.Abs(dir))
		}
	}
	return append(dirs, h.Dir()), nil
}

// Discover returns the plugins that are there, in the order of
// [srt.CompareNames], trusted or not. Nothing is executed. Two files of one name are a problem.
func (h *Host) Discover() ([]Found, error) {
	found, err := h.discover()
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(found))
	each(found, func(i int) {
		found[i].Digest, errs[i] = digest(found[i].File)
		found[i].Bundled = h.bundled(found[i])
	})
	return found, errors.Join(errs...)
}

func (h *Host) bundled(f Found) bool { return f.Digest != "" && h.Bundled[f.Name] == f.Digest }

// discover is Discover without the digests.
func (h *Host) discover() ([]Found, error) {
	dirs, err := h.search()
	if err != nil {
		return nil, err
	}
	byName := map[string]Found{}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				return nil, problem.New(dir, "", "%w", cause(err))
			}
			h.Log.Debug("no plugin directory", "dir", dir)
			continue
		}
		for _, e := range entries {
			file := filepath.Join(dir, e.Name())
			m := pluginName.FindStringSubmatch(e.Name())
			if m == nil {
				h.Log.Debug("not named like a plugin, ignored", "file", file)
				continue
			}
			info, err := os.Stat(file)
			if reason := unusable(info, err); reason != "" {
				h.Log.Debug("not a plugin, ignored", "file", file, "reason", reason)
				continue
			}
			if other, ok := byName[m[1]]; ok {
				if o, err := os.Stat(other.File); err == nil && os.SameFile(o, info) {
					continue
				}
				return nil, problem.New(file, m[1], "is a second plugin of this name beside %s", other.File).
					WithHint("remove one of the two files")
			}
			byName[m[1]] = Found{Name: m[1], File: file}
		}
	}
	var found []Found
	for _, f := range byName {
		found = append(found, f)
	}
	slices.SortFunc(found, func(a, b Found) int { return srt.CompareNames(a.Name, b.Name) })
	return found, nil
}

// unusable says why a file cannot be a plugin, or nothing.
func unusable(info fs.FileInfo, err error) string {
	switch {
	case err != nil:
		return cause(err).Error()
	case info.IsDir():
		return "is a directory"
	case !info.Mode().IsRegular():
		return "is not a regular file"
	case info.Mode()&0o111 == 0:
		return "is not executable"
	}
	return ""
}

// At returns the plugin at path, which the user named.
func (h *Host) At(path string) (Found, error) {
	file := h.System.Abs(path)
	m := pluginName.FindStringSubmatch(filepath.Base(file))
	if m == nil {
		return Found{}, problem.New(file, "", "is not called %s<name>, with a name of lower-case letters, digits and hyphens", prefix)
	}
	if reason := unusable(os.Stat(file)); reason != "" {
		p := problem.New(file, "", "%s", reason)
		if reason == "is not executable" {
			p = p.WithHint("chmod +x %s", file)
		}
		return Found{}, p
	}
	f := Found{Name: m[1], File: file}
	var err error
	if f.Digest, err = digest(file); err != nil {
		return Found{}, err
	}
	f.Bundled = h.bundled(f)
	return f, nil
}

// Trust says why a plugin may run, or may not.
type Trust string

// The kinds of trust.
const (
	Bundled   Trust = "bundled"   // built with the host
	Trusted   Trust = "trusted"   // the user said yes to this file
	Changed   Trust = "changed"   // the user said yes to another file of this name
	Untrusted Trust = "untrusted" // the user was never asked
)

// Status is what is known of a plugin. Only one that is bundled or trusted
// was run.
type Status struct {
	Plugin   Found
	Trust    Trust
	Frontend Frontend // the answer, where it ran and Err is nil
	Err      error    // what is wrong with the file or the answer
}

// Survey asks every plugin that may run, all at once, and returns what is
// known of each, in the order of [srt.CompareNames].
func (h *Host) Survey(ctx context.Context) ([]Status, error) {
	found, err := h.discover()
	if err != nil {
		return nil, err
	}
	lock, err := h.ReadLock()
	if err != nil {
		return nil, err
	}
	sockets, err := newSocketDir(h.System)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(sockets)

	all := make([]Status, len(found))
	each(found, func(i int) { all[i] = h.survey(ctx, found[i], lock, sockets) })
	return all, nil
}

func (h *Host) survey(ctx context.Context, f Found, lock *Lock, sockets string) Status {
	img, err := openImage(f.File, sockets)
	if err != nil {
		return Status{Plugin: f, Trust: Untrusted, Err: err}
	}
	defer img.Close()
	f.Digest = img.digest
	f.Bundled = h.bundled(f)
	st := Status{Plugin: f, Trust: lock.judge(f)}
	if st.Trust != Bundled && st.Trust != Trusted {
		return st
	}
	st.Frontend, st.Err = h.ask(ctx, f, img, sockets)
	if st.Err == nil && st.Trust == Trusted {
		if wider := lock.Frontends[f.Name].Widened(st.Frontend); len(wider) > 0 {
			st.Err = problem.New(f.File, "", "asks for more than was trusted: %s", wider[0]).
				WithHint("harness frontend trust %s", f.Name)
		}
	}
	return st
}

// Load returns the answers of every plugin that may run. Named are the policy
// names that the user chose or named: each must be served. Another plugin
// that was never trusted is left out with a warning. Whatever else keeps a
// plugin from answering is a problem, since the state of a frontend that is
// not known cannot be protected from the others.
func (h *Host) Load(ctx context.Context, named []string) (frontends []Frontend, warnings []string, err error) {
	all, err := h.Survey(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range named {
		if !slices.ContainsFunc(all, func(st Status) bool { return st.Plugin.Name == name }) {
			return nil, nil, h.missing(name, all)
		}
	}
	for _, st := range all {
		f := st.Plugin
		switch {
		case st.Err != nil:
			return nil, nil, st.Err
		case st.Trust == Changed:
			return nil, nil, problem.New(f.File, "", "has changed since it was trusted").
				WithHint("harness frontend trust %s", f.Name)
		case st.Trust == Untrusted && slices.Contains(named, f.Name):
			return nil, nil, problem.New(f.File, "", "is not trusted").
				WithHint("harness frontend trust %s", f.Name)
		case st.Trust == Untrusted:
			warnings = append(warnings, fmt.Sprintf("%s is not trusted and was left out; to trust it: harness frontend trust %s", f.File, f.Name))
		default:
			frontends = append(frontends, st.Frontend)
		}
	}
	return frontends, warnings, distinct(frontends)
}

// Ask runs one plugin whatever its trust: the user said yes to this file. A
// file whose digest is no longer f.Digest is not run.
func (h *Host) Ask(ctx context.Context, f Found) (front Frontend, err error) {
	err = h.open(f, func(img *image, sockets string) error {
		front, err = h.ask(ctx, f, img, sockets)
		return err
	})
	return front, err
}

// open gives use the image of a plugin, if its file is still what f says.
func (h *Host) open(f Found, use func(img *image, sockets string) error) error {
	sockets, err := newSocketDir(h.System)
	if err != nil {
		return err
	}
	defer os.RemoveAll(sockets)
	img, err := openImage(f.File, sockets)
	if err != nil {
		return err
	}
	defer img.Close()
	if img.digest != f.Digest {
		return problem.New(f.File, "", "was replaced while it was being looked at").WithHint("run the command again")
	}
	return use(img, sockets)
}

// missing is the problem of a frontend that no plugin serves.
func (h *Host) missing(name string, all []Status) error {
	dirs, _ := h.search()
	for _, dir := range dirs {
		file := filepath.Join(dir, prefix+name)
		info, err := os.Stat(file)
		if _, lerr := os.Lstat(file); lerr == nil {
			return problem.New(file, "", "%s", unusable(info, err))
		}
	}
	var names []string
	for _, st := range all {
		names = append(names, st.Plugin.Name)
	}
	if len(names) == 0 {
		return problem.New("", name, "no plugin serves this frontend; none is installed in %s", h.Dir())
	}
	err := problem.New("", name, "no plugin serves this frontend; there are %s", strings.Join(names, ", "))
	near := problem.Nearest(name, names)
	for _, st := range all {
		if st.Frontend.Command == name {
			near = st.Plugin.Name
		}
	}
	if near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	return err
}

// distinct checks that no two frontends have one command or write one file.
func distinct(frontends []Frontend) error {
	commands, files := map[string]Frontend{}, map[string]Frontend{}
	for _, f := range frontends {
		if o, ok := commands[f.Command]; ok {
			return problem.New(f.Plugin.File, "command", "%q is also the command of %s", f.Command, o.Plugin.File).
				WithHint("remove one of the two files")
		}
		commands[f.Command] = f
		written := []string{f.Name + ".json"}
		for _, o := range f.Overrides {
			written = append(written, o.Name)
		}
		for _, name := range written {
			if o, ok := files[name]; ok {
				return problem.New(f.Plugin.File, "", "writes the file %s, as %s does", name, o.Plugin.File).
					WithHint("remove one of the two files")
			}
			files[name] = f
		}
	}
	return nil
}

// check validates an answer. Besides the rules of the SDK it follows symbolic
// links: a state that leads into a protected path is refused too.
func (h *Host) check(f Found, c sdk.Contribution, req sdk.Request) error {
	if c.Name != f.Name {
		return problem.New(f.File, "name", "%q is not the name in the file's name, %q", c.Name, f.Name)
	}
	if err := c.Validate(req); err != nil {
		if vs, ok := errors.AsType[sdk.Violations](err); ok {
			return problem.New(f.File, vs[0].Field, "%q %s", vs[0].Value, vs[0].Rule).
				WithHint("tell the plugin's author: %s", vs[0].Fix)
		}
		return problem.New(f.File, "", "%w", err)
	}
	keys := append(pathsOf("state", c.State), stringsOf("own", c.Own)...)
	for _, k := range keys {
		real := paths.Real(paths.Expand(h.Home, k.value))
		for _, prot := range sdk.ProtectedPaths() {
			p := paths.Real(paths.Expand(h.Home, prot))
			if paths.AtOrBelow(real, p) || paths.AtOrBelow(p, real) {
				return problem.New(f.File, k.key, "%q leads to %s, which is, holds or lies in the protected path %s", k.value, paths.Tilde(h.Home, real), prot)
			}
		}
	}
	return nil
}

type keyed struct{ key, value string }

func pathsOf(key string, ps []sdk.Path) []keyed {
	var out []keyed
	for i, p := range ps {
		out = append(out, keyed{fmt.Sprintf("%s[%d]", key, i), p.Path})
	}
	return out
}

func stringsOf(key string, ss []string) []keyed {
	var out []keyed
	for i, s := range ss {
		out = append(out, keyed{fmt.Sprintf("%s[%d]", key, i), s})
	}
	return out
}

// each calls f for every index of s, all at once, and waits.
func each[T any](s []T, f func(i int)) {
	var wg sync.WaitGroup
	for i := range s {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// cause drops the operation and path that the os package puts before an
// error: a problem names the file already.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
