package front

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/research-harness/harness/host/internal/exit"
	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/scope"
	"github.com/research-harness/harness/host/internal/shared"
	"github.com/research-harness/harness/host/internal/system"
)

// ExecOptions are what the user may say of a command in the scope.
type ExecOptions struct {
	ScopeOptions
	JSON    bool
	Timeout time.Duration
}

// ScopeOptions say which scope.
type ScopeOptions struct{ Workspace, Source, Profile string }

// parseExec reads the arguments of exec as the host proper does, whose library
// takes as long to load as all of this. Where they ask for help, are wrong or
// are spelled in a rarer way, ok is false, and the host reads them.
func parseExec(args []string) (o ExecOptions, command []string, ok bool) {
	values := map[string]*string{"--workspace": &o.Workspace, "--source": &o.Source, "--profile": &o.Profile}
	for len(args) > 0 {
		arg, rest := args[0], args[1:]
		if arg == "--" {
			return o, rest, len(rest) > 0
		}
		if !strings.HasPrefix(arg, "-") {
			return o, args, true
		}
		if arg == "--json" {
			o.JSON, args = true, rest
			continue
		}
		flag, value, glued := strings.Cut(arg, "=")
		if !glued {
			if len(rest) == 0 {
				return o, nil, false
			}
			value, rest = rest[0], rest[1:]
		}
		if into := values[flag]; into != nil {
			*into = value
		} else if d, err := time.ParseDuration(value); flag == "--timeout" && err == nil {
			o.Timeout = d
		} else {
			return o, nil, false
		}
		args = rest
	}
	return o, nil, false
}

// Exec runs one command in the workspace scope.
func Exec(s *system.System, o ExecOptions, command []string) error {
	if o.Timeout < 0 {
		return problem.New("", "--timeout", "%v is less than nothing", o.Timeout)
	}
	sc, err := LoadScope(s, o.ScopeOptions)
	if err != nil {
		return err
	}
	if o.JSON {
		return execJSON(s, sc, command, o.Timeout)
	}
	out, err := sc.Run(s, command, o.Timeout)
	if err != nil {
		return err
	}
	if out.TimedOut {
		fmt.Fprintf(s.Stderr, "harness: timed out after %v, and the command and all that it started was ended\n", o.Timeout)
	}
	if out.Signal != 0 { // what sent it to us is to see that it worked
		signal.Reset(out.Signal)
		_ = syscall.Kill(os.Getpid(), out.Signal)
	}
	return exit.Of(out.Status)
}

func execJSON(s *system.System, sc *scope.Scope, command []string, timeout time.Duration) error {
	r, err := sc.Capture(s, command, timeout)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(s.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return err
	}
	return exit.Of(r.ExitCode)
}

// LoadScope resolves the workspace scope under the policy that o names, and
// prints its warnings.
func LoadScope(s *system.System, o ScopeOptions) (*scope.Scope, error) {
	home, err := s.Home()
	if err != nil {
		return nil, err
	}
	set, err := shared.LoadPaths(s, home, o.Source, o.Profile)
	if err != nil {
		return nil, err
	}
	so := scope.Options{Workspace: o.Workspace, Home: home}
	sandbox := set.Template.Sandbox
	for _, list := range [][]origin.Value{sandbox.DenyRead, sandbox.Credentials} {
		for _, v := range list {
			so.DenyRead = append(so.DenyRead, paths.Expand(home, v.Text))
		}
	}
	for _, p := range []string{s.Exe, Host(s.Exe), set.Profile.File, set.Sources.Dir} {
		if p != "" {
			so.Protect = append(so.Protect, p)
		}
	}
	sc, err := scope.New(s, so)
	if err != nil {
		return nil, err
	}
	for _, w := range sc.Warnings {
		fmt.Fprintf(s.Stderr, "harness: warning: %s\n", problem.OneLine(w))
	}
	return sc, nil
}
