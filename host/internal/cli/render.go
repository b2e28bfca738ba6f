package cli

import (
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/system"
)

// addSourceFlags adds the flags that say where a policy comes from.
func addSourceFlags(cmd *cobra.Command, o *render.Options) {
	f := cmd.Flags()
	f.StringVar(&o.Source, "source", "", "directory of sources that replace the embedded ones (RESEARCH_HARNESS_SOURCE)")
	f.StringVar(&o.Profile, "profile", "", "profile to use (RESEARCH_HARNESS_PROFILE, ~/.config/research-harness/profile.toml)")
	f.StringArrayVar(&o.Plugins, "plugins", nil, "directory of frontend plugins (RESEARCH_HARNESS_PLUGINS)")
}

// logger is the log of a verb: silent but for errors, unless verbose.
func logger(s *system.System, cmd *cobra.Command) hclog.Logger {
	level := hclog.Error
	if v, err := cmd.Flags().GetBool("verbose"); err == nil && v {
		level = hclog.Debug
	}
	return hclog.New(&hclog.LoggerOptions{Name: "harness", Level: level, Output: s.Stderr})
}

// loadSet reads the home directory and everything that policies are made of.
func loadSet(s *system.System, cmd *cobra.Command, o render.Options) (*render.Set, error) {
	home, err := s.Home()
	if err != nil {
		return nil, err
	}
	o.Log = logger(s, cmd)
	return render.Load(cmd.Context(), s, home, o)
}

func newRenderCmd(s *system.System) *cobra.Command {
	var o render.Options
	cmd := &cobra.Command{
		Use:   "render FRONTEND",
		Short: "Print the srt settings that install writes for a frontend",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := loadSet(s, cmd, o)
			if err != nil {
				return err
			}
			p, err := set.Policy(args[0])
			if err != nil {
				return err
			}
			warn(s, set.Warnings)
			_, err = s.Stdout.Write(p.Settings().Encode())
			return err
		},
	}
	addSourceFlags(cmd, &o)
	return cmd
}
