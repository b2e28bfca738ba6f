package setup

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/research-harness/harness/host/internal/problem"
)

// probe is a sandbox with the namespaces that srt asks bubblewrap for.
var probe = []string{
	"--new-session", "--die-with-parent", "--unshare-user", "--unshare-net", "--unshare-pid",
	"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "true",
}

// switches are the kernel settings that forbid a user to make namespaces.
var switches = []struct{ key, off, on string }{
	{"kernel.apparmor_restrict_unprivileged_userns", "1", "0"}, // Ubuntu from 24.04 on
	{"kernel.unprivileged_userns_clone", "0", "1"},             // older Debian, hardened kernels
	{"user.max_user_namespaces", "0", "15000"},                 // RHEL 7, hardening guides
}

// namespaces starts a bubblewrap and, where that fails, names the cause.
func (p *planner) namespaces(ctx context.Context) error {
	_, stderr, err := p.ask(ctx, append([]string{p.lookPath("bwrap")}, probe...)...)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	for _, s := range switches {
		file := filepath.Join(p.top, "proc/sys", strings.ReplaceAll(s.key, ".", "/"))
		value, readErr := os.ReadFile(file)
		if readErr != nil || strings.TrimSpace(string(value)) != s.off {
			continue
		}
		return problem.New("", "bubblewrap", "cannot make a sandbox: the kernel setting %s is %s", s.key, s.off).
			WithHint("echo %s=%s | sudo tee /etc/sysctl.d/60-research-harness.conf && sudo sysctl --system", s.key, s.on)
	}
	reason := lastLine(stderr)
	if reason == "" {
		reason = err.Error()
	}
	fault := problem.New("", "bubblewrap", "cannot make a sandbox: %s", strings.TrimPrefix(reason, "bwrap: "))
	if p.container() {
		return fault.WithHint("this is a container that allows no namespaces: start it with --security-opt seccomp=unconfined " +
			"--security-opt apparmor=unconfined --security-opt systempaths=unconfined, or run the harness on its host")
	}
	return fault.WithHint("try it by hand: bwrap %s", strings.Join(probe, " "))
}

// container reports whether this machine says that it is one.
func (p *planner) container() bool {
	if _, ok := p.s.LookupEnv("container"); ok {
		return true
	}
	for _, mark := range []string{".dockerenv", "run/.containerenv"} {
		if _, err := os.Stat(filepath.Join(p.top, mark)); err == nil {
			return true
		}
	}
	return false
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
