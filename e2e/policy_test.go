package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// frontends are the four: policy name, command, and a file in its state that
// no rule denies.
var frontends = []struct{ name, command, state string }{
	{"claude", "claude", ".claude/projects/p/session.jsonl"},
	{"opencode", "opencode", ".local/share/opencode/storage/session.json"},
	{"omp", "omp", ".omp/agent/sessions/s.jsonl"},
	{"antigravity", "agy", ".gemini/antigravity-cli/conversations/c.json"},
}

// TestPolicy tries every kind of rule inside a session, and looks at the real
// file system afterwards.
func TestPolicy(t *testing.T) {
	w := newWorld(t)
	profile := w.in(".config", "research-harness", "profile.toml")
	w.write(profile, "[network]\nallow = [\"allowed.invalid\"]\ndeny = [\"denied.github.com\"]\n")
	w.install()
	for _, file := range []string{
		".ssh/id_ed25519", ".bashrc", "notes.txt", ".cache/huggingface/token", ".config/gh/hosts.yml", ".npmrc", ".cargo/credentials.toml",
		".claude/.credentials.json", ".omp/agent/.env", ".opencode/bin/tool",
	} {
		w.write(w.in(file), "before")
	}
	w.write(w.in(".gitconfig"), "[user]\n\tname = José\n")

	const fails, works, lost = false, true, true
	const policy = ".config/research-harness/sandbox/claude.json"
	tests := []struct {
		rule    string
		command string
		ok      bool
		file    string // below home, on the disk afterwards
		want    string // its content, or "absent"
	}{
		{"home cannot be read", "cat ~/notes.txt", fails, "", ""},
		{"a key cannot be read", "cat ~/.ssh/id_ed25519", fails, "", ""},
		{"a credential inside a writable place cannot be read", "grep before ~/.cache/huggingface/token", fails, "", ""},
		{"a credential beside a readable file cannot be read", "grep before ~/.config/gh/hosts.yml", fails, "", ""},
		{"nor a package manager's", "grep before ~/.npmrc || grep before ~/.cargo/credentials.toml", fails, "", ""},
		{"read.allow can be read", "grep José ~/.gitconfig", works, "", ""},
		{"read.allow cannot be written", "echo x >> ~/.gitconfig", fails, ".gitconfig", "[user]\n\tname = José\n"},
		{"a program cannot be changed", "grep before ~/.opencode/bin/tool && echo x >> ~/.opencode/bin/tool", fails, ".opencode/bin/tool", "before"},
		{"the system can be read", "cat /etc/passwd", works, "", ""},
		{"the system cannot be written", "touch /etc/e2e", fails, "", ""},
		{"the current directory can be written", "echo x > new.txt", works, "Research/naïve project/new.txt", "x\n"},
		{"another project of the workspace can be written", "mkdir ~/Research/y && echo x > ~/Research/y/f", works, "Research/y/f", "x\n"},
		{"a shell's start-up file does not change", "echo x >> ~/.bashrc", lost, ".bashrc", "before"},
		{"what is new elsewhere in home does not last", "echo x > ~/new.txt", lost, "new.txt", "absent"},
		{"a toolchain's cache can be written", "echo x > ~/.cache/f", works, ".cache/f", "x\n"},
		{"own state can be written", "mkdir -p ~/.claude/projects/p && echo x > ~/.claude/projects/p/f", works, ".claude/projects/p/f", "x\n"},
		{"and can hold a program", "echo 'echo ran' > ~/.claude/run && chmod +x ~/.claude/run && ~/.claude/run", works, ".claude/run", "echo ran\n"},
		{"a state file can be written", "echo '{\"a\": 1}' > ~/.claude.json", works, ".claude.json", "{\"a\": 1}\n"},
		{"the own sign-in can be read", "grep before ~/.claude/.credentials.json", works, "", ""},
		{"the own sign-in can be renewed", "echo x > ~/.claude/t && mv ~/.claude/t ~/.claude/.credentials.json", works, ".claude/.credentials.json", "x\n"},
		{"another's state cannot be read", "cat ~/.omp/agent/.env", fails, "", ""},
		{"another's state does not change", "mkdir -p ~/.omp/agent; echo x > ~/.omp/agent/.env", lost, ".omp/agent/.env", "before"},
		{"another's state below a writable place cannot be written", "echo x > ~/.cache/opencode/f", fails, ".cache/opencode/f", "absent"},
		{"the policy does not change", "echo x >> ~/" + policy, fails, policy, w.read(w.in(policy))},
		{"nor by a rename", "echo x > p && mv p ~/" + policy, fails, policy, w.read(w.in(policy))},
		{"nor through a link", "ln -s ~/" + policy + " l && echo x > l", fails, policy, w.read(w.in(policy))},
		{"nor by a rename of what holds it", "mv ~/.config/research-harness ~/.config/rh; mkdir -p ~/.config/research-harness/sandbox; echo x > ~/" + policy, lost, policy, w.read(w.in(policy))},
		{"nor gets another file", "mkdir -p ~/.config/research-harness/sandbox; echo x > ~/.config/research-harness/sandbox/e2e.json", lost, ".config/research-harness/sandbox/e2e.json", "absent"},
		{"the launcher does not change", "rm -f ~/.local/bin/agentbox; echo x > ~/.local/bin/e2e", lost, ".local/bin/e2e", "absent"},
		{"TMPDIR can be written", "echo x > \"$TMPDIR/f\"", works, "../tmp/f", "x\n"},
	}

	var script strings.Builder
	for i, tt := range tests {
		fmt.Fprintf(&script, "( %s ) >/dev/null 2>&1 && echo %d ok || echo %d failed\n", tt.command, i, i)
	}
	w.write(filepath.Join(w.work, "rules.sh"), script.String())
	r := w.agentbox("claude", "sh", "rules.sh")
	if r.code != 0 {
		t.Fatalf("status %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	answers := lines(r.stdout)
	for i, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			// What only seems to work lasts no longer than the session, so
			// there the disk alone counts.
			seems := tt.want == "before" || tt.want == "absent"
			if want := fmt.Sprintf("%d ok", i); !seems && slices.Contains(answers, want) != tt.ok {
				t.Errorf("worked: %v, want %v: %s", !tt.ok, tt.ok, tt.command)
			}
			if got := ""; tt.file != "" {
				if got = w.read(w.in(tt.file)); got != tt.want {
					t.Errorf("%s is %q, want %q", tt.file, got, tt.want)
				}
			}
		})
	}
	for _, file := range []string{"notes.txt", ".ssh/id_ed25519", ".config/gh/hosts.yml", ".cache/huggingface/token"} {
		if got := w.read(w.in(file)); got != "before" {
			t.Errorf("%s is %q afterwards", file, got)
		}
	}
	if _, err := os.Stat(w.in(".local", "bin", "agentbox")); err != nil {
		t.Error(err)
	}
}

// TestSignIns reads, as each frontend, the sign-ins of all, and of a program
// that shares a directory with one of them.
func TestSignIns(t *testing.T) {
	w := newWorld(t)
	w.install()
	signIns := map[string]string{
		"claude":   ".claude/.credentials.json",
		"opencode": ".local/share/opencode/auth.json",
		"omp":      ".omp/agent/.env",
		"agy":      ".gemini/antigravity-cli/antigravity-oauth-token",
		"":         ".gemini/oauth_creds.json",
	}
	var script strings.Builder
	for command, file := range signIns {
		w.write(w.in(file), "sign-in of "+command+"\n")
		fmt.Fprintf(&script, "cat ~/%[1]s; mkdir -p ~/%[2]s; echo x > ~/%[2]s/e2e\n", file, filepath.Dir(file))
	}
	for _, f := range frontends {
		t.Run(f.name, func(t *testing.T) {
			r := w.shell(f.command, script.String())
			if want := "sign-in of " + f.command + "\n"; r.stdout != want {
				t.Errorf("it reads %q, want %q", r.stdout, want)
			}
			for command, file := range signIns {
				written := filepath.Join(filepath.Dir(w.in(file)), "e2e")
				if _, err := os.Stat(written); (err == nil) != (command == f.command) {
					t.Errorf("it has written %s: %v", written, err == nil)
				}
				_ = os.Remove(written)
			}
		})
	}
}

// TestNetwork proves the rules without internet: a host that is denied is
// refused by the proxy, one that is allowed merely cannot be found.
func TestNetwork(t *testing.T) {
	w := newWorld(t)
	w.write(w.in(".config", "research-harness", "profile.toml"),
		"[network]\nallow = [\"allowed.invalid\", \"*.wild.invalid\"]\ndeny = [\"denied.wild.invalid\"]\n")
	w.install()
	tests := []struct {
		rule, host string
		allowed    bool
	}{
		{"an allowed host", "allowed.invalid", true},
		{"a host below an allowed one is another host", "sub.allowed.invalid", false},
		{"a host below a wildcard", "a.wild.invalid", true},
		{"a wildcard does not stand for the name itself", "wild.invalid", false},
		{"a denied host below an allowed wildcard", "denied.wild.invalid", false},
		{"any other host", "other.invalid", false},
	}
	args := []string{"proxy"}
	for _, tt := range tests {
		args = append(args, tt.host)
	}
	r := w.probe("claude", args...)
	answers := lines(r.stdout)
	if len(answers) != len(tests) {
		t.Fatalf("%d answers: %s%s", len(answers), r.stdout, r.stderr)
	}
	for i, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			if allowed := strings.HasPrefix(answers[i], "5"); allowed != tt.allowed || !allowed && answers[i] != "403" {
				t.Errorf("the proxy answers %s, want allowed: %v", answers[i], tt.allowed)
			}
		})
	}
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(w.work, "socket")} {
		t.Run("past the proxy there is nothing, by "+network, func(t *testing.T) {
			listener, err := net.Listen(network, address)
			w.must(err)
			defer func() { _ = listener.Close() }()
			if r := w.probe("claude", "dial", network, listener.Addr().String()); r.code != 1 {
				t.Errorf("status %d: %s%s", r.code, r.stdout, r.stderr)
			}
		})
	}
	t.Run("no allowed host is none, not all", func(t *testing.T) {
		w.env["RESEARCH_HARNESS_SOURCE"] = filepath.Join(w.root, "source")
		w.write(filepath.Join(w.root, "source", "settings", "network.toml"), "allow = []\ndeny = []\n")
		w.write(w.in(".config", "research-harness", "profile.toml"), "")
		w.install()
		if r := w.probe("claude", "proxy", "allowed.invalid", "github.com"); r.stdout != "403\n403\n" {
			t.Errorf("the proxy answers %q: %s", r.stdout, r.stderr)
		}
	})
}

// TestDeniedState tries, as each frontend, to write whatever its policy denies
// below its state: what the agent would run at its next start.
func TestDeniedState(t *testing.T) {
	w := newWorld(t)
	w.install()
	for _, f := range frontends {
		t.Run(f.name, func(t *testing.T) {
			var settings struct {
				Filesystem struct{ AllowWrite, DenyWrite []string }
			}
			file := w.in(".config", "research-harness", "sandbox", f.name+".json")
			if err := json.Unmarshal([]byte(w.read(file)), &settings); err != nil {
				t.Fatal(err)
			}
			var script strings.Builder
			var denied []string
			for _, deny := range settings.Filesystem.DenyWrite {
				below := func(dir string) bool { return strings.HasPrefix(deny, dir+"/") }
				if strings.Contains(deny, "*") || !slices.ContainsFunc(settings.Filesystem.AllowWrite, below) {
					continue
				}
				if _, err := os.Lstat(deny); err != nil {
					t.Errorf("denied below a writable path, but install has not made it: %v", err)
					continue
				}
				denied = append(denied, deny)
				fmt.Fprintf(&script, "p='%s'; mkdir -p \"${p%%/*}\"; if [ -d \"$p\" ]; then echo > \"$p/evil\"; else echo evil >> \"$p\"; fi; rm -rf \"$p\"; mv \"$p\" \"$p.old\"\n", deny)
			}
			if len(denied) == 0 {
				t.Fatal("nothing is denied")
			}
			fmt.Fprintf(&script, "mkdir -p \"$HOME/%s\" && echo kept > \"$HOME/%s\"\n", filepath.Dir(f.state), f.state)
			before := make(map[string]string)
			for _, p := range denied {
				before[p] = tree(t, p)
			}
			w.write(filepath.Join(w.work, "evil.sh"), script.String())
			attempt := func() {
				t.Helper()
				if r := w.agentbox(f.command, "sh", "evil.sh"); r.code != 0 {
					t.Fatalf("status %d\n%s", r.code, r.stderr)
				}
				if got := w.read(w.in(f.state)); got != "kept\n" {
					t.Errorf("the state beside it is %q", got)
				}
				w.must(os.Remove(w.in(f.state)))
			}
			attempt()
			for _, p := range denied {
				if after := tree(t, p); after != before[p] {
					t.Errorf("%s was %q, is %q", p, before[p], after)
				}
			}

			// And where somebody has removed it all since.
			for _, p := range denied {
				w.must(os.RemoveAll(p))
			}
			attempt()
			for _, p := range denied {
				if _, err := os.Lstat(p); err == nil {
					t.Errorf("missing before, now there is %q", tree(t, p))
				}
			}
			w.install()
		})
	}
}

// tree describes what lies at and below a path.
func tree(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			fmt.Fprintf(&b, "%v\n", err)
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v", strings.TrimPrefix(path, root), info.Mode())
		if info.Mode().IsRegular() {
			fmt.Fprintf(&b, " %d", info.Size())
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
