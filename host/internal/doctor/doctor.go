// Package doctor looks at the whole machine for what keeps sessions from
// starting or from working, and says for each fault what to type.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/research-harness/harness/host/internal/access"
	"github.com/research-harness/harness/host/internal/audit"
	"github.com/research-harness/harness/host/internal/install"
	"github.com/research-harness/harness/host/internal/launch"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/setup"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/warden"
)

// Finding is a fault, and how to mend it where that is safe.
type Finding struct {
	audit.Finding
	mend func(context.Context) error
}

// Fixable tells whether [Fix] mends the fault.
func (f Finding) Fixable() bool { return f.mend != nil }

// Run looks at the machine of s and returns what is wrong, what blocks most
// first. It changes nothing. load reads what policies are made from; that it
// fails is a finding.
func Run(ctx context.Context, s *system.System, home string, load func(context.Context) (*render.Set, error)) ([]Finding, error) {
	d := &doctor{s: s, home: home, at: layout.Layout{Home: home}}
	if err := d.machine(ctx); err != nil {
		return nil, err
	}
	set, err := load(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		d.find("policy-broken", "", audit.Error, "policy", cmp.Or(problem.HintOf(err), "mend the file that is named"), "%v", err)
	default:
		if err := d.policies(ctx, set); err != nil {
			return nil, err
		}
	}
	d.leftovers("", d.here())
	d.environment()
	slices.SortStableFunc(d.found, func(a, b Finding) int { return a.Severity.Compare(b.Severity) })
	return d.found, nil
}

// Fix mends what can be mended safely, telling progress each fault before.
func Fix(ctx context.Context, found []Finding, progress func(Finding)) error {
	for _, f := range found {
		if f.mend == nil {
			continue
		}
		progress(f)
		if err := f.mend(ctx); err != nil {
			return err
		}
	}
	return nil
}

type doctor struct {
	s     *system.System
	home  string
	at    layout.Layout
	found []Finding
}

func (d *doctor) find(id, frontend string, severity audit.Severity, subject, fix, format string, args ...any) *Finding {
	d.found = append(d.found, Finding{Finding: audit.Finding{
		ID: id, Frontend: frontend, Severity: severity, Subject: paths.Tilde(d.home, subject), Fix: fix,
		Message: problem.OneLine(fmt.Sprintf(format, args...)),
	}})
	return &d.found[len(d.found)-1]
}

const (
	setupAgain   = "harness setup --apply"
	installAgain = "harness install --apply"
)

// machine finds what a setup would do or cannot do: srt, Node, bubblewrap and
// the other programs, and the kernel's leave to make sandboxes.
func (d *doctor) machine(ctx context.Context) error {
	plan, err := setup.Make(ctx, d.s, d.home, setup.Options{})
	if err != nil {
		return err
	}
	for _, step := range plan.Steps {
		d.find("setup-incomplete", "", audit.Error, "setup", setupAgain, "setup is not complete: it has to %s", step.Text)
	}
	for _, err := range plan.Blocked {
		d.find("setup-blocked", "", audit.Error, "setup", cmp.Or(problem.HintOf(err), setupAgain), "%v", err)
	}
	return nil
}

// policies finds what is wrong with what is installed, and with what would be.
func (d *doctor) policies(ctx context.Context, set *render.Set) error {
	quiet := *d.s
	quiet.Stdout, quiet.Stderr = io.Discard, io.Discard
	changed, err := install.Run(ctx, &quiet, set, install.Options{})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		d.find("install-refused", "", audit.Error, "install", cmp.Or(problem.HintOf(err), "mend the file that is named"), "%v", err)
	case changed:
		f := d.find("install-stale", "", audit.Warning, d.at.Config(), installAgain, "what is installed is not what the sources, the profile and the plugins give now")
		f.mend = func(ctx context.Context) error {
			_, err := install.Run(ctx, &quiet, set, install.Options{Apply: true})
			return err
		}
	}
	for _, f := range set.Chosen {
		policy, err := set.Policy(f.Name)
		if err != nil {
			return err
		}
		for _, finding := range audit.Check(policy, audit.For(d.s, set, f)) {
			d.found = append(d.found, Finding{Finding: finding})
		}
		model := access.New(policy, d.s.OS, d.home)
		for _, p := range f.State {
			if _, err := os.Stat(p.Path); errors.Is(err, fs.ErrNotExist) {
				d.find("state-missing", f.Name, audit.Error, p.Path, installAgain,
					"%s, the state of %s, does not exist, so a session loses what it writes there", paths.Tilde(d.home, p.Path), f.Name)
			}
			d.linksOut(f.Name, p.Path, model)
		}
		d.leftovers(f.Name, origin.Texts(policy.DenyWrite))
	}
	d.programs(ctx, set)
	return nil
}

// linksOut finds links in a state directory to what a session does not see: the
// frontend would behave as if its file were not there.
func (d *doctor) linksOut(frontend, state string, model *access.Model) {
	left := 5000 // entries to look at; a state can hold any number
	_ = filepath.WalkDir(state, func(p string, e fs.DirEntry, err error) error {
		left--
		switch {
		case left < 0:
			return fs.SkipAll
		case err != nil:
			return fs.SkipDir
		case e.IsDir() && strings.Count(strings.TrimPrefix(p, state), "/") >= 3:
			return fs.SkipDir
		case e.Type()&fs.ModeSymlink == 0:
			return nil
		}
		target, err := filepath.EvalSymlinks(p)
		if err == nil && !model.Read(p).Allowed {
			d.find("link-hidden", frontend, audit.Warning, p,
				fmt.Sprintf("add %q to [read] allow in sandbox/policy.toml of a source directory", paths.Tilde(d.home, target)),
				"%s leads to %s, which a session does not see, so %s takes it for absent", paths.Tilde(d.home, p), paths.Tilde(d.home, target), frontend)
		}
		return nil
	})
}

// leftovers finds among places the empty files that srt puts where a write is
// denied, and that it did not remove because it was killed.
func (d *doctor) leftovers(frontend string, places []string) {
	var mounted map[string]bool // what runs now needs its files
	for _, p := range places {
		info, err := os.Lstat(p)
		if err != nil || !info.Mode().IsRegular() || info.Size() != 0 || info.Mode().Perm() != 0o444 {
			continue
		}
		if mounted == nil {
			mounted = warden.MountPoints()
		}
		if mounted[p] || slices.ContainsFunc(d.found, func(f Finding) bool { return f.ID == "placeholder-left" && f.Subject == paths.Tilde(d.home, p) }) {
			continue
		}
		f := d.find("placeholder-left", frontend, audit.Warning, p, "rm -f "+paths.Shell(d.home, p),
			"%s is an empty file that a killed session left behind", paths.Tilde(d.home, p))
		f.mend = func(context.Context) error { return os.Remove(p) }
	}
}

// here is where srt puts such files in the current directory.
func (d *doctor) here() []string {
	if d.s.Dir == "" {
		return nil
	}
	var out []string
	for _, name := range access.GuardedNames() {
		dir, _, nested := strings.Cut(name, "/")
		out = append(out, filepath.Join(d.s.Dir, name))
		if nested && dir != ".git" { // which srt leaves alone where it is missing
			out = append(out, filepath.Join(d.s.Dir, dir))
		}
	}
	return out
}

// programs finds frontends whose program is missing, hidden from its session, or
// of a version that its plugin was not tested with.
func (d *doctor) programs(ctx context.Context, set *render.Set) {
	versions := make([]string, len(set.Chosen))
	programs := make([]string, len(set.Chosen))
	var wg sync.WaitGroup
	for i, f := range set.Chosen {
		programs[i] = launch.Find(d.s, f.Command)
		if programs[i] != "" && f.TestedVersions != "" {
			wg.Go(func() { versions[i] = launch.FindVersion(ctx, programs[i], d.s.Env) })
		}
	}
	wg.Wait()
	for i, f := range set.Chosen {
		program := programs[i]
		if program == "" {
			d.find("program-missing", f.Name, audit.Note, f.Command, "install "+cmp.Or(f.Title, f.Name)+", or leave it out of [setup] frontends",
				"no program %s is on PATH", f.Command)
			continue
		}
		policy, err := set.Policy(f.Name)
		if err != nil {
			continue // said above
		}
		model := access.New(policy, d.s.OS, d.home)
		real, err := filepath.EvalSymlinks(program)
		if err != nil {
			real = program
		}
		for _, p := range slices.Compact([]string{real, program}) {
			if v := model.Read(p); !v.Allowed {
				d.find("program-hidden", f.Name, audit.Error, p,
					fmt.Sprintf("add %q to [read] allow in sandbox/policy.toml of a source directory", paths.Tilde(d.home, filepath.Dir(p))),
					"a session does not see its program %s: %s", paths.Tilde(d.home, p), v.Reason)
				break
			}
		}
		if ok, err := launch.Satisfies(versions[i], f.TestedVersions); versions[i] != "" && err == nil && !ok {
			d.find("program-untested", f.Name, audit.Note, program, "report what does not work",
				"%s is version %s, and its plugin was tested with %s", f.Command, versions[i], f.TestedVersions)
		}
	}
}

// environment finds what in the user's environment gets in the way.
func (d *doctor) environment() {
	bin := d.at.Bin()
	if !slices.ContainsFunc(filepath.SplitList(d.s.Getenv("PATH")), func(dir string) bool { return dir != "" && paths.Real(d.s.Abs(dir)) == paths.Real(bin) }) {
		d.find("path", "", audit.Warning, "PATH", `export PATH="$HOME/.local/bin:$PATH"`, "%s is not on PATH, so agentbox is not found", paths.Tilde(d.home, bin))
	} else if found := launch.Find(d.s, "agentbox"); found != "" && paths.Real(found) != paths.Real(d.at.Agentbox()) {
		d.find("path-other", "", audit.Warning, found, `export PATH="$HOME/.local/bin:$PATH"`, "agentbox is %s, which is not the one of this harness", paths.Tilde(d.home, found))
	}
	if home := filepath.Clean(d.s.Getenv("HOME")); home != d.home {
		d.find("home-link", "", audit.Note, "HOME", "nothing, as long as the link stays", "HOME is %s, a link to %s, and policies name the latter", home, d.home)
	}
	if tmp := d.s.Getenv("TMPDIR"); tmp != "" {
		if info, err := os.Stat(tmp); err != nil || !info.IsDir() {
			d.find("temp-dir", "", audit.Warning, "TMPDIR", "mkdir -p "+paths.Shell(d.home, tmp), "TMPDIR is %s, which is no directory, so sessions get /tmp", tmp)
		}
	}
	if info, err := os.Stat("/tmp/claude"); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
			d.find("tmp-claude", "", audit.Note, "/tmp/claude", "start sessions with agentbox, which gives them another directory",
				"/tmp/claude, where srt puts temporary files by itself, belongs to another user")
		}
	}
}
