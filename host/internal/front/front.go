// Package front is the part of the harness that every session and every
// command in the scope starts with. It links only what those need and hands
// every other verb to the host proper, because loading that takes three times
// as long as all of a launch.
package front

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/research-harness/harness/host/internal/exit"
	"github.com/research-harness/harness/host/internal/launch"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/report"
	"github.com/research-harness/harness/host/internal/scope"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/warden"
)

// Main runs the harness with args, which do not hold the program's name, and
// returns its exit status.
func Main(s *system.System, args []string) int {
	s.Exe = beside(s)
	if len(args) > 0 {
		switch args[0] {
		case "launch":
			return launchMain(s, args[1:])
		case report.Verb:
			if len(args) > 1 {
				return launchMain(s, args[2:], func(start *launch.Start) { report.Wrap(s, start, args[1]) })
			}
		case "warden":
			return warden.Main(args[1:])
		case scope.InnerVerb:
			return exit.Report(s, scope.Inner(s, args[1:]))
		case "exec":
			if o, command, ok := parseExec(args[1:]); ok {
				return exit.Report(s, Exec(s, o, command))
			}
		}
	}
	return exit.Report(s, host(s, args))
}

// Host is the file of the host proper, which belongs to the harness at exe.
func Host(exe string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(exe)), "libexec", "research-harness", "harness-host")
}

// beside is the name of this program beside whose directory the rest of the
// harness lies: its file, unless ~/.local/bin is a link to elsewhere.
func beside(s *system.System) string {
	if _, err := os.Stat(Host(s.Exe)); err == nil {
		return s.Exe
	}
	home, err := s.Home()
	if err != nil {
		return s.Exe
	}
	if at := (layout.Layout{Home: home}).Harness(); paths.Real(at) == s.Exe {
		return at
	}
	return s.Exe
}

// host turns this process into the host proper. It returns only on failure.
func host(s *system.System, args []string) error {
	file := Host(s.Exe)
	err := syscall.Exec(file, append([]string{"harness"}, args...), s.Env)
	return problem.New(file, "", "%w", err).WithHint("make install, in the source of the harness")
}
