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
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/exit"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/verify"
	"github.com/research-harness/harness/host/internal/version"
)

// Main runs the host proper with args, which do not hold the program's name, and
// returns its exit status.
func Main(s *system.System, args []string) int {
	if len(args) > 0 && args[0] == verify.Verb {
		return exit.Report(s, verify.ProbeMain(s))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := newRoot(s)
	root.SetArgs(args)
	return exit.Report(s, root.ExecuteContext(ctx))
}

func newRoot(s *system.System) *cobra.Command {
	root := &cobra.Command{
		Use:           "harness",
		Short:         "Run coding agents in a sandbox under one policy",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          verbs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Version = version.Get().String()
	root.SetFlagErrorFunc(flagProblem)
	root.SetVersionTemplate("harness {{.Version}}\n")
	root.SetIn(s.Stdin)
	root.SetOut(s.Stdout)
	root.SetErr(s.Stderr)
	root.PersistentFlags().BoolP("verbose", "v", false, "log what the harness does")
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [VERB]",
		Short: "Say what a verb does",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err == nil {
				err = verbs(cmd, rest)
			}
			if err != nil {
				return err
			}
			return cmd.Help()
		},
	})
	root.AddCommand(
		newRenderCmd(s),
		newInstallCmd(s),
		newUninstallCmd(s),
		newSetupCmd(s),
		newExecCmd(s),
		newCheckCmd(s),
		newWorkspaceCmd(s),
		newReportCmd(s),
		newFrontendCmd(s),
		newExplainCmd(s),
		newVerifyCmd(s),
		newDoctorCmd(s),
		newCompletionCmd(s),
		newVersionCmd(s),
	)
	return root
}
