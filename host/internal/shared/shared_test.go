package shared

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/internal/system"
)

// A workspace is writable. One under which a session could write what runs
// outside later, or that the template denies, is refused with its line.
func TestWorkspaces(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(top, "home")
	for _, dir := range []string{".ssh", ".dotfiles", "Research", "../data"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"keys": ".ssh", "me": home, "all": "/", ".bashrc": ".dotfiles/bashrc", "work": top + "/data"} {
		if err := os.Symlink(target, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	for workspace, want := range map[string]string{
		"~/Research": "", "~/src/": "", "~/go/src/x": "", "~/not yet/made": "", "~/work": "", "~/.config/zed": "", "~/.local/share/chezmoi": "",
		"~/Research/*": "", "/data/me": "", "/scratch/me": "", "/mnt/x": "", "/srv/x": "", "/opt/me": "", "/var/www/x": "", "/tmp/x": "", "/dev/shm/x": "",

		"~": "is the home directory", "~/": "is the home directory", "~/x/..": "is the home directory", "~/me": "is the home directory",
		"~/*": "is the home directory", "~/.*": "is the home directory", home: "is the home directory",
		"/": "is the root directory", "/*": "is the root directory", "~/all": "is the root directory",
		top:         "holds the home directory",
		"~/.ssh":    "is protected",
		"~/keys":    "is protected",
		"~/.ssh/x":  "lies in ~/.ssh, which is protected",
		"~/.config": "holds ~/.config/fish, which is protected", "~/.config/*/x": "holds ~/.config/fish, which is protected",
		"~/.local": "holds ~/.local/bin, which is protected", "~/.local/bin": "is protected",
		"~/.local/share":         "holds ~/.local/share/research-harness, which is protected",
		"~/.config/systemd/user": "lies in ~/.config/systemd, which is protected",
		"~/Library":              "holds ~/Library/Keychains, which is protected",
		"~/.dotfiles":            "holds ~/.dotfiles/bashrc, which is protected",
		"~/.mozilla/firefox":     "is closed by settings/settings.proposal.json:",
		"~/.password-store":      "is closed by settings/settings.proposal.json:",
		"~/.vim":                 "is closed by settings/settings.proposal.json:",
		"/etc":                   "is protected", "/etc/cron.d": "lies in /etc, which is protected",
		"/usr": "holds /usr/bin, which is protected", "/usr/bin": "is protected", "/var": "holds /var/spool, which is protected",
		"/boot": "is protected", "/proc/self": "lies in /proc, which is protected", "/sys": "is protected", "/dev": "holds /dev/pts, which is protected",
		fmt.Sprintf("/run/user/%d", os.Getuid()): "holds /run/user/",
	} {
		file := filepath.Join(top, "profile.toml")
		if err := os.WriteFile(file, []byte("[setup]\nworkspaces = [\n  '~/ok',\n  '"+workspace+"',\n]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &system.System{OS: "linux", Env: []string{"HOME=" + home}, Dir: home}
		_, err := Load(s, home, "", file)
		if want != "" {
			want = fmt.Sprintf("%s:4: setup.workspaces[1]: %q cannot be a workspace: it %s", file, workspace, want)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s:\ngot  %v\nwant %s", workspace, err, want)
		}
		// harness exec needs no workspace of the profile's.
		if _, err := LoadPaths(s, home, "", file); err != nil {
			t.Errorf("%s: %v", workspace, err)
		}
	}
}
