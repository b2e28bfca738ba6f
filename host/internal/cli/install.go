package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/exit"
	"github.com/research-harness/harness/host/internal/install"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/system"
)

func newInstallCmd(s *system.System) *cobra.Command {
	var src render.Options
	var o install.Options
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Show what would be written for the chosen frontends, or write it",
		Long: `Show what would be written for the chosen frontends as a unified diff, or
write it with --apply. Without --apply the exit status is 1 when something
would change.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := loadSet(s, cmd, src)
			if err != nil {
				return err
			}
			changed, err := install.Run(cmd.Context(), s, set, o)
			return dryStatus(changed && !o.Apply, err)
		},
	}
	addSourceFlags(cmd, &src)
	cmd.Flags().BoolVar(&o.Apply, "apply", false, "write the changes")
	return cmd
}

func newUninstallCmd(s *system.System) *cobra.Command {
	var o install.Options
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Show what uninstalling would take back, or take it back",
		Long: `Show what uninstalling would take back as a unified diff, or take it back
with --apply. What you have changed since the install stays, and is named.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := s.Home()
			if err != nil {
				return err
			}
			changed, err := install.Uninstall(cmd.Context(), s, home, o)
			return dryStatus(changed && !o.Apply, err)
		},
	}
	cmd.Flags().BoolVar(&o.Apply, "apply", false, "take it back")
	return cmd
}

// dryStatus is the result of a verb that is dry by default.
func dryStatus(wouldChange bool, err error) error {
	if err == nil && wouldChange {
		return exit.Status(exit.Change)
	}
	return err
}

// warn prints warnings, each on a line.
func warn(s *system.System, warnings []string) {
	for _, w := range warnings {
		fmt.Fprintf(s.Stderr, "harness: warning: %s\n", problem.OneLine(w))
	}
}
