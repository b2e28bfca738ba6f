package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/research-harness/harness/host/internal/oci/ocitest"
	"github.com/research-harness/harness/host/internal/plugin/plugintest"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/sdk"
)

// user is someone with a home directory and a harness in it.
type user struct {
	t    *testing.T
	home string
	dir  string // of the plugins
}

func newUser(t *testing.T) *user {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	u := &user{t: t, home: home, dir: filepath.Join(home, ".local/libexec/research-harness/frontends")}
	// Sources that let no session write where these tests live.
	for name, content := range map[string]string{
		"sources/settings/settings.proposal.json":     `{"sandbox": {"filesystem": {"allowWrite": [], "denyWrite": [], "denyRead": []}, "network": {"allowedDomains": []}}}`,
		"sources/settings/network.toml":               "allow = []\ndeny = []\n",
		"sources/sandbox/policy.toml":                 "[read]\nallow = []\n",
		"sources/sandbox/agentbox":                    "#!/bin/sh\n",
		".config/research-harness/profile.toml":       "[setup]\nfrontends = [\"crow\"]\n",
		".local/bin/srt":                              "#!/bin/sh\n",
		".local/share/research-harness/srt/README.md": "",
	} {
		u.write(name, content)
	}
	return u
}

func (u *user) write(name, content string) {
	u.t.Helper()
	file := filepath.Join(u.home, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
		u.t.Fatal(err)
	}
}

// run runs the harness with what the user types.
func (u *user) run(typed string, args ...string) (status int, stdout, stderr string) {
	u.t.Helper()
	return u.runWith(strings.NewReader(typed), args...)
}

func (u *user) runWith(stdin io.Reader, args ...string) (status int, stdout, stderr string) {
	u.t.Helper()
	var out, errs bytes.Buffer
	s := &system.System{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Dir: u.home, Exe: filepath.Join(u.home, ".local/bin/harness"),
		Env:   []string{"HOME=" + u.home, "PATH=" + os.Getenv("PATH"), "RESEARCH_HARNESS_SOURCE=" + filepath.Join(u.home, "sources")},
		Stdin: stdin, Stdout: &out, Stderr: &errs, Now: time.Now,
	}
	status = Main(s, args)
	return status, out.String(), errs.String()
}

// want runs the harness and checks its status and part of what it prints.
func (u *user) want(wantStatus int, part, typed string, args ...string) {
	u.t.Helper()
	status, stdout, stderr := u.run(typed, args...)
	if status != wantStatus || !strings.Contains(stdout+stderr, part) {
		u.t.Fatalf("harness %q: status %d, want %d\nstdout: %s\nstderr: %s\nwant %q", args, status, wantStatus, stdout, stderr, part)
	}
}

// read returns a file's content, empty where it is missing.
func (u *user) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(u.home, name))
	return string(data)
}

func (u *user) tree() map[string]string {
	u.t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(u.home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			data, rerr := os.ReadFile(path)
			tree[path], err = string(data), rerr
		}
		return err
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return tree
}

func crow() sdk.Contribution {
	c := plugintest.Answer("crow")
	c.Ensure = []sdk.Path{{Path: "~/.crow/settings.json", Kind: sdk.File, Content: []byte("{}\n")}}
	c.DenyWrite = []string{"~/.crow/settings.json"}
	c.Overrides = []sdk.Override{{Name: "crow-off.json", Content: []byte("{}\n")}}
	c.Args = []sdk.Arg{{Literal: "--config"}, {Override: "crow-off.json"}}
	return c
}

func TestFrontend_from_a_file_to_the_launcher_and_away(t *testing.T) {
	u := newUser(t)
	file := plugintest.Write(t, filepath.Join(u.home, "dist"), "crow", plugintest.Stub{Answer: crow()})

	u.want(2, "crow: no plugin serves this frontend", "", "install")
	u.want(0, "crow keeps every rule", "", "frontend", "test", file)
	u.want(0, "To trust it: harness frontend trust crow", "", "frontend", "add", file)
	u.want(2, "hint: harness frontend trust crow", "", "install")
	u.want(0, "untrusted", "", "frontend", "list")
	u.want(0, "It was not run.", "", "frontend", "show", "crow")
	u.want(2, "you did not say yes", "n\n", "frontend", "trust", "crow")
	u.want(2, "you did not say yes", "y\n", "frontend", "trust", "crow")
	u.want(2, "hint: harness frontend trust crow --yes", "", "frontend", "trust", "crow")
	u.want(0, "reads and writes the directory ~/.crow", "y\ny\n", "frontend", "trust", "crow")
	u.want(0, "That is what you trusted before.", "", "frontend", "trust", "crow", "--yes")
	u.want(0, `has the file crow-off.json written with {}`, "", "frontend", "show", "crow")

	u.want(0, "", "", "install", "--apply")
	for _, name := range []string{"sandbox/crow.json", "sandbox/crow-off.json", "launch/crow.json"} {
		if _, err := os.Stat(filepath.Join(u.home, ".config/research-harness", name)); err != nil {
			t.Error(err)
		}
	}
	if index := u.read(".config/research-harness/launch/index.json"); !strings.Contains(index, "The crow agent") {
		t.Errorf("the launcher does not know crow: %s", index)
	}

	wider := crow()
	wider.State = append(wider.State, sdk.Path{Path: "~/.more", Kind: sdk.Dir})
	wider.DenyWrite = nil
	file = plugintest.Write(t, filepath.Join(u.home, "dist"), "crow", plugintest.Stub{Answer: wider})
	u.want(0, "added", "", "frontend", "add", file)
	u.want(2, "has changed since it was trusted", "", "install")
	u.want(0, `state "~/.more dir" is new, which allows more`, "", "frontend", "trust", "crow", "--yes")
	u.want(0, "", "", "install", "--apply")

	u.want(0, "removed crow", "", "frontend", "remove", "crow")
	u.write(".config/research-harness/profile.toml", "[setup]\nfrontends = []\n")
	u.want(0, "", "", "install", "--apply")
	for path := range u.tree() {
		if strings.Contains(path, "crow") && !strings.Contains(path, "/.crow/") && !strings.Contains(path, "/dist/") {
			t.Errorf("left behind: %s", path)
		}
	}
	if index := u.read(".config/research-harness/launch/index.json"); strings.Contains(index, "crow") {
		t.Errorf("the launcher still knows crow: %s", index)
	}
}

func TestFrontend_through_a_registry(t *testing.T) {
	u := newUser(t)
	file := plugintest.Write(t, filepath.Join(u.home, "dist"), "crow", plugintest.Stub{Answer: crow()})
	broken := plugintest.Write(t, filepath.Join(u.home, "dist", "other"), "crow", plugintest.Stub{Mode: "exit"})
	here, elsewhere := runtime.GOOS+"/"+runtime.GOARCH+"="+file, "darwin/riscv64="+broken

	addr := ocitest.Registry(t)
	ref := "oci://" + addr + "/you/crow"
	u.want(0, ref+":1.0@sha256:", "", "frontend", "push", ref+":1.0", elsewhere, here)
	u.want(0, "  from "+ref+"@sha256:", "", "frontend", "add", ref+":1.0")
	u.want(0, "  from "+ref+"@sha256:", "", "frontend", "trust", "crow", "--yes")
	u.want(0, "source   "+ref+"@sha256:", "", "frontend", "show", "crow")
	if got := u.read(".local/libexec/research-harness/frontends/harness-frontend-crow"); got != u.read("dist/harness-frontend-crow") {
		t.Error("what was added is not the file for this platform")
	}

	t.Run("a partial download leaves nothing", func(t *testing.T) {
		u := newUser(t)
		ref := "oci://" + ocitest.Registry(t, "truncate") + "/crow:1"
		u.want(0, "", "", "frontend", "push", ref, file)
		before := u.tree()
		u.want(2, "the download is not what its digest says", "", "frontend", "add", ref)
		if after := u.tree(); !maps.Equal(before, after) {
			t.Errorf("left: %q", slices.Sorted(maps.Keys(after)))
		}
	})
}

func TestFrontend_json(t *testing.T) {
	u := newUser(t)
	u.want(0, "[]", "", "frontend", "list", "--json")
	plugintest.Write(t, u.dir, "crow", plugintest.Stub{Answer: crow()})
	u.want(0, "", "", "frontend", "trust", "crow", "--yes")
	plugintest.Write(t, u.dir, "owl", plugintest.Stub{Mode: "crash"})
	_, stdout, _ := u.run("", "frontend", "list", "--json")
	var rows []struct {
		Name, Command, File, SHA256, Trust string
		Bundled                            *bool
	}
	if err := json.Unmarshal([]byte(stdout), &rows); err != nil || len(rows) != 2 {
		t.Fatalf("%v: %s", err, stdout)
	}
	if r := rows[0]; r.Name != "crow" || r.Command != "crow" || r.Trust != "trusted" || len(r.SHA256) != 64 || r.Bundled == nil || !strings.HasPrefix(r.File, u.dir) {
		t.Errorf("crow is %+v", r)
	}
	if r := rows[1]; r.Name != "owl" || r.Command != "" || r.Trust != "untrusted" {
		t.Errorf("owl is %+v", r)
	}
}

// refused runs the harness on a hostile or broken plugin and checks that it
// ends within the limit, in one line and status 2, with no file changed and no
// process left.
func (u *user) refused(want, typed string, args ...string) {
	u.t.Helper()
	u.refusedWith(want, strings.NewReader(typed), args...)
	plugintest.NothingLeft(u.t)
}

func (u *user) refusedWith(want string, stdin io.Reader, args ...string) {
	u.t.Helper()
	before, start := u.tree(), time.Now()
	status, _, stderr := u.runWith(stdin, args...)
	if d := time.Since(start); d > 13*time.Second {
		u.t.Errorf("%q took %s", args, d)
	}
	line, hint, _ := strings.Cut(stderr, "\n")
	if status != 2 || !strings.HasPrefix(line, "harness: ") || !strings.Contains(line, "harness-frontend-") || !strings.Contains(line, want) {
		u.t.Errorf("%q: status %d: %s, want the file and %q", args, status, stderr, want)
	}
	if hint != "" && (!strings.HasPrefix(hint, "hint: ") || strings.Count(hint, "\n") != 1) {
		u.t.Errorf("%q: after the line: %q", args, hint)
	}
	if strings.ContainsAny(stderr, "\x1b\x00") {
		u.t.Errorf("%q: the message drives the terminal: %q", args, stderr)
	}
	if after := u.tree(); !maps.Equal(before, after) {
		u.t.Errorf("%q changes files: %q", args, slices.Sorted(maps.Keys(after)))
	}
}

// A hostile or broken plugin changes nothing, also when the user said yes to
// it.
func TestFrontend_trust_of_a_hostile_plugin(t *testing.T) {
	with := func(change func(*sdk.Contribution)) plugintest.Stub {
		c := crow()
		change(&c)
		return plugintest.Stub{Answer: c}
	}
	state := func(p string) plugintest.Stub {
		return with(func(c *sdk.Contribution) { c.State = append(c.State, sdk.Path{Path: p, Kind: sdk.Dir}) })
	}
	for _, tt := range []struct {
		rule, want string
		stub       plugintest.Stub
	}{
		{"exits at once", "exited with status 3", plugintest.Stub{Mode: "exit"}},
		{"prints garbage", "is not a frontend plugin", plugintest.Stub{Mode: "garbage"}},
		{"has another cookie", "exited with status 1", plugintest.Stub{Mode: "cookie"}},
		{"speaks another protocol", "speaks plugin protocol 2", plugintest.Stub{Mode: "protocol 2"}},
		{"panics", "panic: boom", plugintest.Stub{Mode: "panic"}},
		{"answers 100 MB", "more than 1 MiB", plugintest.Stub{Mode: "huge"}},
		{"forks a child that keeps the pipe", "exited with status 4", plugintest.Stub{Mode: "child and exit"}},
		{"has a name with ..", "name", with(func(c *sdk.Contribution) { c.Name = "../crow" })},
		{"has a name with a newline", `name: "crow\n"`, with(func(c *sdk.Contribution) { c.Name = "crow\n" })},
		{"has escapes in its title", "title", with(func(c *sdk.Contribution) { c.Title = "\x1b[2J" })},
		{"has home as state", "state[1]", state("~")},
		{"has ssh keys as state", "state[1]", state("~/.ssh")},
		{"has ~/.local as state", "state[1]", state("~/.local")},
		{"has ~/.config as state", "state[1]", state("~/.config")},
		{"has own outside its state", "own[0]", with(func(c *sdk.Contribution) { c.Own = []string{"~/.other"} })},
		{"has an override above the directory", "overrides[0]", with(func(c *sdk.Contribution) { c.Overrides[0].Name = "../x.json" })},
		{"has an override of another's name", "overrides[0]", with(func(c *sdk.Contribution) { c.Overrides[0].Name = "omp.json" })},
		{"has an argument with a NUL", "args[0]", with(func(c *sdk.Contribution) { c.Args[0].Literal = "\x00" })},
		{"refers to no override", "args[1]", with(func(c *sdk.Contribution) { c.Args[1].Override = "crow-no.json" })},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			u := newUser(t)
			if tt.stub.Answer.Name == "" {
				tt.stub.Answer = crow()
			}
			plugintest.Write(t, u.dir, "crow", tt.stub)
			u.refused(tt.want, "", "frontend", "trust", "crow", "--yes")
		})
	}
}

func TestFrontend_trust_of_a_plugin_that_does_not_end(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a plugin may")
	}
	t.Run("all", func(t *testing.T) {
		for _, tt := range []struct{ rule, mode, want string }{
			{"hangs in the handshake", "hang", "gave no handshake within 10s"},
			{"hangs in Describe", "hang in describe", "gave no answer within 10s"},
			{"writes to standard error without end", "stderr alone", "gave no handshake within 10s"},
		} {
			t.Run(tt.rule, func(t *testing.T) {
				t.Parallel()
				u := newUser(t)
				plugintest.Write(t, u.dir, "crow", plugintest.Stub{Mode: tt.mode, Answer: crow()})
				u.refusedWith(tt.want, nil, "frontend", "trust", "crow", "--yes")
			})
		}
	})
	plugintest.NothingLeft(t)
}

func TestFrontend_trust_of_what_is_no_plugin(t *testing.T) {
	for _, tt := range []struct {
		rule, want string
		create     func(file string) error
	}{
		{"is a directory", "is a directory", func(file string) error { return os.Mkdir(file, 0o755) }},
		{"is a dangling link", "no such file or directory", func(file string) error { return os.Symlink("/no/such", file) }},
		{"is a script without interpreter", "the interpreter in its first line, or its loader, does not exist", func(file string) error {
			return os.WriteFile(file, []byte("#!/no/such/interpreter\n"), 0o755)
		}},
		{"is not executable", "is not executable", func(file string) error { return os.WriteFile(file, nil, 0o644) }},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			u := newUser(t)
			if err := os.MkdirAll(u.dir, 0o755); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(u.dir, "harness-frontend-crow")
			if err := tt.create(file); err != nil {
				t.Fatal(err)
			}
			u.refused(tt.want, "", "frontend", "trust", "crow", "--yes")
			u.refused(tt.want, "", "frontend", "test", file)
		})
	}
}

// readFunc is a reader that is a function.
type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

func TestFrontend_trust_of_a_file_that_is_replaced_after_the_yes(t *testing.T) {
	u := newUser(t)
	file := plugintest.Write(t, u.dir, "crow", plugintest.Stub{Answer: crow()})
	other := plugintest.Write(t, filepath.Join(u.home, "other"), "crow", plugintest.Stub{Mode: "exit"})
	status, _, stderr := u.runWith(readFunc(func(b []byte) (int, error) {
		if err := os.Rename(other, file); err != nil {
			return 0, err
		}
		return copy(b, "y\n"), nil
	}), "frontend", "trust", "crow")
	if want := "harness: " + file + ": was replaced while it was being looked at\nhint: run the command again\n"; status != 2 || stderr != want {
		t.Errorf("status %d: %s, want %s", status, stderr, want)
	}
	if lock := u.read(".config/research-harness/frontends.lock.toml"); lock != "" {
		t.Errorf("it is trusted: %s", lock)
	}
	plugintest.NothingLeft(t)
}

func TestInstall_refuses_two_plugins_that_collide(t *testing.T) {
	t.Run("two with one name", func(t *testing.T) {
		u := newUser(t)
		plugintest.Write(t, u.dir, "crow", plugintest.Stub{Answer: crow()})
		u.want(0, "", "", "frontend", "trust", "crow", "--yes")
		other := filepath.Join(u.home, "more")
		plugintest.Write(t, other, "crow", plugintest.Stub{Answer: crow()})
		u.refused("is a second plugin of this name beside "+other, "", "install", "--apply", "--plugins", other)
	})
	t.Run("two with one command", func(t *testing.T) {
		u := newUser(t)
		file := plugintest.Write(t, u.dir, "crow", plugintest.Stub{Answer: crow()})
		owl := plugintest.Answer("owl")
		owl.Command = "crow"
		plugintest.Write(t, u.dir, "owl", plugintest.Stub{Answer: owl})
		u.want(0, "", "", "frontend", "trust", "crow", "--yes")
		u.want(0, "", "", "frontend", "trust", "owl", "--yes")
		u.refused(`"crow" is also the command of `+file, "", "install", "--apply")
	})
}

func TestFrontend_log_does_not_drive_the_terminal(t *testing.T) {
	u := newUser(t)
	file := plugintest.Write(t, u.dir, "crow", plugintest.Stub{Mode: "escapes", Answer: crow()})
	_, _, stderr := u.run("", "-v", "frontend", "test", file)
	for _, word := range []string{"raw", "logged", "value"} {
		if !strings.Contains(stderr, `\x1b[2J`+word) {
			t.Errorf("the log lacks %s: %s", word, stderr)
		}
	}
	if strings.Contains(stderr, "\x1b") {
		t.Errorf("the log is %q", stderr)
	}
}

func TestFrontend_usage(t *testing.T) {
	u := newUser(t)
	u.write("dist/harness-frontend-crow", "#!/bin/sh\n")
	u.write("dist/crow", "#!/bin/sh\n")
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"is not called harness-frontend-<name>", []string{"add", "dist/crow"}},
		{"no such file or directory", []string{"add", "dist/harness-frontend-none"}},
		{"hint: write it as oci://REGISTRY/REPOSITORY:TAG", []string{"add", "oci://crow"}},
		{"does not begin with oci://", []string{"push", "crow:1", "dist/harness-frontend-crow"}},
		{"hint: write it as linux/amd64=dist/harness-frontend-crow", []string{"push", "oci://localhost:1/crow:1", "dist/harness-frontend-crow", "dist/harness-frontend-crow"}},
		{"no plugin serves this frontend", []string{"remove", "none"}},
		{"no plugin serves this frontend", []string{"trust", "none"}},
		{`"Crow" is not a plain name`, []string{"new", "Crow"}},
		{"hint: use go or python", []string{"new", "crow", "--lang", "perl"}},
		{"exists already", []string{"new", "crow", "--dir", "dist"}},
		{"is not the directory of the SDK", []string{"new", "crow", "--sdk", "dist"}},
	} {
		status, _, stderr := u.run("", append([]string{"frontend"}, tt.args...)...)
		if status != 2 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: status %d, %s, want %s", tt.args, status, stderr, tt.want)
		}
	}
}

func TestCompletion_knows_the_frontends_of_third_parties(t *testing.T) {
	u := newUser(t)
	plugintest.Write(t, u.dir, "crow", plugintest.Stub{Answer: crow()})
	u.want(0, "", "", "frontend", "trust", "crow", "--yes")
	u.want(0, "", "", "install", "--apply")
	u.want(0, "crow\n", "", "completion", "commands")
	u.want(0, "crow\n", "", "__complete", "frontend", "show", "")
	u.write(".local/bin/harness", "#!/bin/sh\necho crow\necho claude\n")
	for _, tt := range []struct{ shell, before, after, want string }{
		{"bash", "", `COMP_CWORD=1; COMP_WORDS=(agentbox cr); _agentbox; echo "${COMPREPLY[@]}"`, "crow\n"},
		{"zsh", `compdef() {}; compadd() { shift; print -l -- "$@" };`, `CURRENT=2; _agentbox`, "crow\nclaude\n"},
		{"fish", "", `complete -C "agentbox cr"`, "crow\n"},
	} {
		_, script, _ := u.run("", "completion", tt.shell)
		if !strings.Contains(script, "agentbox") || !strings.Contains(script, "__complete") {
			t.Errorf("%s: %s", tt.shell, script)
		}
		if _, err := exec.LookPath(tt.shell); err != nil {
			continue
		}
		cmd := exec.Command(tt.shell, "-c", tt.before+"\n"+script+"\n"+tt.after)
		cmd.Env = []string{"HOME=" + u.home, "PATH=" + filepath.Join(u.home, ".local/bin") + ":" + os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != tt.want {
			t.Errorf("%s completes %q, %v", tt.shell, out, err)
		}
	}
}
