package cli

import (
	"encoding/json"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/scope"
	"github.com/research-harness/harness/host/internal/system"
)

func newExecCmd(s *system.System) *cobra.Command {
	var (
		o         render.Options
		workspace string
		asJSON    bool
		timeout   time.Duration
	)
	cmd := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARG...]",
		Short: "Run one command in the workspace scope",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if timeout < 0 {
				return problem.New("", "--timeout", "%v is less than nothing", timeout)
			}
			sc, err := loadScope(s, workspace, o)
			if err != nil {
				return err
			}
			if asJSON {
				return execJSON(s, sc, args, timeout)
			}
			out, err := sc.Run(s, args, timeout)
			if err != nil {
				return err
			}
			if out.Signal != 0 { // what sent it to us is to see that it worked
				signal.Reset(out.Signal)
				syscall.Kill(os.Getpid(), out.Signal)
			}
			return status(out.Status)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringVar(&workspace, "workspace", "", "directory that the command may write (default: the current one)")
	f.BoolVar(&asJSON, "json", false, "capture the output and print the result as JSON")
	f.DurationVar(&timeout, "timeout", 0, "end the command after this time, such as 90s or 10m")
	addPolicyFlags(cmd, &o)
	return cmd
}

func execJSON(s *system.System, sc *scope.Scope, args []string, timeout time.Duration) error {
	r, err := sc.Capture(s, args, timeout)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(s.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return err
	}
	return status(r.ExitCode)
}

// status is the error that ends a run with a command's status.
func status(code int) error {
	if code == 0 {
		return nil
	}
	return exitStatus(code)
}
