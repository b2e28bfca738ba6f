package front

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

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

// Flags defines the options as flags.
func (o *ExecOptions) Flags(f *pflag.FlagSet) {
	f.SetInterspersed(false)
	f.BoolVar(&o.JSON, "json", false, "capture the output and print the result as JSON")
	f.DurationVar(&o.Timeout, "timeout", 0, "end the command after this time, such as 90s or 10m")
	o.ScopeOptions.Flags(f)
}

// ScopeOptions say which scope.
type ScopeOptions struct{ Workspace, Source, Profile string }

// Flags defines the options as flags.
func (o *ScopeOptions) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.Workspace, "workspace", "", "directory that the command may write (default: the current one)")
	f.StringVar(&o.Source, "source", "", "directory of sources that replace the embedded ones (RESEARCH_HARNESS_SOURCE)")
	f.StringVar(&o.Profile, "profile", "", "profile to use (RESEARCH_HARNESS_PROFILE, ~/.config/research-harness/profile.toml)")
}

// parseExec reads the arguments of exec. Where they ask for help or are wrong,
// ok is false, and the host proper knows what to say.
func parseExec(args []string) (o ExecOptions, command []string, ok bool) {
	f := pflag.NewFlagSet("exec", pflag.ContinueOnError)
	f.Usage = func() {}
	o.Flags(f)
	err := f.Parse(args)
	return o, f.Args(), err == nil && f.NArg() > 0
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
