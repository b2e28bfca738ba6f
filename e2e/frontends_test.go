package e2e

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// agent is a real program from npm, with a scripted model beside it.
type agent struct {
	command string
	program []string // files below node_modules
	// prepare gives the program its model.
	prepare func(w *world)
	// print are the arguments that answer a prompt without a terminal.
	print   []string
	version string
	// screen are the arguments of the full-screen program, and words on it.
	screen []string
	words  []string
	// state is a pattern of files below home that a session leaves.
	state string
}

const mockURL = "http://127.0.0.1:18080"

// platform is how npm packages name this one.
var platform = runtime.GOOS + "-" + strings.ReplaceAll(runtime.GOARCH, "amd64", "x64")

var agents = map[string]agent{
	"Claude Code": {
		command: "claude",
		program: []string{"@anthropic-ai/claude-code-" + platform + "/claude"},
		prepare: func(w *world) {
			w.env["ANTHROPIC_API_KEY"] = "sk-dummy"
			w.env["IS_SANDBOX"] = "1" // lets root skip permissions
			config, err := json.Marshal(map[string]any{
				"hasCompletedOnboarding": true,
				"theme":                  "dark",
				"customApiKeyResponses":  map[string]any{"approved": []string{"sk-dummy"}},
				"projects":               map[string]any{w.work: map[string]any{"hasTrustDialogAccepted": true}},
			})
			w.must(err)
			w.write(w.in(".claude.json"), string(config))
		},
		print:   []string{"-p", "--dangerously-skip-permissions", "hi"},
		version: "2.1.332",
		words:   []string{"Claude Code", "2.1.332"},
		state:   ".claude/projects/*/*.jsonl",
	},
	"OpenCode": {
		command: "opencode",
		program: []string{"opencode-" + platform + "/bin/opencode"},
		prepare: func(w *world) {
			w.env["OPENCODE_CONFIG_CONTENT"] = `{
				"autoupdate": false, "share": "disabled", "model": "mock/m", "small_model": "mock/m",
				"permission": {"external_directory": "allow"},
				"provider": {"mock": {
					"npm": "@ai-sdk/openai-compatible",
					"options": {"baseURL": "` + mockURL + `/v1", "apiKey": "dummy"},
					"models": {"m": {"name": "m"}}
				}}
			}`
		},
		print:   []string{"run", "hi"},
		version: "1.18.33",
		words:   []string{"Ask anything"},
		state:   ".local/share/opencode/opencode.db",
	},
	"oh-my-pi": {
		command: "omp",
		program: []string{"@oven/bun-" + platform + "/bin/bun", ".bin/omp"},
		prepare: func(w *world) {
			w.write(w.in(".omp", "agent", "models.yml"), `providers:
  mock:
    baseUrl: `+mockURL+`/v1
    apiKey: dummy
    api: openai-completions
    models:
      - id: m
`)
		},
		print:   []string{"-p", "--model", "mock/m", "hi"},
		version: "18.2.0",
		screen:  []string{"--model", "mock/m"},
		words:   []string{"omp v18.2.0"},
		state:   ".omp/agent/sessions/*/*.jsonl",
	},
}

// newAgentWorld is a machine on which the agent runs the commands, one tool
// call each.
func newAgentWorld(t *testing.T, a agent, commands ...string) *world {
	t.Helper()
	w := newWorld(t)
	a.prepare(w)
	w.play(a, commands...)
	w.install()
	return w
}

// play puts the agent on PATH, with a model that has it run the commands.
//
// Outside of a session the program is only asked for its version, and told
// from here: on a busy machine it may take longer than the launcher waits.
func (w *world) play(a agent, commands ...string) {
	w.t.Helper()
	mock, err := mockapi()
	w.must(err)
	script := []string{`[ "$AGENTBOX" ] || exec echo`, a.version + "\n", "exec", quote(mock), "-record", "requests.jsonl"}
	for _, c := range commands {
		script = append(script, "-run", quote(c))
	}
	script = append(script, "--")
	for _, arg := range a.real(w.t) {
		script = append(script, quote(arg))
	}
	w.stub(a.command, strings.Join(script, " ")+` "$@"`)
}

// real is the agent's program and what its arguments begin with.
func (a agent) real(t *testing.T) []string {
	t.Helper()
	var argv []string
	for _, name := range a.program {
		argv = append(argv, part(t, "HARNESS_TEST_NPM", "../build/npm", "node_modules", name))
	}
	return argv
}

// quote is s for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// TestAgents has each program run shell commands for its model.
func TestAgents(t *testing.T) {
	for name, a := range agents {
		t.Run(name, func(t *testing.T) {
			w := newAgentWorld(t, a,
				`echo "the answer is $((6 * 7))"`,
				`cat ~/.ssh/id_ed25519 || echo "no key"`,
				`echo made > made.txt`,
				`echo evil >> ~/.bashrc; echo done`,
			)
			w.write(w.in(".ssh", "id_ed25519"), "secret key")
			w.write(w.in(".bashrc"), "# mine\n")

			r := w.agentbox(append([]string{a.command}, a.print...)...)
			for _, want := range []string{"the tools said:", "the answer is 42", "no key", "done"} {
				if r.code != 0 || !strings.Contains(r.stdout, want) {
					t.Fatalf("status %d, want %q:\n%s%s", r.code, want, r.stdout, r.stderr)
				}
			}
			if out := r.stdout + w.read(filepath.Join(w.work, "requests.jsonl")); strings.Contains(out, "secret key") {
				t.Error("the key reached the model")
			}
			if got := w.read(filepath.Join(w.work, "made.txt")); got != "made\n" {
				t.Errorf("made.txt on the disk is %q", got)
			}
			if got := w.read(w.in(".bashrc")); got != "# mine\n" {
				t.Errorf(".bashrc is now %q", got)
			}
			if files, err := filepath.Glob(w.in(a.state)); err != nil || len(files) == 0 {
				t.Errorf("no session is kept in ~/%s", a.state)
			}
			t.Run("says its version", func(t *testing.T) {
				if r := w.agentbox(a.command, "--version"); r.code != 0 || !strings.Contains(r.stdout, a.version) {
					t.Errorf("status %d, want %q: %s%s", r.code, a.version, r.stdout, r.stderr)
				}
			})
		})
	}
}

// TestFirstScreen starts each program on a terminal.
func TestFirstScreen(t *testing.T) {
	for name, a := range agents {
		t.Run(name, func(t *testing.T) {
			w := newAgentWorld(t, a)
			s := w.terminal(append([]string{a.command}, a.screen...)...)
			s.expect(a.words...)
		})
	}
}

// TestClaudeCodeOnTheScreen types a prompt, and goes on with the conversation
// in a second session.
func TestClaudeCodeOnTheScreen(t *testing.T) {
	a := agents["Claude Code"]
	w := newAgentWorld(t, a, "echo $((6 * 7)) > answer.txt")
	s := w.terminal("claude", "--dangerously-skip-permissions")
	s.expect("Yes, I accept")
	s.press("Down")
	s.expect("❯ Yes")
	s.press("Enter")
	s.expect("Claude Code v", "❯")
	s.press("hi")
	s.expect("❯ hi")
	s.press("Enter")
	s.expect("the tools said")
	if got := w.read(filepath.Join(w.work, "answer.txt")); got != "42\n" {
		t.Errorf("answer.txt is %q", got)
	}

	w.play(a)
	r := w.agentbox("claude", "-p", "--continue", "go on")
	if r.code != 0 || !strings.Contains(r.stdout, "the tools said") {
		t.Errorf("status %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if history := w.read(filepath.Join(w.work, "requests.jsonl")); !strings.Contains(history, "answer.txt") {
		t.Error("the second session does not know the first")
	}
}

// TestClaudeCodeSettings has Claude Code judge the settings that the install
// gave it. What it finds wrong in them it would leave out.
func TestClaudeCodeSettings(t *testing.T) {
	a := agents["Claude Code"]
	w := newAgentWorld(t, a)
	w.env["ANTHROPIC_BASE_URL"] = "http://127.0.0.1:1" // nothing is asked elsewhere
	w.env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
	settings := w.in(".claude", "settings.json")
	invalid := func(out string) bool {
		_, found, _ := strings.Cut(out, "Invalid settings\n")
		found, _, _ = strings.Cut(found, "\n\n")
		return strings.Contains(found, settings) || strings.Contains(found, "claude-inner-off.json")
	}
	for where, argv := range map[string][]string{
		"in a session":  {w.in(".local", "bin", "agentbox"), "claude", "doctor"},
		"without one":   append(a.real(t), "doctor"),
		"a broken file": append(a.real(t), "doctor"),
	} {
		t.Run(where, func(t *testing.T) {
			broken := where == "a broken file"
			if good := w.read(settings); broken {
				w.write(settings, `{"sandbox": {"enabled": "yes"}}`)
				defer w.write(settings, good)
			}
			r := w.run(argv[0], argv[1:]...)
			if r.code != 0 || invalid(r.stdout) != broken || !strings.Contains(r.stdout, "Claude Code doctor") {
				t.Errorf("status %d:\n%s%s", r.code, r.stdout, r.stderr)
			}
		})
	}
}

// TestClaudeCodesOwnSandbox starts Claude Code without agentbox. Its commands
// then run in a sandbox of its own, by the same lists, and it does not ask.
func TestClaudeCodesOwnSandbox(t *testing.T) {
	a := agents["Claude Code"]
	w := newAgentWorld(t, a)
	w.write(w.in(".ssh", "id_ed25519"), "secret key")
	w.write(w.in(".bashrc"), "# mine\n")
	mock, err := mockapi()
	w.must(err)
	argv := []string{"-listen", "127.0.0.1:0"}
	for _, command := range []string{
		"cat ~/.ssh/id_ed25519 || echo no key",
		"echo evil >> ~/.bashrc || echo no change",
		"echo made > made.txt && cd $(mktemp -d) && echo x > f && echo a place",
		"go mod init example.com/x && echo 'package main; func main() { println(6*7) }' > main.go && go run . 2>&1",
	} {
		argv = append(argv, "-run", command)
	}
	r := w.run(mock, append(append(append(argv, "--"), a.real(t)...), "-p", "hi")...)
	for _, want := range []string{"no key", "no change", "a place", "42"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("status %d, want %q:\n%s%s", r.code, want, r.stdout, r.stderr)
		}
	}
	if got := w.read(filepath.Join(w.work, "made.txt")); got != "made\n" {
		t.Errorf("made.txt is %q", got)
	}
	if got := w.read(w.in(".bashrc")); got != "# mine\n" {
		t.Errorf(".bashrc is %q", got)
	}
	if cache := tree(t, w.in(".cache", "go-build")); !strings.Contains(cache, "-a ") {
		t.Error("nothing is kept in the build cache")
	}
}
