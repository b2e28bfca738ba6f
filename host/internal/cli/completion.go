package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/launch"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/system"
)

// agentboxCompletion completes the launcher's first word by what is installed
// and its other words by file names.
var agentboxCompletion = map[string]string{
	"bash": `
_agentbox() {
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ]; then
        COMPREPLY=($(compgen -W "$(harness completion commands 2>/dev/null)" -- "${COMP_WORDS[1]}"))
    fi
}
complete -o default -F _agentbox agentbox
`,
	"zsh": `
_agentbox() {
    if (( CURRENT == 2 )); then
        compadd -- $(harness completion commands 2>/dev/null)
    else
        _files
    fi
}
compdef _agentbox agentbox
`,
	"fish": `
complete -c agentbox -n 'test (count (commandline -opc)) -eq 1' -f -a '(harness completion commands 2>/dev/null)'
`,
}

func newCompletionCmd(s *system.System) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a shell's completion of harness and agentbox",
		Example: `  harness completion bash > ~/.local/share/bash-completion/completions/harness
  ln -s harness ~/.local/share/bash-completion/completions/agentbox
  harness completion zsh > "${fpath[1]}/_harness"
  harness completion fish > ~/.config/fish/completions/harness.fish`,
		ValidArgs: []string{"bash", "zsh", "fish", "commands"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(cmd.ValidArgs, args[0]) {
				return misuse(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			switch shell := args[0]; shell {
			case "commands":
				return printCommands(s)
			case "bash":
				err = cmd.Root().GenBashCompletionV2(s.Stdout, true)
			case "zsh":
				err = cmd.Root().GenZshCompletion(s.Stdout)
			case "fish":
				err = cmd.Root().GenFishCompletion(s.Stdout, true)
			}
			if err == nil {
				_, err = fmt.Fprint(s.Stdout, agentboxCompletion[args[0]])
			}
			return err
		},
	}
}

// printCommands prints the commands that agentbox knows.
func printCommands(s *system.System) error {
	home, err := s.Home()
	if err != nil {
		return err
	}
	for _, f := range launch.Frontends(layout.Layout{Home: home}) {
		fmt.Fprintln(s.Stdout, f.Command)
	}
	return nil
}
