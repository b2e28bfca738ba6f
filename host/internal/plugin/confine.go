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

// Confines reports whether a plugin that is not bundled runs in a sandbox.
func (h *Host) Confines() bool { return h.bwrap() != "" }

// confinement returns bubblewrap's arguments for a plugin: a read-only root
// in which home and every place with other programs' sockets is empty, no
// network, no other process, and nothing writable but the given directories.
func confinement(home string, writable []string, program string) []string {
	args := []string{
		"--unshare-all", "--die-with-parent",
		"--ro-bind", "/", "/",
		"--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/run",
		"--ro-bind-try", "/run/current-system", "/run/current-system", // where NixOS keeps its programs
		"--tmpfs", home,
		"--dev", "/dev", "--proc", "/proc",
	}
	for _, dir := range writable {
		if dir != "" {
			args = append(args, "--bind", dir, dir)
		}
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/run", home, "/dev"} {
		args = append(args, "--remount-ro", dir)
	}
	return append(args, "--chdir", "/", "--", program)
}
