package cli

import (
	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/front"
	"github.com/research-harness/harness/host/internal/system"
)

func newExecCmd(s *system.System) *cobra.Command {
	var o front.ExecOptions
	cmd := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARG...]",
		Short: "Run one command in the workspace scope",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return front.Exec(s, o, args)
		},
	}
	o.Flags(cmd.Flags())
	return cmd
}
