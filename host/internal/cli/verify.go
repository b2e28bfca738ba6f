package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/audit"
	"github.com/research-harness/harness/host/internal/exit"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/verify"
)

func newVerifyCmd(s *system.System) *cobra.Command {
	var src render.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [FRONTEND...]",
		Short: "Try every rule of the installed settings inside the sandbox",
		Long: `Start srt once for each frontend with its installed settings, try every rule
from inside, and name each that does not hold with its reason and its fix.
Nothing is left behind. The exit status is 1 when something does not hold.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := loadSet(s, cmd, src)
			if err != nil {
				return err
			}
			reports, err := verify.Run(cmd.Context(), s, set, args, func(step string) {
				fmt.Fprintf(s.Stderr, "harness: %s\n", step)
			})
			if err != nil {
				return err
			}
			all := []audit.Finding{}
			for _, r := range reports {
				all = append(all, r.Findings...)
			}
			if asJSON {
				err = writeJSON(s, all)
			} else {
				said := map[string]bool{} // what holds for every frontend is said once
				for _, r := range reports {
					fmt.Fprintf(s.Stdout, "%s: %d rules tried, %d findings\n", r.Frontend, r.Tried, len(r.Findings))
					printFindings(s.Stdout, slices.DeleteFunc(slices.Clone(r.Findings), func(f audit.Finding) bool {
						again := said[f.Message]
						said[f.Message] = true
						return again
					}))
				}
			}
			return findingStatus(all, err)
		},
	}
	addSourceFlags(cmd, &src)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return cmd
}

// printFindings writes findings for people, each with its fix below it.
func printFindings(out io.Writer, found []audit.Finding) {
	for _, f := range found {
		name := f.ID
		if f.Frontend != "" {
			name += " " + f.Frontend
		}
		fmt.Fprintf(out, "%-8s%s: %s\n        %s\n", f.Severity, name, f.Message, f.Fix)
	}
}

// findingStatus is the result of a verb that looks for findings. A note is none
// to act on.
func findingStatus(found []audit.Finding, err error) error {
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.Severity != audit.Note {
			return exit.Status(exit.Change)
		}
	}
	return nil
}
