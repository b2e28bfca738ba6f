package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/workspace"
)

func newWorkspaceCmd(s *system.System) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "workspace",
		Short: "List, add and remove the directories that sessions work in",
		Long: `List, add and remove the directories that sessions work in. They stand in the
profile, of which all else stays as it is. The next install puts them into the
policy.`,
		Args: verbs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&file, "profile", "", "profile to use (RESEARCH_HARNESS_PROFILE, ~/.config/research-harness/profile.toml)")

	var home string
	load := func() (w *workspace.Workspaces, err error) {
		if home, err = s.Home(); err != nil {
			return nil, err
		}
		return workspace.Load(s, home, file)
	}
	short := func(path string) string { return problem.OneLine(paths.Tilde(home, path)) }
	say := func(format string, args ...any) {
		fmt.Fprintf(s.Stderr, "harness: "+format+"\n", args...)
	}

	list := &cobra.Command{
		Use:   "list",
		Short: "List the workspaces, one a line",
		Args:  arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			w, err := load()
			if err != nil {
				return err
			}
			for _, dir := range w.Dirs {
				fmt.Fprintln(s.Stdout, problem.OneLine(dir))
			}
			return nil
		},
	}

	add := &cobra.Command{
		Use:   "add [DIR]",
		Short: "Make a directory, by default the current one, a workspace",
		Args:  arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := load()
			if err != nil {
				return err
			}
			dir := s.Abs(paths.Expand(home, append(args, ".")[0]))
			if have := w.Holding(dir); w.Is(dir) {
				say("%s is a workspace already", short(dir))
				return nil
			} else if have != "" {
				say("%s lies in the workspace %s already", short(dir), short(have))
				return nil
			}
			if err := w.Add(dir); err != nil {
				return err
			}
			if err := w.Write(cmd.Context(), files.Disk{}); err != nil {
				return err
			}
			say("%s is a workspace in %s now; type: harness install --apply", short(dir), short(w.File))
			return nil
		},
	}

	remove := &cobra.Command{
		Use:     "remove DIR",
		Short:   "Make a directory no workspace",
		Example: "  harness workspace remove ~/src",
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := load()
			if err != nil {
				return err
			}
			dir := s.Abs(paths.Expand(home, args[0]))
			if have := w.Holding(dir); have == "" {
				say("%s is no workspace", short(dir))
				return nil
			} else if !w.Is(dir) {
				return problem.New(w.File, dir, "is no workspace itself, but lies in %s", short(have)).
					WithHint("harness workspace remove %s", short(have))
			}
			if err := w.Remove(dir); err != nil {
				return err
			}
			if err := w.Write(cmd.Context(), files.Disk{}); err != nil {
				return err
			}
			say("%s is no workspace in %s any more; type: harness install --apply", short(dir), short(w.File))
			return nil
		},
	}

	cmd.AddCommand(list, add, remove)
	return cmd
}
