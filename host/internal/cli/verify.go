package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/audit"
	"github.com/research-harness/harness/host/internal/exit"
	"github.com/research-harness/harness/host/internal/problem"
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
		Example: "  harness verify\n  harness verify claude",
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
				for _, r := range reports {
					fmt.Fprintf(s.Stdout, "%s: tried %d rules, %s\n", r.Frontend, r.Tried, toMend(r.Findings))
				}
				audit.Sort(all)
				printFindings(s.Stdout, all)
			}
			return findingStatus(all, err)
		},
	}
	addSourceFlags(cmd, &src)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return cmd
}

// toMend says how many findings there are to act on. A note is none.
func toMend(found []audit.Finding) string {
	n := 0
	for _, f := range found {
		if f.Severity != audit.Note {
			n++
		}
	}
	switch n {
	case 0:
		return "found nothing to mend"
	case 1:
		return "found 1 fault"
	}
	return fmt.Sprintf("found %d faults", n)
}

// printFindings writes findings for people, each with its fix below it. What
// was found for several frontends is said once.
func printFindings(out io.Writer, found []audit.Finding) {
	frontends := map[audit.Finding][]string{}
	var order []audit.Finding
	for _, f := range found {
		key := audit.Finding{ID: f.ID, Severity: f.Severity, Message: f.Message, Fix: f.Fix}
		if frontends[key] == nil {
			order = append(order, key)
		}
		frontends[key] = append(frontends[key], f.Frontend)
	}
	for _, f := range order {
		name := strings.TrimSpace(f.ID + " " + strings.Join(frontends[f], ", "))
		fmt.Fprintf(out, "%-8s%s: %s\n        %s\n", f.Severity, name, problem.OneLine(f.Message), problem.OneLine(f.Fix))
	}
}

// findingStatus is the result of a verb that looks for findings. A note is none
// to act on.
func findingStatus(found []audit.Finding, err error) error {
	if err == nil && slices.ContainsFunc(found, func(f audit.Finding) bool { return f.Severity != audit.Note }) {
		return exit.Status(exit.Change)
	}
	return err
}
