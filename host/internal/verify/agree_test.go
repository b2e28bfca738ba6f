package verify_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/research-harness/harness/host/internal/access"
	"github.com/research-harness/harness/host/internal/explain"
	"github.com/research-harness/harness/host/internal/launch"
	"github.com/research-harness/harness/host/internal/srt"
	"github.com/research-harness/harness/host/internal/verify"
)

// answers are what the probe says from inside the sandbox.
type answers struct {
	Read []struct {
		ID   string `json:"id"`
		Open bool   `json:"open"`
	} `json:"read"`
	Write []struct {
		Error string `json:"error"`
		ID    string `json:"id"`
	} `json:"write"`
	Hosts []int `json:"hosts"`
}

// agreeToken is of this run: /tmp is shared.
var agreeToken = fmt.Sprintf(".explain-probe-%d", os.Getpid())

// TestExplainAgreesWithTheSandbox asks explain and a real session the same 300
// questions about random paths and hosts.
func TestExplainAgreesWithTheSandbox(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	m := newMachine(t)
	m.s.Dir = filepath.Join(m.home, "Research/start")
	paths := m.grow(r)
	hosts := someHosts(r)

	set := m.set()
	frontend, err := set.Find("one")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := set.Policy("one")
	if err != nil {
		t.Fatal(err)
	}
	world := explain.For(m.s, set, frontend)
	ask := func(operation, target string) *explain.Answer {
		t.Helper()
		a, err := explain.Ask(world, policy, operation, target)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	reads, writes := make([]*explain.Answer, len(paths)), make([]*explain.Answer, len(paths))
	before := make([]string, len(paths))
	for i, p := range paths {
		reads[i], writes[i], before[i] = ask(explain.Read, p), ask(explain.Write, p), identity(p)
	}

	got := m.inside(policy, paths, hosts)
	n := 0
	for i, p := range paths {
		if before[i] != "" {
			n++
			if seen := got.Read[i].Open && got.Read[i].ID == before[i]; seen != reads[i].Allowed {
				t.Errorf("reading %s: the session says %v, explain %+v", p, seen, reads[i])
			}
		}
		n++
		if reached := reached(p, before[i], got.Write[i].Error, got.Write[i].ID); reached != writes[i].Allowed {
			t.Errorf("writing %s: the session says %v (%s), explain %+v", p, reached, got.Write[i].Error, writes[i])
		}
	}
	for i, host := range hosts {
		n++
		if a := ask(explain.Host, host); a.Allowed != (got.Hosts[i] != 403) || got.Hosts[i] == 0 {
			t.Errorf("reaching %s: the proxy says %d, explain %+v", host, got.Hosts[i], a)
		}
	}
	if n < 300 {
		t.Errorf("only %d questions", n)
	}
	t.Logf("%d questions", n)
}

// grow makes a random tree in home and returns what there is to ask about:
// what is there, and what is not but could be.
func (m *machine) grow(r *rand.Rand) []string {
	m.t.Helper()
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	dirs := []string{m.home}
	for _, d := range []string{
		"Research/start/.git", "Research/a", ".one/hooks", ".cache/two", ".cache/x", "go/bin", "go/pkg/mod", ".cargo/bin", ".config/gh", ".ssh", "notes", ".local/bin",
	} {
		d = filepath.Join(m.home, d)
		if err := os.MkdirAll(d, 0o755); err != nil {
			m.t.Fatal(err)
		}
		dirs = append(dirs, d)
	}
	out := append(slices.Clone(dirs), "/etc/passwd", "/usr", "/usr/bin", "/tmp", "/var/tmp", "/opt", "/etc")
	for _, name := range []string{".bashrc", ".gitconfig", ".npmrc", ".netrc", ".ssh/id", "Research/start/.mcp.json", "Research/start/.git/config", ".one/hooks/x", ".one.json", "go/bin/tool"} {
		p := filepath.Join(m.home, name)
		if _, err := os.Lstat(p); err != nil {
			m.write(name, "content\n", 0o644)
		}
		out = append(out, p)
	}
	for i := range 140 {
		p := filepath.Join(pick(dirs), fmt.Sprintf("%s%d", pick([]string{"n", ".n", "n b", "é"}), i))
		var err error
		switch r.IntN(6) {
		case 0, 1:
			err = os.Mkdir(p, 0o755)
			dirs = append(dirs, p)
		case 2, 3:
			err = os.WriteFile(p, []byte("content\n"), 0o644)
		case 4:
			// Alone in leading where it leads: what is written there came this way.
			target := filepath.Join(pick(dirs), fmt.Sprintf("target%d", i))
			if r.IntN(2) == 0 {
				err = os.Mkdir(target, 0o755)
			} else {
				err = os.WriteFile(target, []byte("content\n"), 0o644)
			}
			err = errors.Join(err, os.Symlink(target, p))
		} // else it is missing, in a directory that is there
		if err != nil {
			m.t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// someHosts are hosts of every kind, in random spellings.
func someHosts(r *rand.Rand) []string {
	var out []string
	for _, host := range []string{
		"github.com", "api.anthropic.com", "anthropic.com", "notanthropic.com", "arxiv.org", "export.arxiv.org", "evil.example", "github.com.evil.example",
		"registry.example", "1.1.1.1", "192.0.2.1", "localhost.example", "a.b.c.githubusercontent.com", "githubusercontent.com", "models.dev", "x.models.dev",
	} {
		out = append(out, host+":443")
		if r.IntN(2) == 0 {
			host = strings.ToUpper(host)
		}
		out = append(out, fmt.Sprintf("%s:%d", host, []int{22, 80, 443, 8443}[r.IntN(4)]))
	}
	return out
}

// inside runs the probe in a session of policy, which is installed.
func (m *machine) inside(policy *srt.Policy, paths, hosts []string) answers {
	m.t.Helper()
	up, err := verify.NewUpstream()
	if err != nil {
		m.t.Fatal(err)
	}
	defer up.Close()
	in, err := json.Marshal(map[string]any{"token": agreeToken, "read": paths, "write": paths, "hosts": hosts, "loopback": up.Addr().String()})
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.CommandContext(m.t.Context(), filepath.Join(m.home, ".local/bin/srt"), "--settings",
		filepath.Join(m.home, ".config/research-harness/sandbox/one.json"), "--",
		filepath.Join(m.home, ".local/libexec/research-harness/harness-host"), verify.Verb)
	cmd.Dir = m.s.Dir
	cmd.Env = launch.SessionEnv(m.s, m.home, access.New(policy, "linux", m.home))
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		cmd.Env = append(cmd.Env, name+"=http://"+up.Addr().String())
	}
	cmd.Env = append(cmd.Env, "NO_PROXY=", "no_proxy=")
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		m.t.Fatalf("%v\n%s", err, stderr.String())
	}
	var got answers
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		m.t.Fatal(err)
	}
	for _, p := range []string{"/tmp", "/var/tmp"} {
		m.t.Cleanup(func() { os.Remove(filepath.Join(p, agreeToken)) })
	}
	return got
}

// identity names what is at p, as the probe does, or is "".
func identity(p string) string {
	info, err := os.Stat(p)
	if err != nil {
		return ""
	}
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// reached tells whether a write to p got to the host: it was there as before
// and was opened, or there is now what the probe makes.
func reached(p, before, failure, id string) bool {
	if id != "" {
		return failure == "" && id == before
	}
	for _, q := range []string{filepath.Join(p, agreeToken), p} {
		if data, err := os.ReadFile(q); err == nil && string(data) == agreeToken {
			return true
		}
	}
	return false
}
