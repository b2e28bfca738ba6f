package cli

import (
	"bytes"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/explain"
	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/system"
)

func newExplainCmd(s *system.System) *cobra.Command {
	var src render.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain FRONTEND [(read|write|host) TARGET]",
		Short: "Say whether a session can read, write or reach something, and why",
		Long: `Say whether a session of a frontend can read or write a path, or reach a host,
which entry of the policy decides, where that comes from, and what to change.
With a frontend alone, list its whole policy with the source of every entry.`,
		Example: `  harness explain claude write ~/.bashrc
  harness explain opencode host github.com:22
  harness explain omp`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return misuse(cmd, args)
			}
			return arguments(1, 3)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := loadSet(s, cmd, src)
			if err != nil {
				return err
			}
			frontend, err := set.Find(args[0])
			if err != nil {
				return err
			}
			policy, err := set.Policy(frontend.Name)
			if err != nil {
				return err
			}
			target := ""
			if len(args) == 3 {
				if target, err = explain.Target(set.Home, s.Dir, args[1], args[2]); err != nil {
					return err
				}
			}
			at := layout.Layout{Home: set.Home}
			file := at.Settings(policy.Frontend)
			if have, err := files.Read(file); err != nil || !bytes.Equal(have, policy.Settings().Encode()) {
				warn(s, []string{file + " is not what would be installed now; type: harness install --apply"})
			}
			world := explain.For(s, set, frontend)
			if len(args) == 1 {
				p := explain.Of(world, policy)
				if asJSON {
					return writeJSON(s, p)
				}
				return p.Print(s.Stdout, set.Home)
			}
			a, err := explain.Ask(world, policy, args[1], target)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(s, a)
			}
			a.Print(s.Stdout, set.Home)
			return nil
		},
	}
	addSourceFlags(cmd, &src)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// writeJSON prints v for programs.
func writeJSON(s *system.System, v any) error {
	enc := json.NewEncoder(s.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
