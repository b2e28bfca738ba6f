package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/research-harness/harness/host/internal/problem"
)

// arguments accepts a number of arguments from least to most, without a limit
// where most is negative. Any other is a problem that says what the verb takes
// and names an example.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return misuse(cmd, args)
		}
		return nil
	}
}

// misuse is the problem of a verb that was given other arguments than it takes.
func misuse(cmd *cobra.Command, args []string) error {
	verb := strings.TrimPrefix(cmd.CommandPath(), "harness ")
	takes := strings.TrimPrefix(strings.TrimSuffix(cmd.UseLine(), " [flags]"), cmd.CommandPath())
	takes = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(takes), "[flags]"))
	if takes == "" {
		takes = "no argument"
	}
	err := problem.New("", verb, "takes %s", takes)
	if len(args) > 0 {
		err.Reason += ", not " + strings.Join(args, " ")
	}
	example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	if example == "" {
		example = "harness " + verb + " --help"
	}
	return err.WithHint("%s", example)
}

// verbs refuses an argument where a verb belongs, with the verb that was
// probably meant.
func verbs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	err := problem.New("", args[0], "is no verb of %s", cmd.CommandPath())
	if near := problem.Nearest(args[0], known); near != "" {
		return err.WithHint("did you mean: %s %s", cmd.CommandPath(), near)
	}
	return err.WithHint("the verbs are %s", strings.Join(known, ", "))
}

// flagProblem is what is wrong with a flag, with the flag that was probably
// meant.
func flagProblem(cmd *cobra.Command, err error) error {
	p := problem.New("", strings.TrimPrefix(cmd.CommandPath(), "harness "), "%w", err)
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near := problem.Nearest(unknown.GetSpecifiedName(), known); near != "" {
			return p.WithHint("did you mean --%s?", near)
		}
	} else if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		p.Reason = fmt.Sprintf("--%s takes a %s, not %q", bad.GetFlag().Name, bad.GetFlag().Value.Type(), bad.GetValue())
	}
	return p.WithHint("%s --help", cmd.CommandPath())
}
