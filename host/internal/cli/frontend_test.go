package cli

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

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
	var out, errs bytes.Buffer
	s := &system.System{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Dir: u.home, Exe: filepath.Join(u.home, ".local/bin/harness"),
		Env:   []string{"HOME=" + u.home, "PATH=" + os.Getenv("PATH"), "RESEARCH_HARNESS_SOURCE=" + filepath.Join(u.home, "sources")},
		Stdin: strings.NewReader(typed), Stdout: &out, Stderr: &errs, Now: time.Now,
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

// A hostile or broken plugin ends in one line and changes no file, also when
// the user said yes to it.
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
			file := plugintest.Write(t, u.dir, "crow", tt.stub)
			before := u.tree()
			status, _, stderr := u.run("", "frontend", "trust", "crow", "--yes")
			line, hint, _ := strings.Cut(stderr, "\n")
			if status != 2 || !strings.HasPrefix(line, "harness: "+file+": ") || !strings.Contains(line, tt.want) {
				t.Errorf("status %d: %s, want %s", status, stderr, tt.want)
			}
			if hint != "" && (!strings.HasPrefix(hint, "hint: ") || strings.Count(hint, "\n") != 1) {
				t.Errorf("after the line: %q", hint)
			}
			after := u.tree()
			for path := range after {
				if after[path] != before[path] {
					t.Errorf("changed %s", path)
				}
			}
		})
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
	for shell, check := range map[string]string{
		"bash": `COMP_CWORD=1; COMP_WORDS=(agentbox cr); _agentbox; echo "${COMPREPLY[@]}"`,
		"zsh":  "",
		"fish": "",
	} {
		_, script, _ := u.run("", "completion", shell)
		if !strings.Contains(script, "agentbox") || !strings.Contains(script, "__complete") {
			t.Errorf("%s: %s", shell, script)
		}
		if check == "" {
			continue
		}
		cmd := exec.Command(shell, "-c", script+check)
		cmd.Env = []string{"PATH=" + filepath.Join(u.home, ".local/bin") + ":" + os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "crow\n" {
			t.Errorf("%s completes %q, %v", shell, out, err)
		}
	}
}
