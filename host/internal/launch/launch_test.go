package launch_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/research-harness/harness/host/internal/front"
	"github.com/research-harness/harness/host/internal/launch"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/srt"
	"github.com/research-harness/harness/host/internal/system"
)

// TestMain lets the test binary be the programs that it stands for under
// their names: the harness, and a runtime that prints what it gets.
func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "srt":
		fmt.Print(strings.Join(os.Args, "\x00"), "\x00\x00", strings.Join(os.Environ(), "\x00"))
		os.Exit(7)
	case len(os.Args) > 1 && (os.Args[1] == "launch" || os.Args[1] == "warden"):
		os.Exit(front.Main(system.Host(), os.Args[1:]))
	}
	os.Exit(m.Run())
}

// world is a home with one installed frontend, "stub".
type world struct {
	t    *testing.T
	lay  layout.Layout
	work string // a workspace, the current directory
	bin  string // on PATH
	env  map[string]string
	spec launch.Spec
	set  srt.Settings
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(root, "hø me")
	w := &world{
		t: t, lay: layout.Layout{Home: home}, work: home + "/Research/x", bin: root + "/bin",
		env: map[string]string{"HOME": home, "PATH": root + "/bin:/usr/bin:/bin"},
	}
	w.spec = launch.Spec{
		Frontend: "stub-policy", Command: "stub", Title: "Stub",
		Settings:  w.lay.Settings("stub-policy"),
		Overrides: []string{w.lay.Override("stub-policy-off.json")},
		Args:      []launch.Arg{{Value: "--settings"}, {Value: w.lay.Override("stub-policy-off.json")}},
		Refused:   []launch.Refused{{Arg: "--settings", Reason: "put more settings into the user settings"}},
	}
	w.set = srt.Settings{Filesystem: srt.Filesystem{DenyRead: []string{home}, AllowWrite: []string{home + "/Research", "/tmp"}}}
	w.mkdir(w.work, w.bin, w.lay.Bin(), w.lay.LaunchDir(), w.lay.SandboxDir())
	w.program(w.bin+"/stub", "exit 0")
	w.tools(w.bin)
	w.link(w.lay.Srt())
	w.link(w.lay.Harness())
	w.install()
	return w
}

func (w *world) mkdir(dirs ...string) {
	w.t.Helper()
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) write(file string, data []byte, mode os.FileMode) {
	w.t.Helper()
	// A program that a process forked meanwhile holds open could not be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, data, mode); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) program(file, body string) {
	w.t.Helper()
	w.write(file, []byte("#!/bin/sh\n"+body+"\n"), 0o755)
}

// tools puts what the runtime needs into directories.
func (w *world) tools(dirs ...string) {
	w.t.Helper()
	for _, dir := range dirs {
		for _, name := range srt.Programs("linux") {
			w.program(dir+"/"+name, "exit 0")
		}
	}
}

// link makes file this test binary.
func (w *world) link(file string) {
	w.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	w.symlink(exe, file)
}

func (w *world) symlink(target, file string) {
	w.t.Helper()
	if err := os.Symlink(target, file); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(file string) {
	w.t.Helper()
	if err := os.RemoveAll(file); err != nil {
		w.t.Fatal(err)
	}
}

// install writes what the launcher reads.
func (w *world) install() {
	w.t.Helper()
	w.write(w.lay.Launch("stub"), w.spec.Encode(), 0o644)
	w.write(w.lay.Settings("stub-policy"), w.set.Encode(), 0o644)
	w.write(w.lay.Override("stub-policy-off.json"), []byte("{}\n"), 0o644)
	w.write(w.lay.Index(), launch.Index{Frontends: []launch.IndexEntry{
		{Name: "stub-policy", Command: "stub", Title: "Stub"},
		{Name: "other", Command: "other-command", Title: "Other"},
	}}.Encode(), 0o644)
}

func (w *world) environ() []string {
	var env []string
	for k, v := range w.env {
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	return env
}

func (w *world) system() *system.System {
	return &system.System{OS: runtime.GOOS, Arch: runtime.GOARCH, Env: w.environ(), Dir: w.work, Now: time.Now}
}

func (w *world) prepare(args ...string) (*launch.Start, error) {
	return launch.Prepare(w.t.Context(), w.system(), args)
}

func (w *world) refuses(want string, args ...string) {
	w.t.Helper()
	start, err := w.prepare(args...)
	if err == nil {
		w.t.Fatalf("starts %q, want a refusal that says %q", start.Argv, want)
	}
	for _, part := range strings.Split(want, "|") {
		if !strings.Contains(err.Error(), part) {
			w.t.Errorf("refuses with %q, want %q in it", err, part)
		}
	}
}

func (w *world) starts(args ...string) *launch.Start {
	w.t.Helper()
	start, err := w.prepare(args...)
	if err != nil {
		w.t.Fatalf("refuses with %q", err)
	}
	return start
}

func TestTheFirstReasonForARefusalDecides(t *testing.T) {
	w := newWorld(t)
	value := "old"
	w.spec.Env = map[string]*string{"STUB_HOME": &value}
	w.install()
	w.env["AGENTBOX"] = ""
	w.env["PATH"] = w.work
	w.remove(w.lay.Srt())
	w.remove(w.bin + "/socat")
	w.remove(w.lay.Launch("stub"))
	w.remove(w.lay.Settings("stub-policy"))
	hidden := w.lay.Home + "/opt"
	w.mkdir(hidden)
	work := w.work

	// Everything is wrong. Each step mends what the one before was refused for.
	w.refuses("no frontend named|stub, other-command")
	w.refuses(`no frontend "stab"|stub, other-command`, "stab", "--settings")
	w.refuses("AGENTBOX", "stub", "--settings")
	delete(w.env, "AGENTBOX")
	w.refuses(w.lay.Srt()+" |harness setup", "stub", "--settings")
	w.link(w.lay.Srt())
	w.refuses(w.lay.Launch("stub")+": |harness install --apply", "stub", "--settings")
	w.install()
	w.remove(w.lay.Settings("stub-policy"))
	w.remove(w.lay.Override("stub-policy-off.json"))
	w.refuses(w.lay.Settings("stub-policy")+": |harness install --apply", "stub", "--settings")
	w.install()
	w.remove(w.lay.Override("stub-policy-off.json"))
	w.refuses(w.lay.Override("stub-policy-off.json")+": |harness install --apply", "stub", "--settings")
	w.install()
	w.refuses("no program stub on PATH|Stub", "stub", "--settings")
	w.env["PATH"] = hidden
	w.program(hidden+"/stub", "exit 0")
	w.work = w.lay.Home
	w.refuses("--settings may not be given|put more settings", "stub", "--settings")
	w.refuses("the program "+hidden+`/stub is hidden|add "~/opt" to [read] allow|harness install`, "stub")
	w.env["PATH"] = w.bin
	w.refuses("the current directory "+w.lay.Home+" is hidden|change to a workspace", "stub")
	w.work = work
	w.refuses(`STUB_HOME is not set but was "old"|harness install --apply`, "stub")
	w.env["STUB_HOME"] = "new"
	w.refuses(`STUB_HOME is "new" but was "old"|harness install --apply`, "stub")
	w.env["STUB_HOME"] = "old"
	if runtime.GOOS == "linux" {
		w.refuses("the sandbox needs socat, not found on PATH|harness setup --apply --system-packages", "stub")
	}
	w.tools(w.bin)
	w.starts("stub")
}

func TestAFrontendThatWasMeant(t *testing.T) {
	for word, want := range map[string]string{
		"stub-policy": "did you mean: agentbox stub ", "other": "did you mean: agentbox other-command ",
		"stab": "did you mean: agentbox stub ", "other-comand": "did you mean: agentbox other-command ", "cursor": "type agentbox and one of",
	} {
		newWorld(t).refuses(`no frontend "`+word+`"|`+want+`|stub, other-command`, word)
	}
}

// TestALaunchFileOfOtherTypes names the key and no type of Go.
func TestALaunchFileOfOtherTypes(t *testing.T) {
	for content, want := range map[string]string{
		`{"version": 1, "args": "x"}`: ": args: is a JSON string where something else belongs; type: harness install --apply",
		`{"version": "1"}`:            ": version: is a JSON string where something else belongs; type: harness install --apply",
		`[]`:                          ": is a JSON array where something else belongs; type: harness install --apply",
		`{"version": 1, "command": "stub", "settings": "/x"`: ": is no JSON: unexpected end of JSON input; type: harness install --apply",
		`{"version": 1, "env": {"A": 1}}`:                    ": env: is a JSON number where something else belongs; type: harness install --apply",
		`{"version": 1, "refused": [{"arg": ["a"]}]}`:        ": refused.arg: is a JSON array where something else belongs; type: harness install --apply",
	} {
		w := newWorld(t)
		w.write(w.lay.Launch("stub"), []byte(content), 0o644)
		_, err := w.prepare("stub")
		if err == nil || err.Error() != w.lay.Launch("stub")+want {
			t.Errorf("%s: %v", content, err)
		}
	}
}

func TestUsageDrivesNoTerminal(t *testing.T) {
	w := newWorld(t)
	w.write(w.lay.Index(), launch.Index{Frontends: []launch.IndexEntry{{Name: "x", Command: "x\x1b[2J", Title: "X\r\n"}}}.Encode(), 0o644)
	if got := launch.Usage(w.system()); strings.ContainsAny(got, "\x1b\r") || !strings.Contains(got, `x\x1b[2J`) {
		t.Errorf("%q", got)
	}
}

func TestWhatASessionCannotWriteIsAWarning(t *testing.T) {
	tests := map[string]struct {
		work string // H is home, W the workspace
		env  map[string]string
		want string // the whole line
	}{
		"nothing":                       {"W", nil, ""},
		"the current directory":         {"/usr", nil, "warning: the session cannot write the current directory /usr (start in a workspace)"},
		"a directory that is shown":     {"H/shown", nil, "warning: the session cannot write the current directory H/shown (start in a workspace)"},
		"a temporary directory":         {"W", map[string]string{"CLAUDE_CODE_TMPDIR": "/usr"}, "warning: the session cannot write CLAUDE_CODE_TMPDIR=/usr (unset it)"},
		"one that is missing":           {"W", map[string]string{"CLAUDE_TMPDIR": "H/nowhere"}, "warning: the session cannot write CLAUDE_TMPDIR=H/nowhere (unset it)"},
		"a temporary directory that is": {"W", map[string]string{"CLAUDE_CODE_TMPDIR": "/tmp", "CLAUDE_TMPDIR": "/usr"}, ""},
		"an empty one":                  {"W", map[string]string{"CLAUDE_CODE_TMPDIR": ""}, ""},
		"everything is one line": {
			"/usr", map[string]string{"CLAUDE_CODE_TMPDIR": "/usr", "GOCACHE": "/a", "GOPATH": "/b"},
			"warning: the session cannot write the current directory /usr (start in a workspace), nor CLAUDE_CODE_TMPDIR=/usr (unset it), nor GOCACHE=/a, GOPATH=/b; type: harness install --apply",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mkdir(w.lay.Home + "/shown")
			w.set.Filesystem.AllowRead = append(w.set.Filesystem.AllowRead, w.lay.Home+"/shown")
			w.install()
			place := strings.NewReplacer("H/", w.lay.Home+"/", "W", w.work)
			w.work = place.Replace(tt.work)
			for k, v := range tt.env {
				w.env[k] = place.Replace(v)
			}
			if got := w.starts("stub").Warning; got != strings.ReplaceAll(tt.want, "H/", w.lay.Home+"/") {
				t.Errorf("warning is %q", got)
			}
		})
	}
}

func TestAFrontendIsKnownByItsCommandAlone(t *testing.T) {
	tests := map[string]struct{ command, want string }{
		"a policy name is no command":              {"stub-policy", "no frontend"},
		"another spelling is another name":         {"Stub", "no frontend"},
		"an empty name":                            {"", `no frontend ""`},
		"the index is no frontend":                 {"index", `no frontend "index"`},
		"a name cannot leave the launch directory": {"../sandbox/stub-policy", "no frontend"},
		"a path":                         {"/bin/sh", "no frontend"},
		"an option":                      {"--settings", "no frontend"},
		"a line break stays in its line": {"a\nb", `no frontend "a\nb"`},
		"no text":                        {"\xff", `no frontend "\xff"`},
		"one that is known but not chosen names its file": {"other-command",
			"launch/other-command.json: no such file|harness install --apply|[setup] frontends|\"other\""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { newWorld(t).refuses(tt.want, tt.command) })
	}
}

func TestWithoutAnIndexTheBundledFrontendsAreKnown(t *testing.T) {
	for name, index := range map[string]string{"missing": "", "broken": "{", "of another format": `{"version": 9}`} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.remove(w.lay.Index())
			if index != "" {
				w.write(w.lay.Index(), []byte(index), 0o644)
			}
			w.refuses("one of: claude, opencode, omp, agy", "x")
			w.refuses("launch/agy.json: no such file|harness install --apply", "agy")
			w.starts("stub")
		})
	}
}

func TestEveryFileOfAFrontendIsARegularFile(t *testing.T) {
	for _, name := range []string{"launch file", "settings", "override"} {
		for fault, spoil := range map[string]func(w *world, file string){
			"missing":         func(w *world, file string) { w.remove(file) },
			"a directory":     func(w *world, file string) { w.remove(file); w.mkdir(file) },
			"a dangling link": func(w *world, file string) { w.remove(file); w.symlink("nowhere", file) },
			"a loop":          func(w *world, file string) { w.remove(file); w.symlink(file, file) },
			"a device":        func(w *world, file string) { w.remove(file); w.symlink("/dev/null", file) },
			"a FIFO": func(w *world, file string) {
				w.remove(file)
				if err := syscall.Mkfifo(file, 0o600); err != nil {
					w.t.Fatal(err)
				}
			},
		} {
			t.Run(name+" is "+fault, func(t *testing.T) {
				w := newWorld(t)
				file := map[string]string{
					"launch file": w.lay.Launch("stub"), "settings": w.spec.Settings, "override": w.spec.Overrides[0],
				}[name]
				spoil(w, file)
				w.refuses(file+": |type: harness install --apply", "stub")
			})
		}
		t.Run(name+" is unreadable", func(t *testing.T) {
			if os.Geteuid() == 0 || name == "override" {
				t.Skip("nothing is unreadable for root, and an override is not read")
			}
			w := newWorld(t)
			file := map[string]string{"launch file": w.lay.Launch("stub"), "settings": w.spec.Settings}[name]
			if err := os.Chmod(file, 0); err != nil {
				t.Fatal(err)
			}
			w.refuses(file+": permission denied|type: harness install --apply", "stub")
		})
		t.Run(name+" is a link to a file", func(t *testing.T) {
			w := newWorld(t)
			for _, file := range []string{w.lay.Launch("stub"), w.spec.Settings, w.spec.Overrides[0]} {
				if err := os.Rename(file, file+".real"); err != nil {
					t.Fatal(err)
				}
				w.symlink(file+".real", file)
			}
			w.starts("stub")
		})
	}
}

func TestALaunchFileThatInstallDidNotWrite(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "no JSON": "x", "another format": `{"version": 2}`, "no settings": `{"version": 1, "command": "stub"}`,
		"another frontend's": `{"version": 1, "command": "claude", "settings": "/s"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.lay.Launch("stub"), []byte(text), 0o644)
			w.refuses(w.lay.Launch("stub")+": |harness install --apply", "stub")
		})
	}
}

func TestSettingsThatCannotBeParsedAreLeftToTheRuntime(t *testing.T) {
	w := newWorld(t)
	w.write(w.spec.Settings, []byte("{"), 0o644)
	w.work = w.lay.Home
	w.starts("stub")
}

func TestTheRuntimeIsAnExecutableFile(t *testing.T) {
	for name, spoil := range map[string]func(w *world){
		"missing":        func(*world) {},
		"a directory":    func(w *world) { w.mkdir(w.lay.Srt()) },
		"a dead link":    func(w *world) { w.symlink("nowhere", w.lay.Srt()) },
		"not executable": func(w *world) { w.write(w.lay.Srt(), []byte("#!/bin/sh\n"), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.remove(w.lay.Srt())
			spoil(w)
			w.env["PATH"] = w.bin + ":" + w.lay.Bin()
			w.program(w.bin+"/srt", "exit 0") // one on PATH does not count
			w.refuses("harness setup", "stub")
		})
	}
}

func TestTheProgramIsTheFirstOnPath(t *testing.T) {
	tests := map[string]struct {
		path string // B is a directory that holds the program
		want string // W is the current directory; empty for a refusal
	}{
		"the first directory wins":                 {"B:W/other", "B/stub"},
		"a directory of that name is passed over":  {"W/dir:B", "B/stub"},
		"a file that cannot run is passed over":    {"W/plain:B", "B/stub"},
		"a relative entry becomes absolute":        {"other", "W/other/stub"},
		"so does one with dots":                    {"../x/./other/", "W/other/stub"},
		"an empty entry is the current directory":  {"/nowhere::B", "W/stub"},
		"an empty PATH is the current directory":   {"", "W/stub"},
		"a dangling link is passed over":           {"W/dangling:B", "B/stub"},
		"no entry holds it":                        {"/nowhere", ""},
		"a tilde is no home":                       {"~/Research/x", ""},
		"a link keeps its own name":                {"W/link", "W/link/stub"},
		"a trailing slash makes no double slash":   {"B/", "B/stub"},
		"a name with spaces and letters like ø is": {"W/ø ä", "W/ø ä/stub"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mkdir(w.work+"/other", w.work+"/dir/stub", w.work+"/plain", w.work+"/dangling", w.work+"/link", w.work+"/ø ä")
			for _, p := range []string{"/stub", "/other/stub", "/ø ä/stub"} {
				w.program(w.work+p, "exit 0")
			}
			w.write(w.work+"/plain/stub", nil, 0o644)
			w.symlink("nowhere", w.work+"/dangling/stub")
			w.symlink("../other/stub", w.work+"/link/stub")
			w.tools(w.work, w.work+"/other", w.work+"/link", w.work+"/ø ä")
			place := strings.NewReplacer("B", w.bin, "W", w.work)
			w.env["PATH"] = place.Replace(tt.path)
			if tt.want == "" {
				w.refuses("no program stub on PATH", "stub")
				return
			}
			if got := w.starts("stub").Argv[4]; got != place.Replace(tt.want) {
				t.Errorf("is %q, want %q", got, place.Replace(tt.want))
			}
		})
	}
	t.Run("without PATH there is none", func(t *testing.T) {
		w := newWorld(t)
		delete(w.env, "PATH")
		w.refuses("no program stub on PATH", "stub")
	})
}

func TestRefusedArguments(t *testing.T) {
	for _, args := range [][]string{
		{"--settings"}, {"--settings="}, {"--settings=x"}, {"a", "--settings", "x"}, {"--", "--settings"}, {"-p", "--settings"},
	} {
		newWorld(t).refuses("--settings may not be given to stub: put more settings into the user settings", append([]string{"stub"}, args...)...)
	}
	for _, args := range [][]string{{"--settingsx"}, {"-settings"}, {"--setting"}, {"x--settings"}, {" --settings"}, {"--SETTINGS"}} {
		newWorld(t).starts(append([]string{"stub"}, args...)...)
	}
}

func TestWhatTheSessionWouldNotSee(t *testing.T) {
	t.Run("a program whose link leads into a hidden place", func(t *testing.T) {
		w := newWorld(t)
		w.mkdir(w.lay.Home + "/.opt/v1")
		w.program(w.lay.Home+"/.opt/v1/real", "exit 0")
		w.symlink(w.lay.Home+"/.opt/v1/real", w.work+"/step")
		w.remove(w.bin + "/stub")
		w.symlink(w.work+"/step", w.bin+"/stub")
		w.refuses("the program "+w.lay.Home+`/.opt/v1/real is hidden|"~/.opt/v1"`, "stub")
		w.set.Filesystem.AllowRead = []string{w.lay.Home + "/.opt/v1"}
		w.install()
		w.starts("stub")
	})
	t.Run("a program whose link is hidden and whose file is not", func(t *testing.T) {
		w := newWorld(t)
		w.program(w.work+"/real", "exit 0")
		w.mkdir(w.lay.Home + "/links")
		w.symlink(w.work+"/real", w.lay.Home+"/links/stub")
		w.env["PATH"] = w.lay.Home + "/links"
		w.refuses("the program "+w.lay.Home+`/links/stub is hidden|"~/links"`, "stub")
	})
	t.Run("a program in home itself does not open home", func(t *testing.T) {
		w := newWorld(t)
		w.program(w.lay.Home+"/stub", "exit 0")
		w.env["PATH"] = w.lay.Home
		w.refuses(`add "~/stub" to [read] allow`, "stub")
	})
	t.Run("a program outside home that the template hides", func(t *testing.T) {
		w := newWorld(t)
		w.set.Filesystem.DenyRead = append(w.set.Filesystem.DenyRead, w.bin)
		w.install()
		w.refuses("the program "+w.bin+"/stub is hidden|"+w.bin+"|settings template", "stub")
	})
	t.Run("a current directory below home", func(t *testing.T) {
		w := newWorld(t)
		w.work = w.lay.Home + "/elsewhere"
		w.mkdir(w.work)
		w.refuses("the current directory "+w.work+" is hidden|harness workspace add && harness install --apply", "stub")
	})
	t.Run("one that is only above visible ones", func(t *testing.T) {
		w := newWorld(t)
		w.set.Filesystem.AllowWrite = []string{w.work + "/deep/down"}
		w.mkdir(w.work + "/deep/down")
		w.install()
		w.work += "/deep"
		w.refuses("the current directory "+w.work+" is hidden", "stub")
		w.work += "/down"
		w.starts("stub")
	})
	t.Run("one that is reached through a link", func(t *testing.T) {
		w := newWorld(t)
		w.mkdir(w.lay.Home + "/hidden")
		w.symlink(w.lay.Home+"/hidden", w.work+"/link")
		w.work += "/link"
		w.refuses("the current directory "+w.lay.Home+"/hidden is hidden", "stub")
	})
	t.Run("one that is gone", func(t *testing.T) {
		w := newWorld(t)
		w.work += "/gone"
		w.refuses("the current directory is gone", "stub")
		w.work = ""
		w.refuses("the current directory is gone", "stub")
	})
	t.Run("one outside home is seen", func(t *testing.T) {
		w := newWorld(t)
		w.work = "/usr"
		w.starts("stub")
	})
}

func TestAVariableThatThePluginNamed(t *testing.T) {
	one := "one"
	tests := map[string]struct {
		was  *string
		is   map[string]string
		want string // empty for a start
	}{
		"unset and unset":    {nil, nil, ""},
		"unset and set":      {nil, map[string]string{"V": "x"}, `V is "x" but was not set at install`},
		"unset and empty":    {nil, map[string]string{"V": ""}, ""},
		"set and the same":   {&one, map[string]string{"V": "one"}, ""},
		"set and another":    {&one, map[string]string{"V": "two"}, `V is "two" but was "one" at install`},
		"set and unset":      {&one, nil, `V is not set but was "one" at install`},
		"a value with lines": {&one, map[string]string{"V": "a\nb"}, `V is "a\nb" but`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.spec.Env = map[string]*string{"V": tt.was}
			w.install()
			for k, v := range tt.is {
				w.env[k] = v
			}
			if tt.want == "" {
				w.starts("stub")
				return
			}
			w.refuses(tt.want+"|harness install --apply", "stub")
		})
	}
}

func TestHomeIsADirectory(t *testing.T) {
	for _, home := range []string{"", "relative", "/", "//", "/nowhere/at/all"} {
		t.Run(home, func(t *testing.T) {
			w := newWorld(t)
			w.env["HOME"] = home
			w.refuses("HOME|export HOME=", "stub")
		})
	}
	t.Run("a trailing slash and a link change nothing", func(t *testing.T) {
		w := newWorld(t)
		w.symlink(w.lay.Home, w.bin+"/home")
		w.env["HOME"] = w.bin + "/home/"
		if got := w.starts("stub").Argv[2]; got != w.spec.Settings {
			t.Errorf("settings are %s", got)
		}
	})
}

func TestTheEnvironmentOfASession(t *testing.T) {
	long := strings.Repeat("l", 90)
	tests := map[string]struct {
		env    map[string]string // in values, W is the workspace, H is home
		want   string            // CLAUDE_CODE_TMPDIR of the session, empty for unset
		srt    string            // TMPDIR of the runtime
		nowhat bool              // /tmp is not writable
	}{
		"no TMPDIR":                         {nil, "/tmp", "", false},
		"an empty one":                      {map[string]string{"TMPDIR": ""}, "/tmp", "", false},
		"one that the session can write":    {map[string]string{"TMPDIR": "W/t"}, "W/t", "W/t", false},
		"with a trailing slash":             {map[string]string{"TMPDIR": "W/t/"}, "W/t", "W/t/", false},
		"a link to it":                      {map[string]string{"TMPDIR": "W/link"}, "W/t", "W/t", false},
		"one that it cannot write":          {map[string]string{"TMPDIR": "H/t"}, "/tmp", "H/t", false},
		"a file":                            {map[string]string{"TMPDIR": "W/file"}, "/tmp", "/tmp", false},
		"one that is missing":               {map[string]string{"TMPDIR": "/nowhere"}, "/tmp", "/tmp", false},
		"a relative one":                    {map[string]string{"TMPDIR": "t"}, "W/t", "W/t", false},
		"one too long for sockets":          {map[string]string{"TMPDIR": "W/" + long}, "W/" + long, "/tmp", false},
		"the caller chose for the session":  {map[string]string{"TMPDIR": "W/t", "CLAUDE_CODE_TMPDIR": "/x"}, "/x", "W/t", false},
		"or by the older name":              {map[string]string{"TMPDIR": "W/t", "CLAUDE_TMPDIR": "/x"}, "", "W/t", false},
		"an empty choice is none":           {map[string]string{"CLAUDE_CODE_TMPDIR": ""}, "/tmp", "", false},
		"nothing writable leaves it unset":  {map[string]string{"TMPDIR": "H/t"}, "", "H/t", true},
		"the root is no temporary place":    {map[string]string{"TMPDIR": "/"}, "/tmp", "/", false},
		"other names for it reach srt only": {map[string]string{"TMP": "/nowhere"}, "/tmp", "/tmp", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if len(w.work) > 72 {
				t.Skip("the test's own directory is too long for the case")
			}
			w.mkdir(w.work+"/t", w.work+"/"+long, w.lay.Home+"/t")
			w.write(w.work+"/file", nil, 0o644)
			w.symlink("t", w.work+"/link")
			if tt.nowhat {
				w.set.Filesystem.AllowWrite = []string{w.work}
				w.install()
			}
			place := strings.NewReplacer("W", w.work, "H", w.lay.Home)
			for k, v := range tt.env {
				w.env[k] = place.Replace(v)
			}
			got := environment(w.starts("stub").Env)
			want := environment(w.environ())
			want["AGENTBOX"] = "1"
			for key, v := range map[string]string{"CLAUDE_CODE_TMPDIR": tt.want, "TMPDIR": tt.srt} {
				if v = place.Replace(v); v != "" {
					want[key] = v
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func environment(env []string) map[string]string {
	m := map[string]string{}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		m[k] = v
	}
	return m
}

func TestACacheThatTheSessionCannotWriteIsAWarning(t *testing.T) {
	tests := map[string]struct {
		key, value string
		warns      bool
	}{
		"a Go cache":                      {"GOCACHE", "/nowhere", true},
		"one that it can write":           {"GOCACHE", "W/c", false},
		"off":                             {"GOCACHE", "off", false},
		"empty":                           {"GOCACHE", "", false},
		"Go's modules":                    {"GOMODCACHE", "H/mod", true},
		"GOPATH counts by its pkg":        {"GOPATH", "H/go", false},
		"and each of its entries":         {"GOPATH", "H/go:H/go2", true},
		"the user's caches":               {"XDG_CACHE_HOME", "H/.cache", true},
		"npm's":                           {"npm_config_cache", "H/.npm", true},
		"cargo's, of which not all count": {"CARGO_HOME", "H/.cargo", false},
		"another cargo's":                 {"CARGO_HOME", "H/c", true},
		"another variable":                {"PIP_CACHE_DIR", "/nowhere", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, d := range []string{"/go/pkg", "/.cargo/registry"} {
				w.mkdir(w.lay.Home + d)
				w.set.Filesystem.AllowWrite = append(w.set.Filesystem.AllowWrite, w.lay.Home+d)
			}
			w.install()
			w.env[tt.key] = strings.NewReplacer("W", w.work, "H", w.lay.Home).Replace(tt.value)
			got := w.starts("stub").Warning
			if !tt.warns && got != "" || tt.warns && !(strings.Contains(got, tt.key+"=") && strings.Contains(got, "harness install --apply")) {
				t.Errorf("warning is %q", got)
			}
		})
	}
	t.Run("several are one line", func(t *testing.T) {
		w := newWorld(t)
		w.env["GOCACHE"], w.env["CARGO_HOME"] = "/a", "/b"
		if got := w.starts("stub").Warning; !strings.Contains(got, "GOCACHE=/a, CARGO_HOME=/b;") {
			t.Errorf("warning is %q", got)
		}
	})
}

func TestAnArgumentThatHoldsForSomeVersions(t *testing.T) {
	tests := map[string]struct {
		constraint, program string
		want                bool
	}{
		"met":                                   {">= 2", "echo 2.0.1", true},
		"not met":                               {">= 2", "echo 1.18.33", false},
		"a name before the version":             {">= 2", "echo stub/1.2.3", false},
		"a v and more after it":                 {">= 2", "echo v2.1.0 (Stub) 1.0.0", true},
		"a pre-release counts as its release":   {">= 2", "echo 2.0.0-beta.3", true},
		"two numbers are a version":             {"< 2", "echo stub 1.9", true},
		"a failure counts as the newest":        {">= 2", "echo 1.0.0; exit 1", true},
		"the newest is newer than any":          {"< 3", "exit 1", false},
		"no version in the output":              {">= 2", "echo 12 hello 4", true},
		"what it prints as an error is nothing": {">= 2", "echo 1.0.0 >&2", true},
		"no input and no terminal":              {">= 2", "read x || (: </dev/tty) 2>/dev/null || echo 1.0.0", false},
		"not in the user's directory":           {">= 2", "test $(pwd) = / && echo 1.0.0", false},
		"a child that holds the output":         {">= 2", "sleep 60 & echo 1.0.0", false},
		"much output":                           {">= 2", "echo 1.0.0; head -c 10000000 /dev/zero", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.spec.Args = []launch.Arg{{Value: "always"}, {Value: "sometimes", Versions: tt.constraint}, {Value: "last"}}
			w.install()
			w.program(w.bin+"/stub", tt.program)
			want := []string{"always", "last", "user"}
			if tt.want {
				want = []string{"always", "sometimes", "last", "user"}
			}
			if got := w.starts("stub", "user").Argv[5:]; !slices.Equal(got, want) {
				t.Errorf("arguments are %q, want %q", got, want)
			}
		})
	}
}

func TestAProgramThatDoesNotAnswerIsEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fifo := w.work + "/fifo"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // the FIFO ends with the last process that has it open
		_, _ = os.ReadFile(fifo)
		close(ended)
	}()
	w.program(w.bin+"/stub", "exec 3>'"+fifo+"'; sleep 60 & sleep 60; echo 1.0.0")
	begin := time.Now()
	if got := launch.FindVersion(t.Context(), w.bin+"/stub", w.environ()); got != "" {
		t.Errorf("version is %q", got)
	}
	if d := time.Since(begin); d < 4*time.Second || d > 9*time.Second {
		t.Errorf("took %v", d)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("it still runs")
	}
}

func TestAVersionIsAskedForOncePerFile(t *testing.T) {
	w := newWorld(t)
	w.spec.Args = []launch.Arg{{Value: "new", Versions: ">= 2"}}
	calls := func() int { data, _ := os.ReadFile(w.work + "/calls"); return len(data) }
	at := func(version string) {
		w.remove(w.bin + "/stub")
		w.program(w.bin+"/stub", "printf x >>'"+w.work+"/calls'; echo "+version)
	}
	at("2.0.0")
	p := launch.FindProgram(t.Context(), w.system(), w.lay.Launch("stub"), "stub")
	if p == nil || p.Version != "2.0.0" || p.Path != w.bin+"/stub" {
		t.Fatalf("found %+v", p)
	}
	w.spec.Program = p
	w.install()
	w.starts("stub")
	launch.FindProgram(t.Context(), w.system(), w.lay.Launch("stub"), "stub")
	if calls() != 1 {
		t.Errorf("asked %d times, want once by install", calls())
	}
	at("11.22.3333")
	for range 3 {
		w.starts("stub")
	}
	if again := launch.FindProgram(t.Context(), w.system(), w.lay.Launch("stub"), "stub"); again.Version != "11.22.3333" {
		t.Errorf("install finds %+v", again)
	}
	if calls() != 2 {
		t.Errorf("asked %d times, want once more by the first start", calls())
	}
	if _, err := os.Stat(launch.VersionCache(w.lay.Launch("stub"))); err != nil {
		t.Error(err)
	}
	if launch.FindProgram(t.Context(), w.system(), w.lay.Launch("none"), "none") != nil {
		t.Error("found a program that is not there")
	}
	w.refuses("no frontend", "stub.version")
}

func TestWithoutAConstraintTheProgramIsNotRun(t *testing.T) {
	w := newWorld(t)
	w.program(w.bin+"/stub", "touch '"+w.work+"/ran'")
	w.starts("stub")
	if _, err := os.Stat(w.work + "/ran"); err == nil {
		t.Error("the program ran outside its sandbox")
	}
}

// shells are what may stand behind /bin/sh.
var shells = map[string][]string{"dash": {"dash"}, "bash": {"bash", "--posix"}, "busybox": {"busybox", "sh"}}

// agentbox runs the launcher's script under each shell as a process.
func agentbox(t *testing.T, w *world, args ...string) map[string]*exec.Cmd {
	t.Helper()
	script, err := filepath.Abs("../../defaults/sandbox/agentbox")
	if err != nil {
		t.Fatal(err)
	}
	cmds := map[string]*exec.Cmd{}
	for name, shell := range shells {
		if _, err := exec.LookPath(shell[0]); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			continue
		}
		cmd := exec.CommandContext(context.Background(), shell[0], slices.Concat(shell[1:], []string{script}, args)...)
		cmd.Dir, cmd.Env = w.work, w.environ()
		cmds[name] = cmd
	}
	return cmds
}

func TestArgumentsReachTheRuntimeAsTheyAre(t *testing.T) {
	w := newWorld(t)
	args := []string{
		"a b", "", "'", `"`, "$(id)", "`id`", "*", ";", "|", "&", "\\", "\n", "a\nb\n", "\t", "--", "-", "-h", "--help", "-x",
		"ø", "日本", "\xff\xfe", "%s", "~", "$HOME", "!!", "{}", "=", "--settingsx=\"", strings.Repeat("x", 100<<10),
	}
	want := slices.Concat([]string{w.lay.Srt(), "--settings", w.spec.Settings, "--", w.bin + "/stub", "--settings", w.spec.Overrides[0]}, args)
	for shell, cmd := range agentbox(t, w, append([]string{"stub"}, args...)...) {
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, _ := cmd.Output()
		if cmd.ProcessState.ExitCode() != 7 || stderr.Len() > 0 {
			t.Errorf("%s: status %d, printed %q", shell, cmd.ProcessState.ExitCode(), stderr.String())
		}
		argv, env, _ := strings.Cut(string(out), "\x00\x00")
		// An empty argument is such a cut too.
		for {
			more, rest, ok := strings.Cut(env, "\x00\x00")
			if !ok {
				break
			}
			argv, env = argv+"\x00\x00"+more, rest
		}
		if diff := cmp.Diff(want, strings.Split(argv, "\x00")); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", shell, diff)
		}
		if got := environment(strings.Split(env, "\x00")); got["AGENTBOX"] != "1" || got["HOME"] != w.lay.Home || got["PATH"] != w.env["PATH"] {
			t.Errorf("%s: environment %q", shell, got)
		}
	}
}

func TestARefusalIsOneLineAndStatus2(t *testing.T) {
	tests := map[string]struct {
		args []string
		mend func(w *world)
		want string
	}{
		"no frontend":       {nil, nil, "no frontend named"},
		"an odd name":       {[]string{"a\nb\x1b[31m\xff"}, nil, "no frontend"},
		"AGENTBOX is empty": {[]string{"stub"}, func(w *world) { w.env["AGENTBOX"] = "" }, "AGENTBOX"},
		"a value with a line break": {[]string{"stub"}, func(w *world) {
			w.spec.Env = map[string]*string{"V": nil}
			w.install()
			w.env["V"] = "a\nb"
		}, "V is"},
		"a directory with a line break": {[]string{"stub"}, func(w *world) {
			w.work = w.lay.Home + "/a\nb"
			w.mkdir(w.work)
		}, "current directory"},
		"no harness":         {[]string{"stub"}, func(w *world) { w.remove(w.lay.Harness()) }, "make install"},
		"harness cannot run": {[]string{"stub"}, func(w *world) { w.remove(w.lay.Harness()); w.write(w.lay.Harness(), nil, 0o644) }, "make install"},
		"harness on PATH is not it": {[]string{"stub"}, func(w *world) {
			w.remove(w.lay.Harness())
			w.program(w.bin+"/harness", "echo bad")
		}, "make install"},
		"HOME is unset":                       {[]string{"stub"}, func(w *world) { delete(w.env, "HOME") }, "HOME"},
		"HOME is empty":                       {[]string{"-h"}, func(w *world) { w.env["HOME"] = "" }, "HOME"},
		"HOME is relative":                    {[]string{"stub"}, func(w *world) { w.env["HOME"] = "x" }, "HOME"},
		"HOME does not exist":                 {[]string{"stub"}, func(w *world) { w.env["HOME"] = "/nonexistent" }, "HOME is not a directory; type: export HOME="},
		"HOME is a file":                      {[]string{"stub"}, func(w *world) { w.env["HOME"] = w.bin + "/stub" }, "HOME is not a directory; type: export HOME="},
		"HOME is the root":                    {[]string{"stub"}, func(w *world) { w.env["HOME"] = "/" }, "HOME"},
		"HOME is the root, spelled otherwise": {[]string{"stub"}, func(w *world) { w.env["HOME"] = "///" }, "HOME"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tt.mend != nil {
				tt.mend(w)
			}
			for shell, cmd := range agentbox(t, w, tt.args...) {
				var stdout, stderr bytes.Buffer
				cmd.Stdout, cmd.Stderr = &stdout, &stderr
				_ = cmd.Run()
				line := stderr.String()
				if cmd.ProcessState.ExitCode() != 2 || stdout.Len() > 0 || strings.Count(line, "\n") != 1 ||
					!strings.HasPrefix(line, "agentbox: ") || !strings.HasSuffix(line, "\n") || !strings.Contains(line, tt.want) {
					t.Errorf("%s: status %d, printed %q and %q", shell, cmd.ProcessState.ExitCode(), stdout.String(), line)
				}
			}
		})
	}
}

func TestHelpIsAlwaysThere(t *testing.T) {
	for name, mend := range map[string]func(w *world){
		"installed":        func(*world) {},
		"inside a sandbox": func(w *world) { w.env["AGENTBOX"] = "1" },
		"without srt":      func(w *world) { w.remove(w.lay.Srt()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			mend(w)
			for _, flag := range []string{"-h", "--help"} {
				for shell, cmd := range agentbox(t, w, flag) {
					out, err := cmd.Output()
					if err != nil || !strings.Contains(string(out), "usage: agentbox FRONTEND") ||
						!strings.Contains(string(out), "stub") || !strings.Contains(string(out), "other-command") {
						t.Errorf("%s: %v, printed %q", shell, err, out)
					}
				}
			}
		})
	}
}

func TestAWarningComesBeforeTheSession(t *testing.T) {
	w := newWorld(t)
	w.env["GOCACHE"] = "/nowhere"
	for shell, cmd := range agentbox(t, w, "stub") {
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		_ = cmd.Run()
		if line := stderr.String(); cmd.ProcessState.ExitCode() != 7 || strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, "agentbox: warning: ") {
			t.Errorf("%s: status %d, printed %q", shell, cmd.ProcessState.ExitCode(), line)
		}
	}
}

func TestAgentboxPassesShellcheck(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("shellcheck is not installed")
	}
	if out, err := exec.Command("shellcheck", "../../defaults/sandbox/agentbox").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
