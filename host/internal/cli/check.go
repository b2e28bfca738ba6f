package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/check"
	"github.com/research-harness/harness/host/internal/exit"
	"github.com/research-harness/harness/host/internal/front"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/scope"
	"github.com/research-harness/harness/host/internal/system"
)

func newCheckCmd(s *system.System) *cobra.Command {
	var (
		o      front.ScopeOptions
		asJSON bool
		stdin  bool
	)
	cmd := &cobra.Command{
		Use:   "check [flags] -- COMMAND",
		Short: "Say whether a shell command would leave the workspace scope",
		Long: "Say whether a shell command would leave the workspace scope.\n\n" +
			"COMMAND is one shell string; several arguments are quoted and joined. With\n" +
			"--stdin each line of the standard input is a command. The status is 1 if one\n" +
			"has a violation, and nothing is printed where there is none. What only a run can\n" +
			"tell is noted on standard error.",
		RunE: func(_ *cobra.Command, args []string) error {
			if stdin == (len(args) > 0) {
				return problem.New("", "check", "wants a command, or --stdin and none").WithHint("harness check -- 'go build ./...'")
			}
			sc, err := front.LoadScope(s, o)
			if err != nil {
				return err
			}
			if stdin {
				return checkLines(s, sc, asJSON)
			}
			command := args[0]
			if len(args) > 1 {
				command = scope.Quote(args)
			}
			r, err := check.Check(sc, s, command)
			if err != nil {
				return err
			}
			if err := printReport(s, r, asJSON, 0); err != nil {
				return err
			}
			if !r.OK {
				return exit.Status(exit.Change)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.BoolVar(&asJSON, "json", false, "print the result as JSON, one object for each command")
	f.BoolVar(&stdin, "stdin", false, "check each line of the standard input")
	scopeFlags(f, &o)
	return cmd
}

// checkLines checks the lines of the standard input. A line that does not
// parse is reported and does not end the run.
func checkLines(s *system.System, sc *scope.Scope, asJSON bool) error {
	in := bufio.NewReader(s.Stdin)
	found := 0
	for n := uint(1); ; n++ {
		line, err := in.ReadString('\n')
		if line == "" && errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return problem.New("", "standard input", "%w", err)
		}
		line = strings.TrimSuffix(line, "\n")
		r, err := check.Check(sc, s, line)
		if err != nil {
			fmt.Fprintf(s.Stderr, "harness: %d: %v\n", n, err)
			r, found = &check.Report{Command: line, Violations: []check.Finding{}, Unknown: []check.Finding{}, Error: err.Error()}, exit.Error
		} else if !r.OK {
			found = max(found, exit.Change)
		}
		if err := printReport(s, r, asJSON, n); err != nil {
			return err
		}
	}
	return exit.Of(found)
}

// printReport prints what a check found, as of line n of many where it is not
// 0.
func printReport(s *system.System, r *check.Report, asJSON bool, n uint) error {
	if asJSON {
		enc := json.NewEncoder(s.Stdout)
		enc.SetEscapeHTML(false)
		if n == 0 {
			enc.SetIndent("", "  ")
		}
		return enc.Encode(r)
	}
	at := func(f check.Finding) check.Finding {
		if n > 0 {
			f.Line = n
		}
		return f
	}
	for _, f := range r.Unknown {
		fmt.Fprintf(s.Stderr, "note: %v\n", at(f))
	}
	for _, f := range r.Violations {
		if _, err := fmt.Fprintln(s.Stdout, at(f)); err != nil {
			return err
		}
	}
	return nil
}
