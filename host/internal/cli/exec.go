package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/research-harness/harness/host/internal/front"
	"github.com/research-harness/harness/host/internal/system"
)

func newExecCmd(s *system.System) *cobra.Command {
	var o front.ExecOptions
	cmd := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARG...]",
		Short: "Run one command in the workspace scope",
		Long: "Run one command in the workspace scope.\n\n" +
			"The command reads everything but the credential files, the rest of home included,\n" +
			"and uses the network. It writes the workspace, the temporary directories and the\n" +
			"caches of build tools, and nothing else. It cannot reach servers that listen on a\n" +
			"UNIX socket (tmux, D-Bus, Docker, X11, agents). Streams, terminal, signals and exit\n" +
			"status are the command's; 124 is a timeout, and 2 with a line that begins\n" +
			"\"harness: \" means that it never ran. For a shell string write sh -c '…'.",
		Example: "  harness exec -- go test ./...",
		Args:    arguments(1, -1),
		RunE: func(_ *cobra.Command, args []string) error {
			return front.Exec(s, o, args)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.BoolVar(&o.JSON, "json", false, "capture the output and print the result as JSON")
	f.DurationVar(&o.Timeout, "timeout", 0, "end the command after this time, such as 90s or 10m")
	scopeFlags(f, &o.ScopeOptions)
	return cmd
}

// scopeFlags defines the flags that say which scope.
func scopeFlags(f *pflag.FlagSet, o *front.ScopeOptions) {
	f.StringVar(&o.Workspace, "workspace", "", "directory that the command may write (default: the current one)")
	f.StringVar(&o.Source, "source", "", "directory of sources that replace the embedded ones (RESEARCH_HARNESS_SOURCE)")
	f.StringVar(&o.Profile, "profile", "", "profile to use (RESEARCH_HARNESS_PROFILE, ~/.config/research-harness/profile.toml)")
}
