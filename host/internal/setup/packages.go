package setup

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/srt"
)

// A manager is a system's package manager.
type manager struct {
	command string
	refresh []string          // what brings its lists up to date, where install does not
	install []string          // the arguments before the packages
	names   map[string]string // packages that it calls otherwise
	asUser  bool              // it refuses to run as root
}

var managers = []manager{
	{command: "apt-get", refresh: []string{"update", "-q"}, install: []string{"install", "-y", "-q", "--no-install-recommends"}, names: map[string]string{"which": "debianutils"}},
	{command: "dnf", install: []string{"install", "-y"}},
	{command: "pacman", install: []string{"-S", "--needed", "--noconfirm"}},
	{command: "zypper", install: []string{"--non-interactive", "install"}},
	{command: "apk", install: []string{"add"}},
	{command: "brew", install: []string{"install"}, names: map[string]string{"npm": "node"}, asUser: true},
}

// packages are those of programs that are not called like them.
var packages = map[string]string{"bwrap": "bubblewrap", "rg": "ripgrep"}

// planPackages adds the step that installs the missing system packages, or
// says what the user has to type.
func (p *planner) planPackages(plan *Plan, wantNpm bool) {
	var missing []string
	for _, program := range srt.Programs(p.s.OS) {
		if p.lookPath(program) == "" {
			missing = append(missing, cmp.Or(packages[program], program))
		}
	}
	if wantNpm && p.lookPath("npm") == "" {
		missing = append(missing, "npm")
	}
	if len(missing) == 0 {
		return
	}
	list := strings.Join(missing, ", ")
	blocked := func(hint string, args ...any) {
		plan.Blocked = append(plan.Blocked, problem.New("", list, "not installed").WithHint(hint, args...))
		if slices.Contains(missing, "npm") {
			plan.Steps = nil // srt cannot come without it
		}
	}
	m, ok := p.manager()
	if !ok {
		blocked("install with your system's package manager: %s", list)
		return
	}
	var commands [][]string
	sudo := !p.root && !m.asUser
	command := func(args ...string) {
		argv := append([]string{m.command}, args...)
		if sudo {
			argv = append([]string{"sudo"}, argv...)
		}
		commands = append(commands, argv)
	}
	if m.refresh != nil {
		command(m.refresh...)
	}
	args := slices.Clone(m.install)
	for _, pkg := range missing {
		args = append(args, cmp.Or(m.names[pkg], pkg))
	}
	command(args...)

	var lines []string
	for _, argv := range commands {
		lines = append(lines, strings.Join(argv, " "))
	}
	line := strings.Join(lines, " && ")
	if !p.root && !p.opts.SystemPackages || sudo && p.lookPath("sudo") == "" {
		blocked("%s", line)
		return
	}
	plan.Steps = append([]Step{{
		Text: "install system packages: " + line,
		do: func(ctx context.Context) error {
			for _, argv := range commands {
				if err := p.show(ctx, argv...); err != nil {
					return problem.New("", list, "cannot be installed: %s: %w", argv[0], err).WithHint("%s", line)
				}
			}
			return nil
		},
	}}, plan.Steps...)
}

func (p *planner) manager() (manager, bool) {
	for _, m := range managers {
		if p.lookPath(m.command) != "" && (m.command == "brew") == (p.s.OS == "darwin") {
			return m, true
		}
	}
	return manager{}, false
}
