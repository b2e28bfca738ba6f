package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/audit"
	"github.com/research-harness/harness/host/internal/doctor"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/version"
)

func newDoctorCmd(s *system.System) *cobra.Command {
	var src render.Options
	var asJSON, fix bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find what keeps sessions from starting or working, and say what to type",
		Long: `Look at srt and what it needs, at what is installed, at the policies and at
the agents' programs, and name each fault with one line to type, what blocks
most first. The exit status is 1 when there is something to mend.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := s.Home()
			if err != nil {
				return err
			}
			src.Log = logger(s, cmd)
			load := func(ctx context.Context) (*render.Set, error) { return render.Load(ctx, s, home, src) }
			found, err := doctor.Run(cmd.Context(), s, home, load)
			if err != nil {
				return err
			}
			if fix {
				err := doctor.Fix(cmd.Context(), found, func(f doctor.Finding) {
					fmt.Fprintf(s.Stderr, "harness: %s: %s\n", f.ID, f.Fix)
				})
				if err != nil {
					return err
				}
				if found, err = doctor.Run(cmd.Context(), s, home, load); err != nil {
					return err
				}
			}
			plain := make([]audit.Finding, len(found))
			fixable := false
			for i, f := range found {
				plain[i] = f.Finding
				fixable = fixable || f.Fixable()
			}
			if asJSON {
				return findingStatus(plain, writeJSON(s, plain))
			}
			fmt.Fprintf(s.Stdout, "harness %s\n", version.Get())
			printFindings(s.Stdout, plain)
			switch {
			case len(plain) == 0:
				fmt.Fprintln(s.Stdout, "nothing is wrong")
			case fixable:
				fmt.Fprintln(s.Stdout, "harness doctor --fix mends what can be mended safely")
			}
			return findingStatus(plain, nil)
		},
	}
	addSourceFlags(cmd, &src)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	cmd.Flags().BoolVar(&fix, "fix", false, "mend what can be mended safely, then look again")
	return cmd
}
