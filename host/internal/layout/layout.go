// Package layout names every file that the harness keeps in a home directory.
package layout

import "path/filepath"

// Layout is a home directory's files. Home is the real path.
type Layout struct{ Home string }

func (l Layout) join(elem ...string) string {
	return filepath.Join(append([]string{l.Home}, elem...)...)
}

// Config is the directory of all configuration.
func (l Layout) Config() string { return l.join(".config", "research-harness") }

// Profile is the default profile.
func (l Layout) Profile() string { return filepath.Join(l.Config(), "profile.toml") }

// SandboxDir holds the settings and override files.
func (l Layout) SandboxDir() string { return filepath.Join(l.Config(), "sandbox") }

// Settings is the srt settings file of a frontend, by policy name.
func (l Layout) Settings(name string) string { return filepath.Join(l.SandboxDir(), name+".json") }

// Override is an override file, by its file name.
func (l Layout) Override(file string) string { return filepath.Join(l.SandboxDir(), file) }

// LaunchDir holds what the launcher reads.
func (l Layout) LaunchDir() string { return filepath.Join(l.Config(), "launch") }

// Launch is what the launcher reads of a frontend, by command.
func (l Layout) Launch(command string) string { return filepath.Join(l.LaunchDir(), command+".json") }

// Index lists every trusted frontend.
func (l Layout) Index() string { return filepath.Join(l.LaunchDir(), "index.json") }

// Manifest records what install wrote and changed.
func (l Layout) Manifest() string { return filepath.Join(l.Config(), "installed.json") }

// Trust is the lock file of trusted plugins.
func (l Layout) Trust() string { return filepath.Join(l.Config(), "frontends.lock.toml") }

// Lock serialises the verbs that write.
func (l Layout) Lock() string { return filepath.Join(l.Config(), ".lock") }

// Bin is the directory of the user's programs.
func (l Layout) Bin() string { return l.join(".local", "bin") }

// Agentbox is the launcher.
func (l Layout) Agentbox() string { return filepath.Join(l.Bin(), "agentbox") }

// Harness is the front of the host.
func (l Layout) Harness() string { return filepath.Join(l.Bin(), "harness") }

// Host is the host proper.
func (l Layout) Host() string { return l.join(".local", "libexec", "research-harness", "harness-host") }

// Srt is the sandbox runtime's command.
func (l Layout) Srt() string { return filepath.Join(l.Bin(), "srt") }

// Plugins is the directory of the bundled plugins beside the host.
func (l Layout) Plugins() string {
	return l.join(".local", "libexec", "research-harness", "frontends")
}

// Share holds the sandbox runtime and its Node.
func (l Layout) Share() string { return l.join(".local", "share", "research-harness") }

// SrtPackage is the directory that npm installs the sandbox runtime into.
func (l Layout) SrtPackage() string { return filepath.Join(l.Share(), "srt") }
