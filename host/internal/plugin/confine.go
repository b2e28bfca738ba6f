package plugin

import (
	"os"
	"os/exec"
	"path/filepath"
)

// bwrap returns the bubblewrap program if it works here, else nothing.
func (h *Host) bwrap() string {
	h.probe.Do(func() {
		if h.System.OS != "linux" {
			return
		}
		for _, dir := range filepath.SplitList(h.System.Getenv("PATH")) {
			file := filepath.Join(dir, "bwrap")
			if info, err := os.Stat(file); !filepath.IsAbs(dir) || unusable(info, err) != "" {
				continue
			}
			err := exec.Command(file, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "/bin/true").Run()
			if err == nil {
				h.bwrapFile = file
			} else {
				h.Log.Warn("bubblewrap does not work; plugins run without a sandbox", "file", file, "error", err)
			}
			return
		}
	})
	return h.bwrapFile
}

// confinement returns bubblewrap's arguments for a plugin: a read-only root
// in which home and every place with other programs' sockets is empty, no
// network, no other process, and sockets as the one writable directory.
func confinement(home, sockets, program string) []string {
	return []string{
		"--unshare-all", "--die-with-parent",
		"--ro-bind", "/", "/",
		"--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/run",
		"--ro-bind-try", "/run/current-system", "/run/current-system", // where NixOS keeps its programs
		"--tmpfs", home,
		"--dev", "/dev", "--proc", "/proc",
		"--bind", sockets, sockets,
		"--remount-ro", "/tmp", "--remount-ro", "/var/tmp", "--remount-ro", "/run", "--remount-ro", home, "--remount-ro", "/dev",
		"--chdir", "/",
		"--", program,
	}
}
