// Package cli turns arguments into calls of the packages that do the work,
// and what they return into output and an exit status. It has one file a verb
// and no logic of its own.
//
// Results go to standard output, progress and errors to standard error. An
// error is one line that begins with "harness: ", in lower case and without a
// period; what to type follows on a line that begins with "hint: ".
package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/scope"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/verify"
	"github.com/research-harness/harness/host/internal/version"
	"github.com/research-harness/harness/host/internal/warden"
)

// Exit statuses, as in the contract's section 1.
const (
	statusChange = 1 // a dry run found something to change, or a check a finding
	statusError  = 2 // usage error, bad input, or a failure while applying
)

// exitStatus ends a run with a status and no message of its own.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Main runs the harness with args, which do not hold the program's name, and
// returns its exit status.
func Main(s *system.System, args []string) int {
	if len(args) > 0 {
		switch args[0] { // a start pays for nothing else
		case "launch":
			return launchMain(s, args[1:])
		case "warden":
			return warden.Main(args[1:])
		case verify.Verb:
			return report(s, verify.ProbeMain(s))
		case scope.InnerVerb:
			return report(s, scope.Inner(args[1:]))
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := newRoot(s)
	root.SetArgs(args)
	return report(s, root.ExecuteContext(ctx))
}

// report prints err, if there is something to print, and returns the status.
func report(s *system.System, err error) int {
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	fmt.Fprintf(s.Stderr, "harness: %s\n", problem.OneLine(err.Error()))
	if hint := problem.HintOf(err); hint != "" {
		fmt.Fprintf(s.Stderr, "hint: %s\n", hint)
	}
	return statusError
}

func newRoot(s *system.System) *cobra.Command {
	root := &cobra.Command{
		Use:           "harness",
		Short:         "Run coding agents in a sandbox under one policy",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Version = version.Get().String()
	root.SetVersionTemplate("harness {{.Version}}\n")
	root.SetIn(s.Stdin)
	root.SetOut(s.Stdout)
	root.SetErr(s.Stderr)
	root.PersistentFlags().BoolP("verbose", "v", false, "log what the harness does")
	root.AddCommand(
		newRenderCmd(s),
		newInstallCmd(s),
		newUninstallCmd(s),
		newSetupCmd(s),
		newExecCmd(s),
		newCheckCmd(s),
		newFrontendCmd(s),
		newExplainCmd(s),
		newVerifyCmd(s),
		newVersionCmd(s),
	)
	return root
}
