// Package setup makes a machine ready for the sandbox: the sandbox runtime
// srt with a Node that it runs on, and the system's programs that it needs.
package setup

import (
	"context"
	"os"
	"strings"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/lock"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
)

// Options are the user's decisions.
type Options struct {
	Force          bool // replace an srt that setup did not write
	SystemPackages bool // install system packages with sudo; root needs no leave
}

// Plan is what a setup would do on this machine.
type Plan struct {
	Steps   []Step  // what setup can do, in order
	Blocked []error // what it cannot do; each hint says what to type
	Notes   []string
}

// Step is one change.
type Step struct {
	Text string // what it does, as "install srt …"
	do   func(context.Context) error
}

// planner makes a Plan.
type planner struct {
	s    *system.System
	at   layout.Layout
	opts Options
	root bool   // this user may install packages
	top  string // "/", where the kernel's settings and a container's marks are
	disk files.Disk
}

// Make looks at the machine and returns what is left to do. It changes
// nothing. home is the real path of the home directory.
func Make(ctx context.Context, s *system.System, home string, opts Options) (*Plan, error) {
	return newPlanner(s, home, opts).plan(ctx)
}

// Apply does what a Plan shows, telling progress each step before it begins,
// and then looks again: what it returns is what is left for the user. A
// failure leaves a working srt as it was, and a second run completes.
func Apply(ctx context.Context, s *system.System, home string, opts Options, progress func(Step)) (*Plan, error) {
	return newPlanner(s, home, opts).apply(ctx, progress)
}

func newPlanner(s *system.System, home string, opts Options) *planner {
	return &planner{s: s, at: layout.Layout{Home: home}, opts: opts, root: os.Geteuid() == 0, top: "/"}
}

func (p *planner) apply(ctx context.Context, progress func(Step)) (*Plan, error) {
	plan, err := p.plan(ctx)
	if err != nil || len(plan.Steps) == 0 {
		return plan, err
	}
	l, err := lock.Acquire(ctx, p.disk, p.at)
	if err != nil {
		return nil, err
	}
	defer l.Release()
	// Another setup may have done it all while this one waited.
	if plan, err = p.plan(ctx); err != nil {
		return nil, err
	}
	for _, step := range plan.Steps {
		progress(step)
		if err := step.do(ctx); err != nil {
			return nil, err
		}
	}
	if plan, err = p.plan(ctx); err != nil {
		return nil, err
	}
	for _, step := range plan.Steps {
		plan.Blocked = append(plan.Blocked, problem.New("setup", "", "done, and still left: %s", step.Text))
	}
	plan.Steps = nil
	return plan, nil
}

// plan puts the system's packages first: npm may be one of them.
func (p *planner) plan(ctx context.Context) (*Plan, error) {
	plan := &Plan{}
	if p.s.OS != "linux" && p.s.OS != "darwin" {
		return nil, problem.New("", "", "srt has no sandbox on %s", p.s.OS)
	}
	wantNpm, err := p.planRuntime(ctx, plan)
	if err != nil {
		return nil, err
	}
	p.planPackages(plan, wantNpm)
	if p.s.OS == "linux" && p.lookPath("bwrap") != "" {
		if err := p.namespaces(ctx); err != nil {
			plan.Blocked = append(plan.Blocked, err)
		}
	}
	return plan, nil
}

// tilde spells a path for people.
func (p *planner) tilde(path string) string { return paths.Tilde(p.at.Home, path) }

// quote makes one word for sh.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
