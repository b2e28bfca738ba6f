package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/research-harness/harness/host/internal/exit"
	"github.com/research-harness/harness/host/internal/launch"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/oci"
	"github.com/research-harness/harness/host/internal/plugin"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/scaffold"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/sdk/sdktest"
)

func newFrontendCmd(s *system.System) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "frontend",
		Short: "Add, trust, test and write frontend plugins",
		Args:  verbs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := &frontendCmd{system: s}
	cmd.PersistentFlags().StringArrayVar(&f.dirs, "plugins", nil, "directory of frontend plugins (RESEARCH_HARNESS_PLUGINS)")
	cmd.AddCommand(
		f.list(), f.show(), f.trust(), f.add(), f.remove(), f.test(), f.push(), f.create(),
	)
	return cmd
}

// frontendCmd is what the verbs share.
type frontendCmd struct {
	system *system.System
	dirs   []string
}

func (f *frontendCmd) host(cmd *cobra.Command) (*plugin.Host, error) {
	home, err := f.system.Home()
	if err != nil {
		return nil, err
	}
	h := plugin.New(f.system, home, f.dirs)
	h.Log = logger(f.system, cmd)
	return h, nil
}

func (f *frontendCmd) print(format string, args ...any) {
	fmt.Fprintln(f.system.Stdout, problem.OneLine(fmt.Sprintf(format, args...)))
}

// policyName is the policy name of the frontend that the user means by it or by
// its command.
func (f *frontendCmd) policyName(h *plugin.Host, word string) string {
	if _, err := h.Find(word); err == nil {
		return word
	}
	if lock, err := h.ReadLock(); err == nil {
		for name, entry := range lock.Frontends {
			if entry.Command == word {
				return name
			}
		}
	}
	for _, known := range launch.Frontends(layout.Layout{Home: h.Home}) {
		if known.Command == word {
			return known.Name
		}
	}
	return word
}

// free refuses a name for a new plugin that is taken, as a policy name or as a
// command, which the new plugin has of the same name.
func (f *frontendCmd) free(cmd *cobra.Command, name string) error {
	h, err := f.host(cmd)
	if err != nil {
		return err
	}
	taken := func(by string) error {
		return problem.New("", name, "is taken by %s", by).WithHint("choose another name")
	}
	if name == "index" {
		return taken("the launcher's own list")
	}
	if found, err := h.Find(name); err == nil {
		return taken(found.File)
	}
	for _, known := range launch.Frontends(layout.Layout{Home: h.Home}) {
		if known.Name == name || known.Command == name {
			return taken(known.Title)
		}
	}
	return nil
}

// names completes policy names.
func (f *frontendCmd) names(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if h, err := f.host(cmd); err == nil && len(args) == 0 {
		found, _ := h.Discover()
		for _, p := range found {
			names = append(names, p.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// row is a plugin in the output of list and show.
type row struct {
	Name    string       `json:"name"`
	Command string       `json:"command,omitempty"`
	Title   string       `json:"title,omitempty"`
	Version string       `json:"sdk_version,omitempty"`
	File    string       `json:"file"`
	SHA256  string       `json:"sha256"`
	Source  string       `json:"source,omitempty"`
	Trust   plugin.Trust `json:"trust"`
	Bundled bool         `json:"bundled"`
	Problem string       `json:"problem,omitempty"`
	Asks    []string     `json:"asks,omitempty"`

	err error
}

func newRow(st plugin.Status, lock *plugin.Lock) row {
	r := row{
		Name: st.Plugin.Name, File: st.Plugin.File, SHA256: st.Plugin.Digest, Source: lock.Sources[st.Plugin.Name],
		Trust: st.Trust, Bundled: st.Plugin.Bundled, err: st.Err,
	}
	if st.Err != nil {
		r.Problem = problem.OneLine(st.Err.Error())
	}
	if c := st.Frontend.Contribution; c.Name != "" {
		r.Command, r.Title, r.Version, r.Asks = c.Command, c.Title, c.SDKVersion, st.Frontend.Words()
	}
	return r
}

// survey returns the rows of all plugins.
func (f *frontendCmd) survey(cmd *cobra.Command) ([]row, error) {
	h, err := f.host(cmd)
	if err != nil {
		return nil, err
	}
	all, err := h.Survey(cmd.Context())
	if err != nil {
		return nil, err
	}
	lock, err := h.ReadLock()
	if err != nil {
		return nil, err
	}
	rows := make([]row, len(all))
	for i, st := range all {
		rows[i] = newRow(st, lock)
	}
	return rows, nil
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func (f *frontendCmd) list() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the plugins that are there",
		Args:  arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := f.survey(cmd)
			if err != nil {
				return err
			}
			if asJSON {
				for i := range rows {
					rows[i].Asks = nil
				}
				return printJSON(f.system.Stdout, rows)
			}
			w := tabwriter.NewWriter(f.system.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tCOMMAND\tSDK\tTRUST\tSHA-256\tFILE")
			for _, r := range rows {
				trust := string(r.Trust)
				if r.Problem != "" {
					trust += ", broken"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.12s\t%s\n", r.Name, dash(r.Command), dash(r.Version), trust, dash(r.SHA256), problem.OneLine(r.File))
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (f *frontendCmd) show() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "show NAME",
		Example:           "  harness frontend show claude",
		Short:             "Show a plugin and what it asks for",
		Args:              arguments(1, 1),
		ValidArgsFunction: f.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := f.host(cmd)
			if err != nil {
				return err
			}
			name := f.policyName(h, args[0])
			if _, err := h.Find(name); err != nil {
				return err
			}
			rows, err := f.survey(cmd)
			if err != nil {
				return err
			}
			for _, r := range rows {
				if r.Name != name {
					continue
				}
				if asJSON {
					return printJSON(f.system.Stdout, r)
				}
				f.print("name     %s", r.Name)
				f.print("command  %s", dash(r.Command))
				f.print("sdk      %s", dash(r.Version))
				f.print("file     %s", r.File)
				f.print("sha-256  %s", r.SHA256)
				f.print("source   %s", dash(r.Source))
				f.print("trust    %s", r.Trust)
				for _, line := range r.Asks {
					f.print("  %s", line)
				}
				if r.Trust == plugin.Untrusted || r.Trust == plugin.Changed {
					f.print("It was not run. To see what it asks for: harness frontend trust %s", r.Name)
				}
				return r.err
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (f *frontendCmd) trust() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "trust NAME",
		Example: "  harness frontend trust crow",
		Short:   "Look at what a plugin asks for, and trust it",
		Long: `Run a plugin in a sandbox, show what it asks for and how that differs from
what you trusted before, and record your trust in this very file. A plugin
that is not trusted is never run.`,
		Args:              arguments(1, 1),
		ValidArgsFunction: f.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := f.host(cmd)
			if err != nil {
				return err
			}
			found, err := h.Find(f.policyName(h, args[0]))
			if err != nil {
				return err
			}
			if found.Bundled {
				f.print("%s is bundled with this harness and needs no trust", found.Name)
				return nil
			}
			lock, err := h.ReadLock()
			if err != nil {
				return err
			}
			answers := bufio.NewReader(f.system.Stdin)
			f.print("%s is %s", found.Name, found.File)
			f.print("  sha-256 %s", found.Digest)
			if source := lock.Sources[found.Name]; source != "" {
				f.print("  from %s", source)
			}
			question := "Run it, in a sandbox without network and without your home directory, to see what it asks for?"
			if !h.Confines() {
				question = "Run it, WITHOUT A SANDBOX since bubblewrap does not work here, to see what it asks for?"
			}
			if err := f.ask(answers, yes, found, question); err != nil {
				return err
			}
			front, err := h.Ask(cmd.Context(), found)
			if err != nil {
				return err
			}
			f.print("%s asks for this:", found.Name)
			for _, line := range front.Words() {
				f.print("  %s", line)
			}
			if old, ok := lock.Frontends[found.Name]; ok {
				changes := old.Changes(plugin.NewEntry(front))
				if len(changes) == 0 {
					f.print("That is what you trusted before.")
				} else {
					f.print("Against what you trusted before:")
				}
				for _, c := range changes {
					mark := ""
					if c.Wider {
						mark = ", which allows more"
					}
					f.print("  %s%s", c, mark)
				}
			}
			if err := f.ask(answers, yes, found, "Trust it?"); err != nil {
				return err
			}
			if err := h.Record(cmd.Context(), front); err != nil {
				return err
			}
			f.print("%s is trusted. To use it, choose it in your profile and run: harness install --apply", found.Name)
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "answer yes to both questions")
	return cmd
}

// ask returns an error unless the user says yes.
func (f *frontendCmd) ask(answers *bufio.Reader, yes bool, found plugin.Found, question string) error {
	if yes {
		return nil
	}
	fmt.Fprintf(f.system.Stdout, "%s [y/N] ", question)
	line, _ := answers.ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	fmt.Fprintln(f.system.Stdout)
	return problem.New(found.File, "", "you did not say yes, so it is not trusted").
		WithHint("harness frontend trust %s --yes", found.Name)
}

func (f *frontendCmd) add() *cobra.Command {
	return &cobra.Command{
		Use:     "add FILE | oci://REGISTRY/REPOSITORY:TAG",
		Example: "  harness frontend add ./harness-frontend-crow",
		Short:   "Copy a plugin into the directory of plugins",
		Long: `Copy a plugin from a file or a registry into the directory of plugins, the
first of --plugins or else the harness's own. It is not run and not trusted.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := f.host(cmd)
			if err != nil {
				return err
			}
			var from oci.Pulled
			if strings.HasPrefix(args[0], oci.Scheme) {
				pulled, err := oci.Pull(cmd.Context(), f.system, h.Home, args[0])
				if err != nil {
					return err
				}
				from = *pulled
			} else {
				found, data, err := h.Read(args[0])
				if err != nil {
					return err
				}
				from = oci.Pulled{FileName: filepath.Base(found.File), Data: data}
			}
			added, err := h.Add(cmd.Context(), from.FileName, from.Source, from.Data)
			if err != nil {
				return err
			}
			f.print("added %s", added.File)
			f.print("  sha-256 %s", added.Digest)
			if from.Source != "" {
				f.print("  from %s", from.Source)
			}
			f.print("To trust it: harness frontend trust %s", added.Name)
			return nil
		},
	}
}

func (f *frontendCmd) remove() *cobra.Command {
	return &cobra.Command{
		Use:               "remove NAME",
		Example:           "  harness frontend remove crow",
		Short:             "Remove a plugin and the trust in it",
		Args:              arguments(1, 1),
		ValidArgsFunction: f.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := f.host(cmd)
			if err != nil {
				return err
			}
			name := f.policyName(h, args[0])
			if err := h.Remove(cmd.Context(), name); err != nil {
				return err
			}
			f.print("removed %s. Take it out of your profile's frontends, too; what was installed for it goes with: harness install --apply", name)
			return nil
		},
	}
}

func (f *frontendCmd) test() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "test FILE",
		Example: "  harness frontend test ./harness-frontend-crow",
		Short:   "Run a plugin and check that it keeps every rule",
		Long: `Run a plugin, in a sandbox where that works, and check that it keeps every
rule. The exit status is 1 when it breaks one.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := f.host(cmd)
			if err != nil {
				return err
			}
			found, err := h.At(args[0])
			if err != nil {
				return err
			}
			findings, err := h.Test(cmd.Context(), found)
			if err != nil {
				return err
			}
			if asJSON {
				if err := printJSON(f.system.Stdout, append([]sdktest.Finding{}, findings...)); err != nil {
					return err
				}
			} else {
				for _, finding := range findings {
					f.print("%s", finding)
				}
			}
			if len(findings) > 0 {
				return exit.Status(exit.Change)
			}
			if !asJSON {
				f.print("%s keeps every rule", found.Name)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

var platform = regexp.MustCompile(`^(linux|darwin)/([a-z0-9]+)=(.+)$`)

func (f *frontendCmd) push() *cobra.Command {
	return &cobra.Command{
		Use:   "push oci://REGISTRY/REPOSITORY:TAG [OS/ARCH=]FILE...",
		Short: "Put a plugin into a registry",
		Long: `Put a plugin into a registry: one file for each platform, or one file without
a platform that runs everywhere.`,
		Example: "  harness frontend push oci://registry.example/you/crow:1.0 linux/amd64=dist/amd64/harness-frontend-crow linux/arm64=dist/arm64/harness-frontend-crow",
		Args:    arguments(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := f.host(cmd)
			if err != nil {
				return err
			}
			ref := args[0]
			if !strings.HasPrefix(ref, oci.Scheme) {
				return problem.New(ref, "", "does not begin with %s", oci.Scheme)
			}
			var executables []oci.Executable
			for _, arg := range args[1:] {
				e := oci.Executable{}
				if m := platform.FindStringSubmatch(arg); m != nil {
					e.Platform, arg = m[1]+"/"+m[2], m[3]
				}
				found, data, err := h.Read(arg)
				if err != nil {
					return err
				}
				e.FileName, e.Data = filepath.Base(found.File), data
				if e.Platform == "" && len(args) > 2 {
					return problem.New(arg, "", "has no platform").WithHint("write it as linux/amd64=%s", arg)
				}
				executables = append(executables, e)
			}
			digest, err := oci.Push(cmd.Context(), f.system, h.Home, ref, executables)
			if err != nil {
				return err
			}
			f.print("%s@%s", ref, digest)
			return nil
		},
	}
}

func (f *frontendCmd) create() *cobra.Command {
	var o scaffold.Options
	cmd := &cobra.Command{
		Use:     "new NAME",
		Example: "  harness frontend new crow",
		Short:   "Write the source of a new plugin",
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if err := f.free(cmd, o.Name); err != nil {
				return err
			}
			dir, err := scaffold.New(cmd.Context(), f.system, o)
			if err != nil {
				return err
			}
			f.print("wrote %s; its README.md says what to do next", dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Dir, "dir", "", "directory to write, which must not exist (default harness-frontend-NAME)")
	cmd.Flags().StringVar(&o.Lang, "lang", "go", "language: go or python")
	cmd.Flags().StringVar(&o.SDK, "sdk", "", "directory of the SDK to use instead of a released version")
	return cmd
}
