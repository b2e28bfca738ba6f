package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTempDir(t *testing.T) {
	w := newWorld(t)
	w.install()
	atInstall := w.env["TMPDIR"]
	elsewhere := filepath.Join(w.root, "job")
	w.must(os.Mkdir(elsewhere, 0o755))
	long := filepath.Join(w.in("Research"), strings.Repeat("long/", 20))
	w.must(os.MkdirAll(long, 0o755))
	for _, tt := range []struct{ rule, tmpdir, want string }{
		{"set, as at the install", atInstall, atInstall},
		{"unset", "", "/tmp"},
		{"changed since to what no rule allows", elsewhere, "/tmp"},
		{"changed since to a place in a workspace", w.work, w.work},
		{"gone since", filepath.Join(w.root, "gone"), "/tmp"},
		{"too long for a socket's name", long, filepath.Clean(long)},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			delete(w.env, "TMPDIR")
			if tt.tmpdir != "" {
				w.env["TMPDIR"] = tt.tmpdir
			}
			r := w.shell("claude", `d=$(mktemp -d) && echo x > "$d/f" && echo "$d"`)
			if r.code != 0 {
				t.Fatalf("status %d: %s", r.code, r.stderr)
			}
			dir := strings.TrimSpace(r.stdout)
			if filepath.Dir(dir) != tt.want {
				t.Errorf("mktemp made %s, want it in %s", dir, tt.want)
			}
			if got := w.read(filepath.Join(dir, "f")); got != "x\n" {
				t.Errorf("on the disk it holds %q", got)
			}
			w.must(os.RemoveAll(dir))
		})
	}
}

// TestTempDirThatGrantsTooMuch renders with a TMPDIR that would open what is not
// temporary. It counts as unset.
func TestTempDirThatGrantsTooMuch(t *testing.T) {
	w := newWorld(t)
	harness := part(t, "HARNESS_TEST_BIN", "../build", "bin", "harness")
	w.write(w.in(".ssh", "id_ed25519"), "secret key")
	delete(w.env, "TMPDIR")
	unset := w.run(harness, "render", "claude")
	if unset.code != 0 || unset.stderr != "" {
		t.Fatalf("status %d: %s", unset.code, unset.stderr)
	}
	for _, dir := range []string{"/", "/etc", "/usr/", "/etc/passwd", w.home, w.in(".ssh"), w.in(".config"), "relative", "$HOME/x"} {
		t.Run(dir, func(t *testing.T) {
			w.env["TMPDIR"] = dir
			r := w.run(harness, "render", "claude")
			if r.code != 0 || r.stdout != unset.stdout || !strings.Contains(r.stderr, "warning: TMPDIR") {
				t.Errorf("status %d: %s%s", r.code, r.stdout, r.stderr)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	w := newWorld(t)
	w.install()
	args := []string{
		"", "a b", "'", `"`, `\`, "$(id)", "`id`", "$HOME", "*", "~", ";", "-", "--", "-h", "--help", "line\nbreak",
		"tab\t", "ü", "--settings", "--settings=x", strings.Repeat("x", 100_000),
	}
	// Claude Code's plugin has two of them refused.
	r := w.probe("agy", append([]string{"args"}, args...)...)
	want := make([]string, len(args))
	for i, a := range args {
		want[i] = fmt.Sprintf("%q", a)
	}
	if got := lines(r.stdout); !slices.Equal(got, want) {
		t.Errorf("status %d: got %q, want %q: %s", r.code, got, want, r.stderr)
	}
}

func TestExtraArguments(t *testing.T) {
	w := newWorld(t)
	for _, f := range frontends {
		w.stub(f.command, `if [ "$1" = --version ]; then echo "v$VERSION"; else printf '%s\n' "$@"; fi`)
	}
	w.env["VERSION"] = "1.18.33"
	w.install()
	for _, tt := range []struct{ command, version, want string }{
		{"claude", "2.1.0", "--settings " + w.in(".config", "research-harness", "sandbox", "claude-inner-off.json") + " hi"},
		{"opencode", "1.18.33", "hi"},
		{"omp", "18.2.0", "--approval-mode yolo hi"},
		{"agy", "1.0.0", "hi"},
		{"opencode", "2.0.1", "--standalone hi"},
		{"opencode", "", "--standalone hi"},
	} {
		t.Run(tt.command+" "+tt.version, func(t *testing.T) {
			w.env["VERSION"] = tt.version
			// Another file is another version.
			now := time.Now()
			w.must(os.Chtimes(filepath.Join(w.bin, tt.command), now, now))
			r := w.agentbox(tt.command, "hi")
			if got := strings.Join(lines(r.stdout), " "); got != tt.want {
				t.Errorf("status %d: got %q, want %q: %s", r.code, got, tt.want, r.stderr)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	w := newWorld(t)
	w.install()
	for _, tt := range []struct {
		script string
		want   int
	}{
		{"exit 0", 0},
		{"exit 7", 7},
		{"exit 255", 255},
		{"kill -KILL $$", 137},
		{"cat; exit 3", 3},
	} {
		if r := w.shell("omp", tt.script); r.code != tt.want {
			t.Errorf("%s: status %d, want %d: %s", tt.script, r.code, tt.want, r.stderr)
		}
	}
}

// TestEnvironment looks at what a session has from its caller.
func TestEnvironment(t *testing.T) {
	w := newWorld(t)
	w.install()
	w.env["AWS_SECRET_ACCESS_KEY"] = "two  words"
	w.env["GIT_SSH_COMMAND"] = "ssh -v"
	for _, tt := range []struct{ rule, script, want string }{
		{"the caller's variables are there, secrets too", `echo "$AWS_SECRET_ACCESS_KEY"`, "two  words"},
		{"the home directory is the caller's", `echo "$HOME"`, w.home},
		{"a session can be told from its caller", `echo "$AGENTBOX"`, "1"},
		{"git is led through the proxy", `case $GIT_SSH_COMMAND in *ProxyCommand*) echo yes;; esac`, "yes"},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			if r := w.shell("claude", tt.script); r.stdout != tt.want+"\n" {
				t.Errorf("got %q, want %q: %s", r.stdout, tt.want, r.stderr)
			}
		})
	}
}

// TestNothingRunsUnconfined takes away what confines a session.
func TestNothingRunsUnconfined(t *testing.T) {
	w := newWorld(t)
	w.install()
	w.stub("bwrap", "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
	r := w.shell("claude", "echo ran > ran")
	if r.code == 0 || !strings.Contains(r.stderr, "setting up uid map") {
		t.Errorf("status %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if got := w.read(filepath.Join(w.work, "ran")); got != "absent" {
		t.Error("the program ran")
	}
}

// TestReadOnlyHome installs where nothing can be written.
func TestReadOnlyHome(t *testing.T) {
	w := newWorld(t)
	harness := part(t, "HARNESS_TEST_BIN", "../build", "bin", "harness")
	r := w.run("bwrap", "--dev-bind", "/", "/", "--ro-bind", w.home, w.home, harness, "install", "--apply")
	if r.code != 2 || !strings.Contains(lines(r.stderr)[0], w.home) || !strings.Contains(r.stderr, "read-only file system") {
		t.Errorf("status %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

// TestProgramsBelowHome runs programs where their installers put them, from a
// session of one of them.
func TestProgramsBelowHome(t *testing.T) {
	w := newWorld(t)
	var script strings.Builder
	var want []string
	for _, dir := range []string{
		".local/bin", "bin", ".local/share/claude/versions", ".opencode/bin", ".bun/bin", ".deno/bin", ".nvm/versions/node/v24.0.0/bin",
		".volta/bin", ".asdf/shims", ".local/share/mise/shims", ".local/share/pnpm", ".npm-global/bin", ".nix-profile/bin", ".cargo/bin",
		".rustup/toolchains/stable/bin", ".pyenv/shims", "go/bin", "sdk/go1.26.0/bin", ".local/share/uv/tools/x/bin",
	} {
		program := w.in(dir, "2.1.0")
		w.write(program, "#!/bin/sh\necho "+dir+"\n")
		w.must(os.Chmod(program, 0o755))
		want = append(want, dir)
		fmt.Fprintf(&script, "%s\n", quote(program))
	}
	w.install()
	// As Claude Code's installer does.
	w.must(os.Remove(filepath.Join(w.bin, "claude")))
	w.write(w.in(".local", "share", "claude", "versions", "2.1.0"), "#!/bin/sh\nif [ $# -gt 0 ]; then shift 2; exec \"$@\"; fi\necho .local/share/claude/versions\n")
	w.must(os.Symlink("../share/claude/versions/2.1.0", w.in(".local", "bin", "claude")))
	w.env["PATH"] = w.in(".local", "bin") + ":" + w.env["PATH"]
	r := w.shell("claude", script.String())
	if got := lines(r.stdout); r.code != 0 || !slices.Equal(got, want) {
		t.Errorf("status %d: ran %q, want %q: %s", r.code, got, want, r.stderr)
	}
}

// TestStateElsewhere has the variables that move a frontend's state name
// another place, when it is installed and in the session.
func TestStateElsewhere(t *testing.T) {
	w := newWorld(t)
	elsewhere := filepath.Join(w.root, "state elsewhere")
	w.env["CLAUDE_CONFIG_DIR"] = filepath.Join(elsewhere, "claude")
	w.env["XDG_DATA_HOME"] = filepath.Join(elsewhere, "data")
	w.must(os.Mkdir(w.in(".claude"), 0o700))
	w.install()
	for command, file := range map[string]string{
		"claude":   filepath.Join(elsewhere, "claude", "projects", "p"),
		"opencode": filepath.Join(elsewhere, "data", "opencode", "storage", "s"),
	} {
		t.Run(command, func(t *testing.T) {
			r := w.shell(command, fmt.Sprintf("mkdir -p ~/.claude %[2]s && echo kept > %[1]s; echo x > ~/.claude/lost",
				quote(file), quote(filepath.Dir(file))))
			if got := w.read(file); got != "kept\n" {
				t.Errorf("status %d: the state is %q: %s", r.code, got, r.stderr)
			}
			if got := w.read(w.in(".claude", "lost")); got != "absent" {
				t.Errorf("~/.claude is still the state")
			}
		})
	}
	t.Run("a session under other variables is refused", func(t *testing.T) {
		delete(w.env, "CLAUDE_CONFIG_DIR")
		if r := w.shell("claude", "echo started"); r.code != 2 || r.stdout != "" || !strings.Contains(r.stderr, "CLAUDE_CONFIG_DIR") {
			t.Errorf("status %d: %s%s", r.code, r.stdout, r.stderr)
		}
	})
}

// TestState writes the state of each frontend in one session and reads it in
// the next, and looks for what a session leaves behind in home.
func TestState(t *testing.T) {
	w := newWorld(t)
	w.install()
	before := tree(t, w.home)
	for _, f := range frontends {
		t.Run(f.name, func(t *testing.T) {
			if r := w.shell(f.command, fmt.Sprintf("mkdir -p ~/%s && echo kept > ~/%s", filepath.Dir(f.state), f.state)); r.code != 0 {
				t.Fatalf("status %d: %s", r.code, r.stderr)
			}
			if r := w.shell(f.command, "cat ~/"+f.state); r.stdout != "kept\n" {
				t.Errorf("the next session reads %q: %s", r.stdout, r.stderr)
			}
		})
	}
	for _, line := range lines(tree(t, w.home)) {
		if !strings.Contains(before, line+"\n") && strings.Contains(line, "-r--r--r--") {
			t.Errorf("left behind: %s", line)
		}
	}
}

// TestPlaceholders looks from outside at what a running session has put on the
// disk. Only the current directory may hold files that the sandbox covers.
func TestPlaceholders(t *testing.T) {
	w := newWorld(t)
	w.install()
	for _, f := range frontends {
		t.Run(f.name, func(t *testing.T) {
			before := tree(t, w.home)
			ready := filepath.Join(w.work, f.name+".ready")
			cmd := w.command(w.in(".local", "bin", "agentbox"), f.command, "sh", "-c", "touch '"+ready+"'; cat")
			stdin, err := cmd.StdinPipe()
			w.must(err)
			w.must(cmd.Start())
			eventually(t, sessionLimit, "the session starts", func() bool { _, err := os.Stat(ready); return err == nil })
			for _, line := range lines(tree(t, w.home)) {
				if !strings.HasPrefix(line, "/Research/") && !strings.Contains(before, line+"\n") {
					t.Errorf("new while the session runs: %s", line)
				}
			}
			w.must(stdin.Close())
			w.must(cmd.Wait())
		})
	}
}

func TestHomeIsALink(t *testing.T) {
	w := newWorld(t)
	link := filepath.Join(w.root, "link")
	w.must(os.Symlink(w.home, link))
	w.env["HOME"] = link
	w.install()
	r := w.shell("claude", `echo "$HOME"; echo x > ~/.claude/f; echo x > ~/Research/f; echo x > ~/lost; cat ~/.claude/f`)
	if want := link + "\nx\n"; r.stdout != want {
		t.Errorf("got %q, want %q: %s", r.stdout, want, r.stderr)
	}
	for file, want := range map[string]string{".claude/f": "x\n", "Research/f": "x\n", "lost": "absent"} {
		if got := w.read(w.in(file)); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
}

// TestBinIsALink has ~/.local/bin lie elsewhere, as dotfile managers do.
func TestBinIsALink(t *testing.T) {
	w := newWorld(t)
	w.must(os.Rename(w.in(".local", "bin"), w.in("dot files")))
	w.must(os.Symlink("../dot files", w.in(".local", "bin")))
	w.install()
	if r := w.run(w.in(".local", "bin", "harness"), "install"); r.code != 0 {
		t.Errorf("a second install: status %d: %s%s", r.code, r.stdout, r.stderr)
	}
	agentbox := w.read(w.in("dot files", "agentbox"))
	r := w.shell("claude", `echo x > ~/.claude/f; echo evil >> ~/.local/bin/agentbox; mkdir -p ~/"dot files"; echo evil > ~/"dot files/agentbox"; ~/.local/bin/agentbox -h`)
	if !strings.Contains(r.stdout, "usage: agentbox") || w.read(w.in(".claude", "f")) != "x\n" {
		t.Errorf("status %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if got := w.read(w.in("dot files", "agentbox")); got != agentbox {
		t.Errorf("agentbox is now %q", got)
	}
}

func TestDirectoryNames(t *testing.T) {
	w := newWorld(t)
	w.install()
	for _, name := range []string{".", "deep/er", "a[1]*", "two  spaces", "naïve", "-dash", "semi;colon", `quote"'`, "new\nline", "$(id)"} {
		t.Run(name, func(t *testing.T) {
			w.work = w.in("Research", name)
			w.must(os.MkdirAll(w.work, 0o755))
			if r := w.shell("claude", "echo x > f"); r.code != 0 {
				t.Fatalf("status %d: %s", r.code, r.stderr)
			}
			if got := w.read(filepath.Join(w.work, "f")); got != "x\n" {
				t.Errorf("on the disk the file is %q", got)
			}
		})
	}
	t.Run("a hidden directory is refused", func(t *testing.T) {
		w.work = w.in("Documents")
		w.must(os.Mkdir(w.work, 0o755))
		if r := w.shell("claude", "echo started"); r.code != 2 || r.stdout != "" || len(lines(r.stderr)) != 1 || !strings.Contains(r.stderr, w.work) {
			t.Errorf("status %d: %s%s", r.code, r.stdout, r.stderr)
		}
	})
}

// terminal is a session in a terminal of 100 columns and 40 rows.
type terminal struct {
	w      *world
	socket string
}

func (w *world) terminal(args ...string) *terminal {
	w.t.Helper()
	return w.terminalOf(w.in(".local", "bin", "agentbox"), args...)
}

// terminalOf is a program in a terminal of that size.
func (w *world) terminalOf(program string, args ...string) *terminal {
	w.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CI") == "true" {
			w.t.Fatal(err)
		}
		w.t.Skip(err)
	}
	s := &terminal{w: w, socket: filepath.Join(w.root, "tmux")}
	s.tmux(append([]string{"new-session", "-d", "-x", "100", "-y", "40", "-c", w.work, program}, args...)...)
	w.t.Cleanup(func() {
		// Not by w.command, whose context has ended. Until nobody answers,
		// for a busy server can let one go by.
		if !wait(10*time.Second, func() bool { return exec.Command("tmux", "-S", s.socket, "kill-server").Run() != nil }) {
			w.t.Error("the terminal stays")
		}
	})
	return s
}

func (s *terminal) tmux(args ...string) string {
	s.w.t.Helper()
	// What has ended stays on the screen.
	r := s.w.run("tmux", append([]string{"-S", s.socket, "-f", "/dev/null", "set-option", "-g", "remain-on-exit", "on", ";"}, args...)...)
	return r.stdout
}

// screen is what the terminal shows, each kind of space as one.
func (s *terminal) screen() string {
	return strings.ReplaceAll(s.tmux("capture-pane", "-p"), "\u00a0", " ")
}

// expect waits until the screen shows all words.
func (s *terminal) expect(words ...string) {
	s.w.t.Helper()
	var screen string
	missing := func(w string) bool { return !strings.Contains(screen, w) }
	shown := wait(sessionLimit, func() bool {
		screen = s.screen()
		return !slices.ContainsFunc(words, missing)
	})
	if !shown {
		s.w.t.Fatalf("not within %v: %q on\n%s", sessionLimit, words, screen)
	}
}

// press types text, or the key of that name.
func (s *terminal) press(key string) {
	s.w.t.Helper()
	s.tmux("send-keys", key)
}

// ended waits until the session is over.
func (s *terminal) ended() {
	s.w.t.Helper()
	eventually(s.w.t, 10*time.Second, "the session ends", func() bool {
		return strings.TrimSpace(s.tmux("display-message", "-p", "#{pane_dead}")) == "1"
	})
}

func TestTerminal(t *testing.T) {
	w := newWorld(t)
	w.install()
	s := w.terminal("claude", "sh", "-c", `test -t 0 && test -t 1 && stty size; read line; echo "got $line"
		trap 'echo "now $(stty size)"' WINCH; while :; do sleep 0.1; done`)
	s.expect("40 100")
	s.press("hello")
	s.press("Enter")
	s.expect("got hello")
	s.tmux("resize-window", "-x", "90", "-y", "30")
	s.expect("now 30 90")
	s.press("C-c")
	s.ended()
}
