package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestReadme plays the session on the README's first screen. Claude Code runs
// what is typed after "!" itself.
func TestReadme(t *testing.T) {
	a := agents["Claude Code"]
	w := newWorld(t)
	block := regexp.MustCompile("(?ms)^```\n\\$ cd ~/Research/demo && agentbox claude\n(.*?)^```$").FindStringSubmatch(w.read("../README.md"))
	if block == nil || !strings.Contains(block[1], "Claude Code v"+a.version) {
		t.Fatalf("the README shows no session of Claude Code %s", a.version)
	}
	typed := regexp.MustCompile(`(?m)^([!$]) (.*)\n((?:[^!$].*\n)*)`).FindAllStringSubmatch(block[1], -1)
	if len(typed) < 4 {
		t.Fatalf("the README's session holds %q", typed)
	}

	w.work = w.in("Research", "demo")
	a.prepare(w)
	w.play(a)
	w.write(w.in(".ssh", "id_ed25519"), "secret key")
	w.write(w.in(".bashrc"), "# mine\n")
	w.write(filepath.Join(w.work, "go.mod"), "module example.com/demo\n")
	w.write(filepath.Join(w.work, "main.go"), "package main\n\nfunc main() { println(\"hello\") }\n")
	w.install()
	s := w.terminal("claude")
	s.tmux("resize-window", "-x", "160", "-y", "60")
	s.expect("❯")
	for _, m := range typed {
		kind, command, output := m[1], m[2], strings.ReplaceAll(m[3], "/home/ada", w.home)
		t.Run(command, func(t *testing.T) {
			// Some programs quote a name that holds a space.
			plain := func(s string) string { return strings.ReplaceAll(s, "'", "") }
			show := func() string { return s.screen() }
			switch kind {
			case "!":
				s.press("!")
				s.tmux("send-keys", "-l", command)
				s.expect(command)
				s.press("Enter")
			case "$":
				r := w.run("sh", "-c", command)
				show = func() string { return r.stdout + r.stderr }
			}
			for _, line := range lines(output) {
				line = plain(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "⎿")))
				if !wait(time.Minute, func() bool { return strings.Contains(plain(show()), line) }) {
					t.Errorf("no %q on\n%s", line, show())
				}
			}
		})
	}
}
