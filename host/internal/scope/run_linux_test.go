package scope

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
)

// TestMain makes the test program the harness where it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case InnerVerb:
			fmt.Fprintln(os.Stderr, Inner(system.Host(), os.Args[2:]))
			os.Exit(2)
		case "probe":
			if err := probes[os.Args[2]](os.Args[3:]); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fmt.Println("ok")
			os.Exit(0)
		case "exec": // HOME and the current directory are the caller's
			s := system.Host()
			home, err := s.Home()
			if err == nil {
				var sc *Scope
				if sc, err = New(s, Options{Home: home}); err == nil {
					var out Outcome
					if out, err = sc.Run(s, os.Args[2:], 0); err == nil {
						os.Exit(out.Status)
					}
				}
			}
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}

// needBwrap skips a test where bubblewrap cannot work, which CI may not.
func needBwrap(t *testing.T) {
	t.Helper()
	out, err := exec.Command("bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "true").CombinedOutput()
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("bubblewrap does not work: %v: %s", err, out)
	}
	t.Skipf("bubblewrap does not work: %v: %s", err, out)
}

// run runs a shell script in the scope and returns what became of it.
func (p *place) run(s *system.System, o Options, script string) *Result {
	p.t.Helper()
	r, err := p.scope(s, o).Capture(s, []string{"sh", "-c", script}, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func (p *place) mustRun(script string, env ...string) *Result {
	p.t.Helper()
	r := p.run(p.system(env...), Options{}, script)
	if r.ExitCode != 0 {
		p.t.Fatalf("%s\nstatus %d\n%s%s", script, r.ExitCode, r.Stdout, r.Stderr)
	}
	return r
}

// goPlace is a place with a module in its workspace.
func goPlace(t *testing.T) *place {
	t.Helper()
	needBwrap(t)
	if testing.Short() {
		t.Skip("a cold build cache takes half a minute")
	}
	p := newPlace(t)
	p.write(p.ws+"/go.mod", "module example.com/x\n\ngo 1.21\n")
	p.write(p.ws+"/x.go", "package x\n\nfunc X() int { return 1 }\n")
	p.write(p.ws+"/x_test.go", "package x\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {\n\tif X() != 1 {\n\t\tt.Fail()\n\t}\n}\n")
	return p
}

// projectFiles are what a build may leave in the project.
func (p *place) projectFiles() []string {
	entries, err := os.ReadDir(p.ws)
	if err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A build in the sandbox failed with "failed to initialize build cache:
// operation not permitted", and agents moved their caches into the project.
func TestWorkspaceScope_GoBuildCacheWritable(t *testing.T) {
	p := goPlace(t)
	const build = "go env GOCACHE && go build -v ./... && go test ./..."
	first := p.mustRun(build)
	if got, want := strings.TrimSpace(strings.SplitN(first.Stdout, "\n", 2)[0]), p.home+"/.cache/go-build"; got != want {
		t.Errorf("GOCACHE is %q, want %q", got, want)
	}
	if strings.Contains(first.Stderr, "failed to initialize build cache") {
		t.Errorf("stderr: %s", first.Stderr)
	}
	// A second session compiles nothing again.
	second := p.mustRun(build)
	if second.Stderr != "" || !strings.Contains(second.Stdout, "(cached)") {
		t.Errorf("the second build is not warm:\n%s%s", second.Stdout, second.Stderr)
	}
	if got, want := p.projectFiles(), []string{"go.mod", "x.go", "x_test.go"}; !slices.Equal(got, want) {
		t.Errorf("the project holds %q, want %q", got, want)
	}

	// The same home, the caches elsewhere.
	cache := p.home + "/.cache/go-build"
	t.Run("a cache behind a linked ~/.cache", func(t *testing.T) {
		moved := outsideTemp(t) + "/cache"
		if err := os.CopyFS(moved, os.DirFS(p.home+"/.cache")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(p.home+"/.cache", p.home+"/cache"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(moved, p.home+"/.cache"); err != nil {
			t.Fatal(err)
		}
		if r := p.mustRun(build + " && touch ~/.cache/x"); r.Stderr != "" {
			t.Errorf("the build is not warm: %s", r.Stderr)
		}
		os.Remove(p.home + "/.cache")
		if err := os.Rename(p.home+"/cache", p.home+"/.cache"); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("GOCACHE below the project", func(t *testing.T) {
		if err := os.CopyFS(p.ws+"/.gocache", os.DirFS(cache)); err != nil {
			t.Fatal(err)
		}
		p.mustRun(build, "GOCACHE="+p.ws+"/.gocache")
		os.RemoveAll(p.ws + "/.gocache")
	})
	t.Run("XDG_CACHE_HOME outside home", func(t *testing.T) {
		xdg := outsideTemp(t)
		if err := os.CopyFS(xdg+"/go-build", os.DirFS(cache)); err != nil {
			t.Fatal(err)
		}
		if r := p.mustRun(build, "XDG_CACHE_HOME="+xdg); !strings.HasPrefix(r.Stdout, xdg) {
			t.Errorf("GOCACHE is %q, want it in %q", r.Stdout, xdg)
		}
	})
	t.Run("GOPATH with two elements", func(t *testing.T) {
		a, b := p.home+"/a", p.home+"/b"
		p.mkdir(b + "/pkg")
		p.mustRun(build+" && touch "+a+"/pkg/mod-a "+b+"/pkg/mod-b", "GOPATH="+a+":"+b)
	})
	t.Run("GOFLAGS=-modcacherw leaves modules that can be removed", func(t *testing.T) {
		proxy := moduleProxy(t)
		r := p.mustRun("go mod download -json example.com/dep@v1.0.0 && rm -r ~/go/pkg/mod/example.com",
			"GOPROXY=file://"+proxy, "GOSUMDB=off", "GOFLAGS=-modcacherw -mod=mod")
		if !strings.Contains(r.Stdout, "go/pkg/mod/example.com/dep@v1.0.0") {
			t.Errorf("output %s", r.Stdout)
		}
	})
	t.Run("a read-only cache that is warm", func(t *testing.T) {
		out := p.underMounts(t, "mount --bind $HOME/.cache $HOME/.cache && mount -o remount,bind,ro $HOME/.cache",
			"go build ./... && echo built; touch ~/.cache/x || echo read-only")
		if !strings.Contains(out, "built\n") || !strings.Contains(out, "read-only\n") {
			t.Errorf("output %s", out)
		}
	})
	t.Run("a cache on another file system", func(t *testing.T) {
		out := p.underMounts(t, "mount -t tmpfs tmpfs $HOME/.cache", build+" && go build -v ./... && stat -f -c %T ~/.cache/go-build")
		if !strings.Contains(out, "tmpfs\n") {
			t.Errorf("output %s", out)
		}
	})
	t.Run("GOCACHE=off fails as it does outside", func(t *testing.T) {
		r := p.run(p.system("GOCACHE=off"), Options{}, "go build ./...")
		if r.ExitCode == 0 || !strings.Contains(r.Stderr, "GOCACHE=off") {
			t.Errorf("status %d, stderr %q", r.ExitCode, r.Stderr)
		}
	})
	t.Run("go env -w", func(t *testing.T) {
		p.write(p.home+"/.config/go/env", "GOMODCACHE="+p.home+"/mods\n")
		p.mustRun("go build ./... && touch " + p.home + "/mods/x")
	})
}

// outsideTemp is a directory that is not below one that every command may
// write, unlike the test's own.
func outsideTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "scope")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// moduleProxy is a directory that serves the module example.com/dep.
func moduleProxy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	at := dir + "/example.com/dep/@v"
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, content := range map[string]string{"go.mod": "module example.com/dep\n", "dep.go": "package dep\n"} {
		w, err := z.Create("example.com/dep@v1.0.0/" + name)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, content)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"list": "v1.0.0\n", "v1.0.0.info": `{"Version": "v1.0.0"}`, "v1.0.0.mod": "module example.com/dep\n", "v1.0.0.zip": archive.String()} {
		if err := os.WriteFile(at+"/"+name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// underMounts runs a script in the scope where other mounts were made before,
// and returns what it prints.
func (p *place) underMounts(t *testing.T, mounts, script string) string {
	t.Helper()
	if out, err := exec.Command("unshare", "-rm", "true").CombinedOutput(); err != nil {
		t.Skipf("no mounts can be made: %v: %s", err, out)
	}
	cmd := exec.Command("unshare", "-rm", "sh", "-c", mounts+` && exec "$0" exec sh -c "$1"`, os.Args[0], script)
	cmd.Dir, cmd.Env = p.ws, p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestWorkspaceScope_MktempWorks(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	r := p.mustRun("mktemp -d && mktemp")
	for dir := range strings.FieldsSeq(r.Stdout) {
		if !strings.HasPrefix(dir, "/tmp/") {
			t.Errorf("mktemp made %q", dir)
		}
		os.Remove(dir)
	}
	tmp := p.home + "/.local/state/scratch dir"
	p.mkdir(tmp)
	if r := p.mustRun("mktemp -d", "TMPDIR="+tmp); !strings.HasPrefix(r.Stdout, tmp) {
		t.Errorf("mktemp made %q, want it in %q", r.Stdout, tmp)
	}
}

// A rule each: what can be read and written, and what is on the disk after.
func TestWorkspaceScope_Rules(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	p.write(p.home+"/.bashrc", "old")
	p.write(p.home+"/.npmrc", "token")
	p.write(p.home+"/.cache/huggingface/token", "secret")
	p.write(p.home+"/.aws/credentials", "secret")
	p.write(p.home+"/.config/research-harness/profile.toml", "")
	p.mkdir(p.home + "/.npm")
	p.mkdir(p.home + "/.cargo/registry")
	p.write(p.ws+"/tools/harness", "#!")
	o := Options{
		DenyRead: []string{p.home + "/.aws", p.home + "/.cache/huggingface/token", p.home + "/.netrc", p.home + "/.np*rc"},
		Protect:  []string{p.ws + "/tools/harness"},
	}
	for _, tt := range []struct {
		rule, script string
		ok           bool
	}{
		{"the workspace is writable", "echo x > new && mkdir -p a/b && mv new a/b", true},
		{"so are temporary directories", "f=/tmp/scope-$$; echo x > $f && rm $f", true},
		{"and caches", "touch ~/.cache/x ~/.npm/x ~/.cargo/registry/x ~/go/pkg/x", true},
		{"home is not, even below /tmp", "touch ~/x", false},
		{"nor start-up files", "echo x >> ~/.bashrc", false},
		{"nor by rename", "echo x > b && mv b ~/.bashrc", false},
		{"nor the system", "touch /etc/x || touch /usr/x || touch /var/x", false},
		{"nor what governs the harness", "touch ~/.config/research-harness/profile.toml", false},
		{"nor a protected file in the workspace", "echo x > tools/harness", false},
		{"nor by moving its directory aside", "mv tools t2", false},
		{"nor by removing it", "rm -f tools/harness", false},
		{"home can be read", "cat ~/.bashrc", true},
		{"and the system", "cat /etc/passwd > /dev/null", true},
		{"a credential cannot", "cat ~/.cache/huggingface/token", false},
		{"nor be replaced", "echo x > ~/.cache/huggingface/token", false},
		{"nor moved", "mv ~/.cache/huggingface/token ~/.cache/t", false},
		{"nor read after its directory moved", "mv ~/.cache/huggingface ~/.cache/h2 && cat ~/.cache/h2/token", false},
		{"nor one that a glob names", "cat ~/.npmrc", false},
		{"a directory of credentials is empty", "test -z \"$(ls ~/.aws)\"", true},
		{"and takes nothing", "touch ~/.aws/x", false},
		{"devices work", "head -c 4 /dev/urandom > /dev/null && echo x > /dev/stderr", true},
		{"other processes cannot be seen", fmt.Sprintf("kill -0 %d", os.Getpid()), false},
		{"the environment is the caller's", `test "$GREETING" = "hello  world"`, true},
		{"no file is left open", `test "$(ls /proc/self/fd | grep -c -E '^[345]$')" -le 1`, true},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			r := p.run(p.system("GREETING=hello  world"), o, tt.script)
			if (r.ExitCode == 0) != tt.ok {
				t.Errorf("%s: status %d\n%s%s", tt.script, r.ExitCode, r.Stdout, r.Stderr)
			}
			if strings.Contains(r.Stdout, "secret") {
				t.Error("a credential was read")
			}
		})
	}
	for file, want := range map[string]string{p.home + "/.bashrc": "old", p.ws + "/tools/harness": "#!", p.ws + "/a/b/new": "x\n"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", file, got, err, want)
		}
	}
	if _, err := os.Lstat(p.home + "/x"); err == nil {
		t.Error("a file was made in home")
	}
}

func TestCaptureResult(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	r := p.run(p.system(), Options{}, "echo out; echo err >&2; exit 7")
	if r.ExitCode != 7 || r.Stdout != "out\n" || r.Stderr != "err\n" || r.TimedOut || r.Scope != "workspace" || r.Network != "allow" {
		t.Errorf("result %+v", r)
	}
	if r.Command != "sh -c 'echo out; echo err >&2; exit 7'" {
		t.Errorf("command %q", r.Command)
	}
	if !strings.Contains(r.Notice, "temp and per-user cache directories are writable") {
		t.Errorf("notice %q", r.Notice)
	}
	if want := []string{"/tmp", p.home + "/.cache", p.home + "/go/pkg"}; !slices.Equal(r.Writable, want) {
		t.Errorf("sandbox_writable %q, want %q", r.Writable, want)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"command", "exit_code", "stdout", "stderr", "duration_ms", "timed_out", "scope", "sandbox_network", "sandbox_writable", "notice"} {
		if !bytes.Contains(data, []byte(`"`+key+`":`)) {
			t.Errorf("the JSON has no %q", key)
		}
	}
}

func TestExitStatusIsTheCommands(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	p.write(p.ws+"/plain", "exit 9\n")
	os.Chmod(p.ws+"/plain", 0o700)
	for script, want := range map[string]int{"true": 0, "exit 200": 200, "kill -KILL $$": 137, "kill -TERM $$": 143, "kill -INT $$": 130, "./plain": 9} {
		if r := p.run(p.system(), Options{}, script); r.ExitCode != want {
			t.Errorf("%s: status %d, want %d", script, r.ExitCode, want)
		}
	}
}

func TestWhatCannotStart(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	p.write(p.ws+"/data", "")
	for rule, tt := range map[string]struct{ name, env, want string }{
		"a program that is not on PATH":    {"no-such-program", "", "no such program on PATH"},
		"a shell string":                   {"go build ./...", "PATH=/usr/bin", "does not exist"},
		"a file that is not executable":    {"./data", "", "is not an executable file"},
		"a file that is not there":         {"./none", "", "does not exist"},
		"no bubblewrap: nothing is run":    {"/usr/bin/touch", "PATH=/nowhere", "nothing runs unconfined"},
		"bubblewrap that cannot set it up": {"/usr/bin/touch", "PATH=" + fakeBwrap(t), "nothing runs unconfined"},
	} {
		t.Run(rule, func(t *testing.T) {
			s := p.system(tt.env)
			if tt.env == "" {
				s = p.system()
			}
			_, err := p.scope(s, Options{}).Run(s, []string{tt.name, "made"}, 0)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, tt.want)
			}
			if _, err := os.Stat(p.ws + "/made"); err == nil {
				t.Error("the command ran")
			}
		})
	}
}

// fakeBwrap is a directory with a bwrap that fails as it does where user
// namespaces are forbidden.
func fakeBwrap(t *testing.T) string {
	dir := t.TempDir()
	script := "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
	if err := os.WriteFile(dir+"/bwrap", []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestBwrapProblemNamesCauseAndFix(t *testing.T) {
	for rule, tt := range map[string]struct{ complaint, sysctl, cause, fix string }{
		"AppArmor":             {"bwrap: setting up uid map: Permission denied\n", "kernel/apparmor_restrict_unprivileged_userns=1", "AppArmor", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
		"Debian's switch":      {"bwrap: No permissions to create new namespace", "kernel/unprivileged_userns_clone=0", "the kernel forbids", "kernel.unprivileged_userns_clone=1"},
		"no namespaces at all": {"bwrap: Creating new namespace failed: No space left on device", "user/max_user_namespaces=0", "allows no user namespaces", "user.max_user_namespaces="},
		"a container":          {"bwrap: Creating new namespace failed: Operation not permitted", "", "Operation not permitted", "seccomp=unconfined"},
		"a masked /proc":       {"bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "", "mount proc", "systempaths=unconfined"},
	} {
		t.Run(rule, func(t *testing.T) {
			err := bwrapProblem(tt.complaint, func(name string) string {
				if key, value, _ := strings.Cut(tt.sysctl, "="); key == name {
					return value
				}
				return ""
			})
			if !strings.Contains(err.Error(), tt.cause) || !strings.Contains(problem.HintOf(err), tt.fix) {
				t.Errorf("error %q, hint %q", err, problem.HintOf(err))
			}
		})
	}
}

func TestTimeoutEndsTheWholeTree(t *testing.T) {
	needBwrap(t)
	for rule, script := range map[string]string{
		"a command that ends when told":   "echo partial; sleep 1000 & sleep 1000",
		"one that does not, and children": "trap '' TERM; echo partial; (trap '' TERM; setsid sleep 1000) & while :; do sleep 1000; done",
	} {
		t.Run(rule, func(t *testing.T) {
			p := newPlace(t)
			mark := "SCOPE_MARK=" + p.home
			s := p.system(mark)
			r, err := p.scope(s, Options{}).Capture(s, []string{"sh", "-c", script}, 300*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if r.ExitCode != StatusTimeout || !r.TimedOut || r.Stdout != "partial\n" {
				t.Errorf("result %+v", r)
			}
			waitNoProcess(t, mark)
		})
	}
}

func TestDescendantsEndWithTheCommand(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	mark := "SCOPE_MARK=" + p.home
	p.mustRun("setsid sleep 1000 & sleep 1000 & true", mark)
	waitNoProcess(t, mark)
}

// waitNoProcess waits until no process has mark in its environment.
func waitNoProcess(t *testing.T, mark string) {
	t.Helper()
	var left []string
	poll(t, func() bool {
		left = nil
		envs, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, file := range envs {
			if data, err := os.ReadFile(file); err == nil && bytes.Contains(data, []byte(mark)) {
				left = append(left, filepath.Base(filepath.Dir(file)))
			}
		}
		return len(left) == 0
	}, func() string { return fmt.Sprintf("processes are left: %v", left) })
}

// poll waits until done is true.
func poll(t *testing.T, done func() bool, why func() string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(why())
		}
	}
}

// harness starts this program as "harness exec", without a terminal.
func (p *place) harness(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"exec"}, args...)...)
	cmd.Dir, cmd.Env = p.ws, p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

func TestSignalsReachTheCommand(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
		t.Run(sig.String(), func(t *testing.T) {
			cmd := p.harness("sh", "-c", "trap 'echo caught; exit 5' TERM INT HUP USR1; echo ready; while :; do sleep 0.02; done")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 64)
			n, _ := out.Read(buf)
			if string(buf[:n]) != "ready\n" {
				t.Fatalf("output %q", buf[:n])
			}
			cmd.Process.Signal(sig)
			rest, _ := io.ReadAll(out)
			err = cmd.Wait()
			if string(rest) != "caught\n" || cmd.ProcessState.ExitCode() != 5 {
				t.Errorf("output %q, %v", rest, err)
			}
		})
	}
}

func TestKilledHarnessLeavesNothing(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	mark := "SCOPE_MARK=" + p.home
	p.env = append(p.env, mark)
	cmd := p.harness("sh", "-c", "setsid sleep 1000 & echo ready; sleep 1000")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Read(make([]byte, 6))
	cmd.Process.Kill()
	cmd.Wait()
	waitNoProcess(t, mark)
}

// terminal is a harness exec on a terminal of its own.
type terminal struct {
	t    *testing.T
	tty  *os.File
	cmd  *exec.Cmd
	mu   sync.Mutex
	seen bytes.Buffer
}

// onTerminal runs a script under an interactive shell, as a person would.
func (p *place) onTerminal(program string, args ...string) *terminal {
	p.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = p.ws, append(slices.Clone(p.env), "PS1=$ ", "ENV=", "TERM=dumb")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		p.t.Fatal(err)
	}
	term := &terminal{t: p.t, tty: tty, cmd: cmd}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			term.mu.Lock()
			term.seen.Write(buf[:n])
			term.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	p.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); tty.Close() })
	return term
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.seen.String()
}

func (term *terminal) expect(s string) {
	term.t.Helper()
	poll(term.t, func() bool { return strings.Contains(term.text(), s) }, func() string {
		return fmt.Sprintf("no %q on the terminal:\n%s", s, term.text())
	})
}

func (term *terminal) send(s string) {
	term.t.Helper()
	if _, err := term.tty.WriteString(s); err != nil {
		term.t.Fatal(err)
	}
}

func TestCtrlCRunsTheCommandsHandler(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	term := p.onTerminal(os.Args[0], "exec", "sh", "-c", "trap 'echo caught' INT; echo ready; read x; echo again $x; read y; exit 6")
	term.expect("ready")
	term.send("\x03")
	term.expect("caught")
	term.send("one\n")
	term.send("two\n")
	if err := term.cmd.Wait(); term.cmd.ProcessState.ExitCode() != 6 {
		t.Errorf("%v\n%s", err, term.text())
	}
	if n := strings.Count(term.text(), "caught"); n != 1 {
		t.Errorf("one Ctrl-C ran the handler %d times", n)
	}
}

func TestCtrlCEndsACommandWithoutHandler(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	p.env = append(p.env, "SCOPE_MARK="+p.home)
	term := p.onTerminal(os.Args[0], "exec", "sh", "-c", "sleep 1000 & echo ready; sleep 1000")
	term.expect("ready")
	term.send("\x03")
	term.cmd.Wait()
	if got := term.cmd.ProcessState.ExitCode(); got != 130 {
		t.Errorf("status %d, want 130", got)
	}
	waitNoProcess(t, "SCOPE_MARK="+p.home)
}

func TestWindowSizeAndControllingTerminal(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	term := p.onTerminal(os.Args[0], "exec", "bash", "-c", "trap 'echo size $(stty size)' WINCH; echo ready > /dev/tty; while :; do sleep 0.02; done")
	term.expect("ready")
	if err := pty.Setsize(term.tty, &pty.Winsize{Rows: 33, Cols: 99}); err != nil {
		t.Fatal(err)
	}
	term.expect("size 33 99")
}

func TestCtrlZAndForeground(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	term := p.onTerminal("bash", "--norc", "-i")
	term.expect("$ ")
	term.send(Quote([]string{os.Args[0], "exec", "sh", "-c", "echo ready; read x; echo got $x"}) + "\n")
	term.expect("\nready")
	term.send("\x1a")
	poll(t, func() bool { // the shell throws away what is typed before its prompt
		_, after, ok := strings.Cut(term.text(), "Stopped")
		return ok && strings.HasSuffix(after, "$ ")
	}, func() string { return "no prompt:\n" + term.text() })
	term.send("echo shell $((40+2)); fg\n")
	term.expect("shell 42")
	term.send("word\n")
	term.expect("got word")
	term.send("exit\n")
	term.cmd.Wait()
}

// A program that shares a terminal could type into it, and the shell outside
// would run what it typed.
func TestCommandCannotTypeIntoTheTerminal(t *testing.T) {
	needBwrap(t)
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("there is no perl to try the ioctl with")
	}
	p := newPlace(t)
	const try = `$c = "x"; print ioctl(STDIN, 0x5412, $c) ? "typed\n" : "refused $!\n"`
	term := p.onTerminal(os.Args[0], "exec", "perl", "-e", try)
	term.expect("refused Operation not permitted")
}

// A command in the sandbox told a server outside, such as tmux, to run
// something for it.
func TestServersOutsideCannotBeReached(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	abstract := fmt.Sprintf("@scope-test-%d", os.Getpid())
	for rule, address := range map[string]string{"a socket in the workspace": p.ws + "/s", "one without a name in the file system": abstract} {
		t.Run(rule, func(t *testing.T) {
			l, err := net.Listen("unix", address)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			accepted := make(chan struct{})
			go func() {
				if c, err := l.Accept(); err == nil {
					c.Close()
					close(accepted)
				}
			}()
			if out := p.probe("dial", "unix", address); !strings.Contains(out, "operation not permitted") {
				t.Errorf("inside: %q", out)
			}
			select {
			case <-accepted:
				t.Error("the server was reached")
			default:
			}
		})
	}
}

func TestSystemCalls(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, tt := range []struct {
		rule, want string
		args       []string
	}{
		{"TCP to this machine works", "ok", []string{"dial", "tcp", l.Addr().String()}},
		{"TCP between processes inside works, as in tests of servers", "ok", []string{"loopback"}},
		{"a pair of UNIX sockets works", "ok", []string{"pair"}},
		{"there is no io_uring", "function not implemented", []string{"uring"}},
		{"no user namespace, in which the mounts could be moved aside", "operation not permitted", []string{"userns"}},
		{"no mount", "operation not permitted", []string{"mount"}},
		{"threads and processes work", "ok", []string{"fork"}},
		{"no capability that undoes a mount", "ok", []string{"caps"}},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			if out := p.probe(tt.args...); !strings.Contains(out, tt.want) {
				t.Errorf("inside: %q, want %q", out, tt.want)
			}
		})
	}
	t.Run("a call of another ABI ends the process", func(t *testing.T) {
		if runtime.GOARCH != "amd64" {
			t.Skip("amd64 alone has one in the same word size")
		}
		s := p.system()
		r, err := p.scope(s, Options{}).Capture(s, []string{os.Args[0], "probe", "x32"}, 0)
		if want := 128 + int(syscall.SIGSYS); err != nil || r.ExitCode != want {
			t.Errorf("result %+v, %v; want status %d", r, err, want)
		}
	})
}

// probe runs a function of [probes] in the scope and returns what it prints.
func (p *place) probe(args ...string) string {
	p.t.Helper()
	s := p.system()
	r, err := p.scope(s, Options{}).Capture(s, append([]string{os.Args[0], "probe"}, args...), 0)
	if err != nil {
		p.t.Fatal(err)
	}
	return r.Stdout + r.Stderr
}

// probes are what this program tries as the command in the scope.
var probes = map[string]func(args []string) error{
	"dial": func(args []string) error {
		c, err := net.Dial(args[0], args[1])
		if err == nil {
			c.Close()
		}
		return err
	},
	"loopback": func([]string) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		return exec.Command(os.Args[0], "probe", "dial", "tcp", l.Addr().String()).Run()
	},
	"pair": func([]string) error {
		_, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		return err
	},
	"uring": func([]string) error { return call(unix.SYS_IO_URING_SETUP, 1, 0) },
	"mount": func([]string) error { return syscall.Mount("none", os.TempDir(), "tmpfs", 0, "") },
	"userns": func([]string) error {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
		return cmd.Run()
	},
	"fork": func([]string) error { return exec.Command("sh", "-c", "true & wait").Run() },
	"x32":  func([]string) error { return call(x32|unix.SYS_GETPID, 0, 0) },
	"caps": func([]string) error {
		hdr, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		if err := unix.Capget(&hdr, &data[0]); err != nil {
			return err
		}
		for _, c := range []int{unix.CAP_SYS_ADMIN, unix.CAP_DAC_READ_SEARCH, unix.CAP_SYS_PTRACE, unix.CAP_MKNOD, unix.CAP_SYS_MODULE, unix.CAP_NET_ADMIN} {
			if data[0].Effective&(1<<c) != 0 {
				return fmt.Errorf("capability %d", c)
			}
		}
		return nil
	},
}

func call(nr, a, b uintptr) error {
	if _, _, errno := syscall.Syscall(nr, a, b, 0); errno != 0 {
		return errno
	}
	return nil
}

func TestCreateDropsWhatCannotBeMade(t *testing.T) {
	needBwrap(t)
	p := newPlace(t)
	p.write(p.home+"/go", "a file where the module cache would be")
	s := p.system()
	sc := p.scope(s, Options{})
	out, err := sc.Run(s, []string{"true"}, 0)
	if err != nil || out.Status != 0 {
		t.Errorf("status %d, %v", out.Status, err)
	}
	if slices.Contains(sc.Writable, p.home+"/go/pkg") {
		t.Errorf("writable %q", sc.Writable)
	}
}

// npm fills its cache and installs from it, with the real npm and a package
// that lies on the disk.
func TestNpmCacheWritable(t *testing.T) {
	needBwrap(t)
	needProgram(t, "npm")
	p := newPlace(t)
	p.mkdir(p.home + "/.npm")
	p.write(p.home+"/.npmrc", "//registry.example/:_authToken=secret\n") // hidden, which npm must bear
	p.write(p.home+"/dep/package.json", `{"name": "dep", "version": "1.0.0"}`)
	p.write(p.home+"/dep/index.js", "module.exports = 42\n")
	p.write(p.ws+"/package.json", `{"name": "x", "version": "1.0.0"}`)
	r := p.run(p.system(), Options{DenyRead: []string{p.home + "/.npmrc"}}, `set -e
		npm pack --silent ~/dep > /dev/null
		npm cache add ./dep-1.0.0.tgz
		npm install --silent --offline --no-audit --no-fund ./dep-1.0.0.tgz
		test "$(node -p "require('dep')")" = 42
		test -d ~/.npm/_cacache`)
	if r.ExitCode != 0 {
		t.Errorf("status %d\n%s%s", r.ExitCode, r.Stdout, r.Stderr)
	}
}

func TestCargoBuilds(t *testing.T) {
	needBwrap(t)
	needProgram(t, "cargo")
	p := newPlace(t)
	p.mkdir(p.home + "/.cargo/registry")
	p.write(p.home+"/.cargo/credentials.toml", "[registry]\n")
	p.write(p.ws+"/Cargo.toml", "[package]\nname = \"c\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")
	p.write(p.ws+"/src/main.rs", "fn main() { println!(\"hi\") }\n")
	rustup := os.Getenv("RUSTUP_HOME")
	if home, err := os.UserHomeDir(); err == nil && rustup == "" {
		rustup = home + "/.rustup" // where the toolchain is, though HOME is another
	}
	s := p.system("RUSTUP_HOME=" + rustup)
	version := exec.Command("cargo", "--version")
	version.Env = s.Env
	if out, err := version.CombinedOutput(); err != nil {
		t.Skipf("cargo does not run here: %s", out) // rustup's, without a toolchain
	}
	r := p.run(s, Options{DenyRead: []string{p.home + "/.cargo/credentials.toml"}}, "cargo run --quiet --offline")
	if r.ExitCode != 0 || r.Stdout != "hi\n" {
		t.Errorf("status %d\n%s%s", r.ExitCode, r.Stdout, r.Stderr)
	}
}

// pip installs a wheel into a virtual environment, its own cache below ~/.cache.
func TestPipInstalls(t *testing.T) {
	needBwrap(t)
	needProgram(t, "python3")
	p := newPlace(t)
	if out, err := exec.Command("python3", "-m", "venv", t.TempDir()).CombinedOutput(); err != nil {
		t.Skipf("python3 makes no virtual environment: %s", out)
	}
	p.write(p.ws+"/wheel.py", `import zipfile
with zipfile.ZipFile("dep-1.0-py3-none-any.whl", "w") as z:
    z.writestr("dep.py", "x = 42")
    z.writestr("dep-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: dep\nVersion: 1.0\n")
    z.writestr("dep-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("dep-1.0.dist-info/RECORD", "")
`)
	p.mustRun(`set -e
		python3 wheel.py
		python3 -m venv .venv
		.venv/bin/pip install --quiet --disable-pip-version-check --no-index ./dep-1.0-py3-none-any.whl
		test "$(.venv/bin/python -c 'import dep; print(dep.x)')" = 42`)
}

// needProgram skips a test where a program is missing.
func needProgram(t *testing.T, name string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("%s takes its time", name)
	}
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("there is no %s", name)
	}
}

func TestErrorsAreProblems(t *testing.T) {
	p := newPlace(t)
	_, err := p.scope(p.system(), Options{}).Run(p.system("PATH=/nowhere"), []string{"x y"}, 0)
	pe, ok := errors.AsType[*problem.Error](err)
	if !ok || !strings.Contains(pe.Hint, "sh -c 'x y'") {
		t.Errorf("error %v, hint %q", err, problem.HintOf(err))
	}
}
