package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/exit"
	"github.com/research-harness/harness/host/internal/install"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/profile"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/system"
)

func newInstallCmd(s *system.System) *cobra.Command {
	var src render.Options
	var o install.Options
	var home string
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Show what would be written for the chosen frontends, or write it",
		Long: `Show what would be written for the chosen frontends as a unified diff, or
write it with --apply. Without --apply the exit status is 1 when something
would change.

With --root it is for the user of another machine or an image, whose files are
below that directory and whose home directory there is --home. The profile is
then --profile, or else the one in the tree.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := loadRoot(s, cmd, &o.Root, home, src)
			if err != nil {
				return err
			}
			if o.Root != "" {
				s = s.For(set.Home)
			}
			changed, err := install.Run(cmd.Context(), s, set, o)
			return dryStatus(changed && !o.Apply, err)
		},
	}
	addSourceFlags(cmd, &src)
	cmd.Flags().BoolVar(&o.Apply, "apply", false, "write the changes")
	cmd.Flags().StringVar(&o.Root, "root", "", "directory to install into as if it were the root of the file system")
	cmd.Flags().StringVar(&home, "home", "", "with --root: home directory in the tree (default: the path of yours)")
	return cmd
}

// loadRoot is loadSet for an install into the tree at root, which becomes a
// real path. An empty one is this machine.
func loadRoot(s *system.System, cmd *cobra.Command, root *string, home string, src render.Options) (*render.Set, error) {
	if *root == "" {
		if home != "" {
			return nil, problem.New("", "--home", "goes with --root")
		}
		return loadSet(s, cmd, src)
	}
	var err error
	if home == "" {
		if home, err = s.Home(); err != nil {
			return nil, err
		}
	}
	if *root, err = filepath.EvalSymlinks(s.Abs(*root)); err != nil {
		return nil, problem.New("", "--root", "%w", err)
	}
	if *root == "/" {
		return nil, problem.New("", "--root", "is this machine's own root").WithHint("harness install, as the user whose home directory it is")
	}
	there := *root + filepath.Clean("/"+home)
	if info, err := os.Lstat(there); err != nil || !info.IsDir() || paths.Real(there) != there {
		return nil, problem.New(there, "", "is not a home directory, by its real path").
			WithHint("make the user in the tree, or give --home")
	}
	if own := (layout.Layout{Home: there}).Profile(); src.Profile == "" && s.Getenv(profile.EnvFile) == "" {
		if _, err := os.Stat(own); err == nil {
			src.Profile = own
		}
	}
	set, err := loadSetFor(s, cmd, home, src)
	if err == nil { // neither is on the other machine
		set.Profile.File, set.Sources.Dir = "", ""
	}
	return set, err
}

func newUninstallCmd(s *system.System) *cobra.Command {
	var o install.Options
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Show what uninstalling would take back, or take it back",
		Long: `Show what uninstalling would take back as a unified diff, or take it back
with --apply. What you have changed since the install stays, and is named.`,
		Args: arguments(0, 0),
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
