// Package protected names the paths that no frontend and no setting may open
// to a session. It imports nothing, so that a program can use it without the
// rest of the SDK.
package protected

// Paths are the paths that no frontend's state or own may be, hold or lie in:
// the user's credentials and shell start-up files, and what governs every
// session. All begin with "~/".
func Paths() []string {
	return []string{
		"~/.ssh", "~/.aws", "~/.gnupg", "~/.kube", "~/.docker", "~/.netrc",
		"~/.profile", "~/.bashrc", "~/.bash_profile", "~/.bash_login", "~/.bash_logout",
		"~/.bash_aliases", "~/.zshrc", "~/.zshenv", "~/.zprofile", "~/.zlogin", "~/.zlogout",
		"~/.kshrc", "~/.mkshrc", "~/.cshrc", "~/.tcshrc", "~/.login", "~/.xprofile",
		"~/.xsessionrc", "~/.pam_environment", "~/.config/fish",
		"~/.config/research-harness", "~/.local/bin", "~/.local/libexec",
		"~/.local/share/research-harness",
	}
}
