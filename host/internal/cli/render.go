package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/profile"
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
	return hclog.New(&hclog.LoggerOptions{Name: "harness", Level: level, Output: visible{s.Stderr}})
}

// visible writes lines with their control characters made visible: the log
// holds what plugins say, and that must not drive the terminal.
type visible struct{ w io.Writer }

func (v visible) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		text, end := strings.CutSuffix(line, "\n")
		text = problem.OneLine(text)
		if end {
			text += "\n"
		}
		if _, err := io.WriteString(v.w, text); err != nil {
			return 0, err
		}
	}
	return len(b), nil
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

// loadSetFor is loadSet for the user of another machine, whose home directory
// is home. No profile means the defaults.
func loadSetFor(s *system.System, cmd *cobra.Command, home string, o render.Options) (*render.Set, error) {
	if !filepath.IsAbs(home) || filepath.Clean(home) == "/" {
		return nil, problem.New("", "--home", "%s is not an absolute path of a home directory", home)
	}
	if o.Profile == "" && s.Getenv(profile.EnvFile) == "" {
		o.Profile = os.DevNull
	}
	home = filepath.Clean(home)
	o.Log = logger(s, cmd)
	return render.Load(cmd.Context(), s.For(home), home, o)
}

func newRenderCmd(s *system.System) *cobra.Command {
	var o render.Options
	var out, home string
	cmd := &cobra.Command{
		Use:   "render FRONTEND | render --out DIR [FRONTEND...]",
		Short: "Print the srt settings that install writes for a frontend",
		Long: `Print the srt settings that install writes for a frontend, or write those of
all chosen frontends to a directory with --out, each to NAME.json. With --home
they are for the user of another machine: neither the environment nor the
default profile of this one bears on them, so that the same sources and profile
give the same bytes.`,
		Example: `  harness render claude
  harness render --out settings --home /home/alice --profile fleet.toml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if out != "" {
				return nil
			}
			return arguments(1, 1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var set *render.Set
			var err error
			if home == "" {
				set, err = loadSet(s, cmd, o)
			} else {
				set, err = loadSetFor(s, cmd, home, o)
			}
			if err != nil {
				return err
			}
			if out == "" {
				p, err := set.Policy(args[0])
				if err != nil {
					return err
				}
				warn(s, set.Warnings)
				_, err = s.Stdout.Write(p.Settings().Encode())
				return err
			}
			if len(args) == 0 {
				for _, f := range set.Chosen {
					args = append(args, f.Name)
				}
			}
			warn(s, set.Warnings)
			return renderTo(s, set, s.Abs(out), args)
		},
	}
	addSourceFlags(cmd, &o)
	cmd.Flags().StringVar(&out, "out", "", "directory to write the settings of all chosen frontends to")
	cmd.Flags().StringVar(&home, "home", "", "home directory that the settings are for (default: yours)")
	return cmd
}

// renderTo writes the settings of the named frontends to a directory, which it
// makes where it is missing. It writes nothing unless it can render all.
func renderTo(s *system.System, set *render.Set, dir string, names []string) error {
	var settings [][]byte
	for _, name := range names {
		p, err := set.Policy(name)
		if err != nil {
			return err
		}
		settings = append(settings, p.Settings().Encode())
		names[len(settings)-1] = p.Frontend
	}
	var d files.Disk
	if err := d.CreateDir(dir, 0o755); err != nil {
		return err
	}
	for i, name := range names {
		file := filepath.Join(dir, name+".json")
		if err := d.Replace(file, settings[i], 0o644); err != nil {
			return err
		}
		fmt.Fprintf(s.Stderr, "harness: wrote %s\n", problem.OneLine(file))
	}
	return nil
}
