package cli

import (
	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/report"
	"github.com/research-harness/harness/host/internal/system"
)

func newReportCmd(s *system.System) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report FRONTEND [ARG...]",
		Short: "Run a session like agentbox, and list the hosts that it was refused",
		Long: `Run a session like agentbox, and list on standard error, once it has ended,
the hosts that it was refused. Every ARG reaches the frontend unchanged, and
the exit status is the session's. srt keeps no record of the paths that it
refuses: ask harness explain about them.`,
		Example: "  harness report claude -p hi",
		Args:    arguments(1, -1),
		RunE:    func(_ *cobra.Command, args []string) error { return report.Run(s, args) },
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}
