// Package sdk is all that the author of a frontend plugin imports.
//
// A frontend is a CLI coding agent. A plugin tells the harness host what that
// agent reads, writes and is started with; the host renders a sandbox policy
// from it and starts the agent. A plugin is an executable called
// harness-frontend-<name> whose main is
//
//	func main() { sdk.Serve(myFrontend{}) }
//
// The answer is data: a plugin writes nothing, and none runs when a session
// starts.
package sdk

import "context"

// Version is the version of this SDK. It travels with every answer.
const Version = "0.1.0"

// Frontend describes one CLI coding agent.
type Frontend interface {
	// Describe answers what the agent needs on the machine that req tells of.
	// It must depend on req alone, read and write nothing, and honour ctx. An
	// error is shown to the user behind the plugin's name.
	Describe(ctx context.Context, req Request) (Contribution, error)
}

// Func is a Frontend that is one function.
type Func func(ctx context.Context, req Request) (Contribution, error)

// Describe calls f.
func (f Func) Describe(ctx context.Context, req Request) (Contribution, error) { return f(ctx, req) }

// Request is what the host tells a plugin of the machine.
type Request struct {
	OS             string // GOOS: "linux" or "darwin"
	Arch           string // GOARCH
	Home           string // the home directory, absolute, symbolic links resolved
	HarnessVersion string

	// Env holds the values of the variables that an earlier answer named in
	// Contribution.Env, without the unset ones. It is empty in the first call.
	Env map[string]string
}

// Contribution is a frontend's part of a sandbox policy.
//
// Every path begins with "~/", or is absolute where it follows from a variable
// in Env. A path has no ".." and no empty segment. State and Own may not be,
// hold or lie in what protects the user or the harness itself: ~/.ssh, ~/.aws,
// ~/.gnupg, ~/.kube, ~/.docker, ~/.netrc, shell start-up files,
// ~/.config/research-harness, ~/.local/bin, ~/.local/libexec and
// ~/.local/share/research-harness.
type Contribution struct {
	// Name is the policy name, [a-z][a-z0-9-]*, as in the plugin's file name.
	Name string
	// Command is what the user types, [a-z][a-z0-9-]*.
	Command string
	// Title is the agent's name for people, one line.
	Title string

	// SDKVersion is the version of the SDK that the plugin was built with.
	// Serve fills it in.
	SDKVersion string

	// Env names environment variables on whose values the answer depends. The
	// host asks again with their values, and the launcher refuses to start
	// when one has changed since.
	Env []string

	// State is what the agent reads and writes as its own. No other
	// frontend's session can write it.
	State []Path
	// Own are deny entries of the shared policy that do not apply to this
	// agent. Each lies at or below the state.
	Own []string
	// DenyWrite is what a session may not write although it lies below
	// something writable: what makes the agent run code at its next start.
	DenyWrite []string
	// Ensure are paths at or below the state that must exist before a session,
	// because the sandbox can protect only what exists.
	Ensure []Path

	// Args precede the user's arguments.
	Args []Arg
	// Overrides are files that the host writes beside the settings, for Args
	// to refer to.
	Overrides []Override
	// RefusedArgs are arguments that the launcher refuses.
	RefusedArgs []RefusedArg

	// TestedVersions is a constraint such as ">= 1.0, < 3" on the versions of
	// the agent that the plugin was tested with. Empty for no statement.
	TestedVersions string
	// SettingsFile is a JSON file below the state into which the host merges
	// the settings template. Empty for none.
	SettingsFile string
}

// Kind says what a path is.
type Kind int

// The kinds of a path. The zero value is not one.
const (
	Dir Kind = iota + 1
	File
)

// String names the kind: "dir" or "file".
func (k Kind) String() string {
	switch k {
	case Dir:
		return "dir"
	case File:
		return "file"
	}
	return "unspecified"
}

// Path is a path that the host creates where it is missing: a directory with
// mode 0700, a file with mode 0600 and Content.
type Path struct {
	Path    string
	Kind    Kind
	Content []byte
}

// Arg is one argument of the agent: Literal, or the absolute path of the
// override file called Override. Exactly one of the two is set, except that
// an empty Literal alone is the empty argument.
type Arg struct {
	Literal  string
	Override string
	// Versions is a constraint on the agent's version, such as ">= 2". The
	// argument is left out where the installed version does not satisfy it; a
	// version that cannot be found counts as the newest.
	Versions string
}

// Override is a file that the host writes beside the settings. Its name is
// plain, begins with "<policy name>-" and ends in ".json".
type Override struct {
	Name    string
	Content []byte
}

// RefusedArg is an argument that the launcher refuses: one equal to Arg, or
// one that begins with Arg and an equals sign.
type RefusedArg struct {
	Arg string
	// Reason is one clause for the user: what to do instead.
	Reason string
}
