package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/exit"
	"github.com/research-harness/harness/host/internal/setup"
	"github.com/research-harness/harness/host/internal/system"
)

func newSetupCmd(s *system.System) *cobra.Command {
	var o setup.Options
	var apply bool
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Show what this machine lacks for the sandbox, or install it",
		Long: `Show what this machine lacks for the sandbox, or install it with --apply: the
sandbox runtime srt, a Node that it runs on, and the system packages that it
needs. Without --apply the exit status is 1 when something is missing.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := s.Home()
			if err != nil {
				return err
			}
			if apply {
				plan, err := setup.Apply(cmd.Context(), s, home, o, func(step setup.Step) {
					fmt.Fprintf(s.Stderr, "harness: %s\n", step.Text)
				})
				return setupResult(s, plan, err, exit.Error)
			}
			plan, err := setup.Make(cmd.Context(), s, home, o)
			return setupResult(s, plan, err, exit.Change)
		},
	}
	cmd.Flags().BoolVar(&apply, "apply", false, "install it")
	cmd.Flags().BoolVar(&o.Force, "force", false, "replace an srt command that setup did not write")
	cmd.Flags().BoolVar(&o.SystemPackages, "system-packages", false, "install system packages with sudo")
	return cmd
}

// setupResult prints a plan. Its status is left where the plan leaves work.
func setupResult(s *system.System, plan *setup.Plan, err error, left exit.Status) error {
	if err != nil {
		return err
	}
	for _, note := range plan.Notes {
		fmt.Fprintf(s.Stderr, "harness: note: %s\n", note)
	}
	for _, step := range plan.Steps {
		fmt.Fprintf(s.Stdout, "would %s\n", step.Text)
	}
	for _, err := range plan.Blocked {
		exit.Report(s, err)
	}
	if len(plan.Steps)+len(plan.Blocked) > 0 {
		return left
	}
	fmt.Fprintf(s.Stdout, "srt %s is ready\n", setup.SrtVersion)
	return nil
}
