package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/version"
)

func newVersionCmd(s *system.System) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, Go version and platform",
		Args:  arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			i := version.Get()
			if asJSON {
				enc := json.NewEncoder(s.Stdout)
				enc.SetIndent("", "  ")
				return enc.Encode(i)
			}
			_, err := fmt.Fprintf(s.Stdout, "harness %s\n", i)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
