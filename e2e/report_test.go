package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// refusals are the lines of the report that ask about a host.
func refusals(stderr string) []string {
	var out []string
	for _, line := range lines(stderr) {
		if command, ok := strings.CutPrefix(line, "  harness explain "); ok && strings.Contains(command, " host ") {
			out = append(out, command)
		}
	}
	return out
}

func TestReport(t *testing.T) {
	w := newWorld(t)
	w.install()
	harness := w.in(".local", "bin", "harness")
	// By hand, since no client of this machine need be there.
	connect := func(host string) string {
		return fmt.Sprintf(`exec 3<>/dev/tcp/localhost/3128; auth=$(echo -n "${HTTPS_PROXY#http://}" | sed 's/@.*//;s/%%\(..\)/\\x\1/g'); `+
			`printf 'CONNECT %s HTTP/1.1\r\nProxy-Authorization: Basic %%s\r\n\r\n' "$(printf "$auth" | base64 -w0)" >&3; head -1 <&3; `, host)
	}

	t.Run("a refused host is listed once and an allowed one is not", func(t *testing.T) {
		r := w.run(harness, "report", "agy", "bash", "-c",
			connect("evil.example.org:443")+connect("evil.example.org:443")+connect("api.anthropic.com:443")+connect("[2001:db8::1]:22")+"exit 7")
		want := []string{"antigravity host evil.example.org:443", "antigravity host '[2001:db8::1]:22'"}
		if got := refusals(r.stderr); r.code != 7 || !slices.Equal(got, want) {
			t.Errorf("status %d, lists %q, want %q\n%s%s", r.code, got, want, r.stdout, r.stderr)
		}
		if strings.Contains(r.stderr, "SandboxDebug") {
			t.Errorf("the runtime's log is shown: %s", r.stderr)
		}
		for _, command := range want {
			r := w.run("sh", "-c", quote(harness)+" explain "+command)
			if r.code != 0 || !strings.HasPrefix(r.stdout, "antigravity cannot reach") {
				t.Errorf("explain %s: status %d: %s%s", command, r.code, r.stdout, r.stderr)
			}
		}
	})
	t.Run("streams, arguments and environment pass through", func(t *testing.T) {
		r := w.run(harness, "report", "agy", "sh", "-c",
			`printf '<%s>' "$@"; printf 'no newline' >&2; printf '\n[Sand' >&2; echo "${SRT_DEBUG-unset}"; env | grep -c AGENTBOX`,
			"sh", "", "a b", "line\n[SandboxDebug] break", "$(id)", "--", "-h")
		if want := "<><a b><line\n[SandboxDebug] break><$(id)><--><-h>unset\n1\n"; r.code != 0 || r.stdout != want {
			t.Errorf("status %d: got %q, want %q", r.code, r.stdout, want)
		}
		text, _, _ := strings.Cut(r.stderr, "harness: ")
		if want := "no newline\n[Sand"; text != want {
			t.Errorf("standard error begins %q, want %q", text, want)
		}
	})
	t.Run("one file for output and errors is written by the session itself", func(t *testing.T) {
		out, err := os.Create(w.in("out"))
		w.must(err)
		defer out.Close()
		cmd := w.command(harness, "report", "agy", "sh", "-c", "echo 1; echo 2 >&2; echo 3")
		cmd.Stdout, cmd.Stderr = out, out
		w.must(cmd.Run())
		if got := w.read(w.in("out")); !strings.HasPrefix(got, "1\n2\n3\nharness: the session was refused no host\n") {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a session that does not start has no report", func(t *testing.T) {
		r := w.run(harness, "report", "nobody")
		if r.code != 2 || len(lines(r.stderr)) != 1 || !strings.HasPrefix(r.stderr, "agentbox: ") {
			t.Errorf("status %d: %s", r.code, r.stderr)
		}
	})
	t.Run("SIGTERM ends the session", func(t *testing.T) {
		cmd := w.command(harness, "report", "agy", "sh", "-c", "echo ready; exec sleep 1000")
		stdout, err := cmd.StdoutPipe()
		w.must(err)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		w.must(cmd.Start())
		_, err = stdout.Read(make([]byte, 6))
		w.must(err)
		w.must(cmd.Process.Signal(os.Interrupt)) // as to agentbox, to one alone it does nothing
		w.must(cmd.Process.Signal(syscall.SIGTERM))
		_ = cmd.Wait()
		if !strings.Contains(stderr.String(), "refused no host") {
			t.Errorf("%v: %s", cmd.ProcessState, stderr.String())
		}
	})
}

func TestReportOnATerminal(t *testing.T) {
	w := newWorld(t)
	w.install()
	s := w.terminalOf("sh", "-i")
	s.press(quote(w.in(".local", "bin", "harness")) + ` report agy sh -c 'test -t 2 && stty size; read line; echo "got $line"; sleep 1000'`)
	s.press("Enter")
	s.expect("40 100")
	s.press("hello")
	s.press("Enter")
	s.expect("got hello")
	s.press("C-z")
	s.expect("Stopped")
	s.press("fg")
	s.press("Enter")
	s.expect("fg")
	s.press("C-c")
	s.expect("refused no host")
}
