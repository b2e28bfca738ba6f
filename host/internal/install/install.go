// Package install writes what sessions run under: the srt settings, what the
// launcher reads, the launcher itself, and the paths that the sandbox can
// protect only when they exist. It computes everything first and shows it, and
// changes nothing unless told to.
package install

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/audit"
	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/front"
	"github.com/research-harness/harness/host/internal/launch"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/lock"
	"github.com/research-harness/harness/host/internal/merge"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/srt"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/toolchain"
	"github.com/research-harness/harness/sdk"
)

// Options say how to install.
type Options struct {
	Apply bool
	Disk  files.Disk
	// Root is the real path of the tree to install into, as for an image or
	// another machine, or empty. The files say what holds once the tree is that
	// machine's root, and nothing but the tree is looked at.
	Root string
}

// Run installs set for the user of s. Without Apply it prints the difference
// to standard output and reports whether there is one; with it, it makes the
// changes and says on standard error what it did. On an error while applying
// each file is whole, old or new, and another run completes the work.
func Run(ctx context.Context, s *system.System, set *render.Set, o Options) (changed bool, err error) {
	in := &installer{sys: s, set: set, root: o.Root, at: layout.Layout{Home: set.Home}}
	if err := in.prepare(ctx); err != nil {
		return false, err
	}
	p, err := in.plan()
	if err != nil {
		return false, err
	}
	for _, w := range append(slices.Clone(set.Warnings), in.warnings...) {
		fmt.Fprintf(s.Stderr, "harness: warning: %s\n", problem.OneLine(w))
	}
	if !o.Apply {
		p.writeDiff(s.Stdout)
		if p.mergeChanges {
			fmt.Fprintln(s.Stderr, restartLine)
		}
		return len(p.changes) > 0, in.tellTempDir(p)
	}
	if len(p.changes) == 0 {
		fmt.Fprintln(s.Stderr, "harness: nothing to change")
		return false, nil
	}
	l, err := lock.Acquire(ctx, o.Disk, layout.Layout{Home: o.Root + set.Home})
	if err != nil {
		return false, err
	}
	defer l.Release()
	for _, dir := range l.Made {
		in.locked = append(in.locked, created{path: strings.TrimPrefix(dir, o.Root), dir: true})
	}
	// What another install has done since counts.
	if p, err = in.plan(); err != nil {
		return false, err
	}
	if err := o.Disk.Sweep(p.paths()); err != nil {
		return false, err
	}
	done := &teller{sys: s, home: set.Home}
	err = p.apply(o.Disk, done.note)
	done.tell()
	if err == nil && p.mergeChanges {
		fmt.Fprintln(s.Stderr, restartLine)
	}
	return true, err
}

const restartLine = "harness: restart Claude Code to use its new settings"

// tellTempDir says so where a plan changes nothing but the temporary directory:
// that differs from one terminal to the next on some systems.
func (in *installer) tellTempDir(p *plan) error {
	now := in.tempDir()
	if now == p.oldTempDir {
		return nil
	}
	before := in.set.WithTempDir(p.oldTempDir)
	same := map[string][]byte{}
	for _, f := range in.set.Chosen {
		policy, err := before.Policy(f.Name)
		if err != nil {
			return err
		}
		same[in.at.Settings(f.Name)] = policy.Settings().Encode()
	}
	for _, c := range p.changes {
		if old, ok := same[c.path]; !c.quiet && (!ok || !bytes.Equal(c.old, old)) {
			return nil
		}
	}
	fmt.Fprintf(in.sys.Stderr, "harness: only TMPDIR differs (%s, at install %s); sessions that may not write it keep temporary files in /tmp\n",
		problem.OneLine(cmp.Or(now, "none")), problem.OneLine(cmp.Or(p.oldTempDir, "none")))
	return nil
}

// tempDir is the temporary directory of which the policies have an entry.
func (in *installer) tempDir() string {
	for _, p := range in.policies {
		for _, w := range p.AllowWrite {
			if w.Origin.Source == "TMPDIR" {
				return w.Text
			}
		}
	}
	return ""
}

// installer computes the plan of one install.
type installer struct {
	sys      *system.System
	set      *render.Set
	root     string
	at       layout.Layout // without the root
	policies []*srt.Policy // of the chosen frontends, in their order
	programs []*launch.Program
	warnings []string
	locked   []created // directories that exist since the lock was taken
}

// prepare does what does not depend on the files that the install writes.
func (in *installer) prepare(ctx context.Context) error {
	for _, f := range in.set.Chosen {
		p, err := in.set.Policy(f.Name)
		if err != nil {
			return err
		}
		for _, finding := range audit.Check(p, audit.For(in.sys, in.set, f)) {
			switch finding.Severity {
			case audit.Error:
				return finding.Err()
			case audit.Warning:
				in.warn("%s; %s", finding.Message, finding.Fix)
			}
		}
		in.policies = append(in.policies, p)
		in.programs = append(in.programs, in.program(ctx, f))
	}
	if in.set.Profile.ToolchainCaches && in.root == "" {
		for _, l := range toolchain.Links(in.sys, in.set.Home) {
			in.warn("%s is a symbolic link to %s, which srt does not follow, so builds in a session find no cache there; "+
				"replace the link by the directory, or set the tool's cache variable to %s", paths.Tilde(in.set.Home, l.Name), l.Target, l.Target)
		}
	}
	return nil
}

// program finds the frontend's program and its version, where an argument
// depends on it. What an earlier install or start found is used while the
// file is the same.
func (in *installer) program(ctx context.Context, f render.Frontend) *launch.Program {
	if in.root != "" || !slices.ContainsFunc(f.Args, func(a sdk.Arg) bool { return a.Versions != "" }) {
		return nil
	}
	return launch.FindProgram(ctx, in.sys, in.at.Launch(f.Command), f.Command)
}

// plan compares what should be with the disk.
func (in *installer) plan() (*plan, error) {
	p := &plan{created: slices.Clone(in.locked), root: in.root}
	old, err := readManifest(p.on(in.at.Manifest()))
	if err != nil {
		return nil, err
	}
	p.oldTempDir = old.TempDir
	next := &manifest{Version: manifestVersion, Files: map[string]string{}, Created: map[string]string{}, TempDir: in.tempDir()}

	steps := []func(*plan) error{in.binaries, in.createPaths, in.settings, in.launcher}
	for _, step := range steps {
		if err := step(p); err != nil {
			return nil, err
		}
	}
	if err := in.mergeSettings(p, old, next); err != nil {
		return nil, err
	}
	if err := in.removeOld(p, old); err != nil {
		return nil, err
	}
	if err := in.record(p, old, next); err != nil {
		return nil, err
	}
	return p, p.inside()
}

// binaries plans a copy of the harness, its host and the bundled plugins where
// agentbox looks for them, when the harness runs from elsewhere.
func (in *installer) binaries(p *plan) error {
	from := map[string]string{in.at.Harness(): in.sys.Exe, in.at.Host(): front.Host(in.sys.Exe)}
	for _, f := range in.set.Frontends {
		if f.Plugin.Bundled {
			from[filepath.Join(in.at.Plugins(), filepath.Base(f.Plugin.File))] = f.Plugin.File
		}
	}
	inPlace := in.sys.Exe == "" || in.root == "" && in.sys.Exe == paths.Real(in.at.Harness()) || len(in.set.Chosen) == 0
	for _, to := range slices.Sorted(maps.Keys(from)) {
		if inPlace {
			in.keep(p, to)
			continue
		}
		data, err := files.ReadProgram(from[to])
		if err != nil {
			return err
		}
		if err := p.file(to, 0o755, data); err != nil {
			return err
		}
	}
	return nil
}

// keep records a file that an earlier install put there.
func (in *installer) keep(p *plan, path string) {
	if exists(p.on(path)) {
		p.kept = append(p.kept, path)
	}
}

// createPaths plans what the sandbox can grant or protect only when it
// exists: the states, what is write-denied below an allowed path, and the
// toolchains' directories.
func (in *installer) createPaths(p *plan) error {
	if len(in.set.Chosen) == 0 {
		return nil
	}
	for _, d := range in.set.Caches {
		if d.Create {
			if err := p.ensure(d.Path, true, nil); err != nil {
				return err
			}
		}
	}
	for _, f := range in.set.Chosen {
		for _, path := range slices.Concat(f.State, f.Ensure) {
			if err := in.ensure(p, path); err != nil {
				return err
			}
		}
	}
	declared := map[string]sdk.Path{}
	for _, f := range in.set.Frontends {
		for _, path := range slices.Concat(f.Ensure, f.State) {
			declared[paths.Expand(in.set.Home, path.Path)] = path
		}
	}
	for i := range in.set.Chosen {
		for _, deny := range in.deniedBelowAllowed(in.policies[i]) {
			path, ok := declared[deny.Text]
			if !ok {
				if _, err := os.Lstat(p.on(deny.Text)); errors.Is(err, fs.ErrNotExist) && !p.creates(deny.Text) {
					in.warn("%s is write-denied and missing, so a session leaves an empty file there while it runs (%s)",
						paths.Tilde(in.set.Home, deny.Text), deny.Origin)
				}
				continue
			}
			if err := in.ensure(p, path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *installer) warn(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(in.warnings, w) {
		in.warnings = append(in.warnings, w)
	}
}

func (in *installer) ensure(p *plan, path sdk.Path) error {
	return p.ensure(paths.Expand(in.set.Home, path.Path), path.Kind == sdk.Dir, path.Content)
}

// deniedBelowAllowed are the write denies that lie strictly below a write
// path, globs aside. On Linux a write path above home does not reach into
// home, over which the read limit mounts an empty directory.
func (in *installer) deniedBelowAllowed(p *srt.Policy) []origin.Value {
	home := in.set.Home
	return slices.DeleteFunc(slices.Clone(p.DenyWrite), func(d origin.Value) bool {
		return paths.IsGlob(d.Text) || !slices.ContainsFunc(p.AllowWrite, func(w origin.Value) bool {
			cutOff := in.sys.OS == "linux" && paths.AtOrBelow(home, w.Text) && paths.AtOrBelow(d.Text, home)
			return paths.Below(d.Text, w.Text) && !cutOff
		})
	})
}

// settings plans the settings and override files.
func (in *installer) settings(p *plan) error {
	for i, f := range in.set.Chosen {
		for _, o := range f.Overrides {
			if err := p.file(in.at.Override(o.Name), 0o644, o.Content); err != nil {
				return err
			}
		}
		if err := p.file(in.at.Settings(f.Name), 0o644, in.policies[i].Settings().Encode()); err != nil {
			return err
		}
	}
	return nil
}

// launcher plans what a start reads, and agentbox.
func (in *installer) launcher(p *plan) error {
	for i, f := range in.set.Chosen {
		if err := p.file(in.at.Launch(f.Command), 0o644, in.spec(f, in.programs[i]).Encode()); err != nil {
			return err
		}
	}
	if len(in.set.Chosen) == 0 {
		return nil
	}
	var index launch.Index
	for _, f := range in.set.Frontends {
		index.Frontends = append(index.Frontends, launch.IndexEntry{Name: f.Name, Command: f.Command, Title: f.Title})
	}
	if err := p.file(in.at.Index(), 0o644, index.Encode()); err != nil {
		return err
	}
	return p.file(in.at.Agentbox(), 0o755, in.set.Sources.Agentbox.Data)
}

func (in *installer) spec(f render.Frontend, program *launch.Program) launch.Spec {
	spec := launch.Spec{
		Frontend: f.Name, Command: f.Command, Title: f.Title,
		Settings: in.at.Settings(f.Name), Program: program,
		Env: map[string]*string{},
	}
	for _, o := range f.Overrides {
		spec.Overrides = append(spec.Overrides, in.at.Override(o.Name))
	}
	for _, a := range f.Args {
		arg := launch.Arg{Value: a.Literal, Versions: a.Versions}
		if a.Override != "" {
			arg.Value = in.at.Override(a.Override)
		}
		spec.Args = append(spec.Args, arg)
	}
	for _, r := range f.RefusedArgs {
		spec.Refused = append(spec.Refused, launch.Refused{Arg: r.Arg, Reason: r.Reason})
	}
	for _, name := range f.Env {
		spec.Env[name] = nil
		if v, ok := in.sys.Choice(name); ok {
			spec.Env[name] = &v
		}
	}
	return spec
}

// mergeSettings plans the merge of the template into the settings files of
// the chosen frontends that have one. A frontend that is no longer chosen
// keeps what was merged, like the rest of its state.
func (in *installer) mergeSettings(p *plan, old, next *manifest) error {
	next.Merged = maps.Clone(old.Merged)
	for _, f := range in.set.Chosen {
		if f.SettingsFile == "" {
			continue
		}
		name := paths.Expand(in.set.Home, f.SettingsFile)
		t, err := p.readThrough(name)
		if err != nil {
			return err
		}
		if !t.existed {
			t.data = p.contentOf(name)
		}
		merged, rec, err := merge.Merge(name, t.data, in.set.Template.Settings, old.Merged[name])
		if err != nil {
			return err
		}
		if next.Merged == nil {
			next.Merged = map[string]merge.Record{}
		}
		next.Merged[name] = rec
		if err := p.merge(t, merged); err != nil {
			return err
		}
	}
	return nil
}

// removeOld plans the removal of settings, override and launch files that no
// chosen frontend has any more, of agentbox after the last one, and of copied
// plugins that this host is not built with.
func (in *installer) removeOld(p *plan, old *manifest) error {
	stale := slices.Sorted(maps.Keys(old.Files))
	for _, f := range in.set.Frontends { // in case the manifest was lost
		stale = append(stale, in.at.Settings(f.Name), in.at.Launch(f.Command))
		for _, o := range f.Overrides {
			stale = append(stale, in.at.Override(o.Name))
		}
	}
	if len(in.set.Chosen) == 0 {
		stale = append(stale, in.at.Index(), in.at.Agentbox())
	}
	slices.Sort(stale)
	for _, path := range slices.Compact(stale) {
		if slices.Contains(p.written, path) || slices.Contains(p.kept, path) {
			continue
		}
		if err := p.absentWithCache(in.at, path); err != nil {
			return err
		}
	}
	return nil
}

// absentWithCache plans that a file is gone, and with a launch file what the
// launcher keeps beside it.
func (p *plan) absentWithCache(at layout.Layout, path string) error {
	if filepath.Dir(path) == at.LaunchDir() {
		if err := p.absent(launch.VersionCache(path)); err != nil {
			return err
		}
	}
	return p.absent(path)
}

// record plans the manifest, first with what an earlier install and this one
// own together, so that a crash between two changes loses nothing.
func (in *installer) record(p *plan, old, next *manifest) error {
	for _, c := range p.changes {
		if c.write && slices.Contains(p.written, c.path) {
			next.Files[c.path] = files.Digest(c.data)
		}
	}
	for _, path := range slices.Concat(p.written, p.kept) {
		if _, ok := next.Files[path]; ok {
			continue
		}
		sum, ok := old.Files[path]
		if !ok && slices.Contains(p.written, path) {
			data, err := files.ReadProgram(p.on(path))
			if err != nil {
				return err
			}
			sum, ok = files.Digest(data), true
		}
		if ok {
			next.Files[path] = sum
		}
	}
	for path, what := range old.Created {
		if exists(p.on(path)) {
			next.Created[path] = what
		}
	}
	for _, c := range p.created {
		next.Created[c.path] = "dir"
		if !c.dir {
			next.Created[c.path] = files.Digest(c.data)
		}
	}
	if len(next.Files)+len(next.Created)+len(next.Merged) == 0 {
		return p.absent(in.at.Manifest())
	}
	return p.bracket(in.at.Manifest(), old.union(next).encode(), next.encode())
}
