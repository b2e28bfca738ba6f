package access

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/srt"
)

// oracle is srt's own code, asked through testdata/oracle.mjs.
type oracle struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

type answer struct {
	Status                  int
	Stdout, Stderr, Wrapped string
}

func srtProgram(t *testing.T) string {
	t.Helper()
	program := os.Getenv("HARNESS_TEST_SRT")
	if program == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("HARNESS_TEST_SRT names no srt")
		}
		t.Skip("HARNESS_TEST_SRT names no srt")
	}
	return program
}

func newOracle(t *testing.T) *oracle {
	t.Helper()
	cli, err := filepath.EvalSymlinks(srtProgram(t))
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(cli) == "srt" { // the command that setup writes into a home
		at := layout.Layout{Home: filepath.Join(cli, "../../..")}
		cli = filepath.Join(at.SrtPackage(), "node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js")
	}
	script, err := filepath.Abs("testdata/oracle.mjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", script, filepath.Dir(filepath.Dir(cli)))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 16<<20)
	return &oracle{in, scanner}
}

func (o *oracle) ask(t *testing.T, question any) answer {
	t.Helper()
	line, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	if !o.out.Scan() {
		t.Fatalf("the oracle ended: %v", o.out.Err())
	}
	var a answer
	if err := json.Unmarshal(o.out.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// rounds yields the numbers of random cases: as many as can be tried in a few
// seconds, or HARNESS_ACCESS_ROUNDS.
func rounds(t *testing.T) func(func(uint64) bool) {
	t.Helper()
	limit, until := 1<<62, time.Now().Add(12*time.Second)
	if s := os.Getenv("HARNESS_ACCESS_ROUNDS"); s != "" {
		asked, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		limit, until = asked, until.Add(24*time.Hour)
	}
	first := seed(t)
	return func(yield func(uint64) bool) {
		n := 0
		for ; n < limit && time.Now().Before(until) && yield(first+uint64(n)); n++ {
		}
		t.Logf("seed %d, %d rounds", first, n)
	}
}

// seed is printed with every disagreement; HARNESS_ACCESS_SEED asks for it again.
func seed(t *testing.T) uint64 {
	t.Helper()
	if s := os.Getenv("HARNESS_ACCESS_SEED"); s != "" {
		asked, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return asked
	}
	return uint64(time.Now().UnixNano())
}

// world is a small random tree with a random policy over it.
type world struct {
	r      *rand.Rand
	root   string // holds home and another directory
	home   string
	paths  []string // what there is
	absent []string // what there is not
	lines  []string // how it was made, to show
}

func newWorld(t *testing.T, r *rand.Rand, linked bool) *world {
	t.Helper()
	root, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{r: r, root: root, home: path.Join(root, "home")}
	for _, dir := range []string{w.home, path.Join(root, "out"), path.Join(root, "start")} {
		w.mkdir(t, dir)
	}
	dirs := []string{w.home, w.home, w.home, path.Join(root, "out")}
	names := []string{"a", "b", "c", "a-b", "d[x]"}
	for range 6 + r.IntN(16) {
		p := path.Join(w.pick(dirs), w.pick(names))
		if _, err := os.Lstat(p); err == nil {
			continue
		}
		switch n := r.IntN(10); {
		case n < 5:
			w.mkdir(t, p)
			dirs = append(dirs, p)
		case n < 7 || !linked:
			if err := os.WriteFile(p, []byte("content\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			w.paths = append(w.paths, p)
			w.lines = append(w.lines, "file "+p)
		default:
			target := w.pick(append(w.paths, path.Join(w.pick(dirs), "missing")))
			if r.IntN(3) == 0 {
				target, err = filepath.Rel(path.Dir(p), target)
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(target, p); err != nil {
				t.Fatal(err)
			}
			w.paths = append(w.paths, p)
			w.lines = append(w.lines, "link "+p+" -> "+target)
			if info, err := os.Stat(p); err == nil && info.IsDir() {
				// Ways through the link.
				for _, name := range names {
					if _, err := os.Lstat(path.Join(p, name)); err == nil {
						w.paths = append(w.paths, path.Join(p, name))
					}
				}
			}
		}
	}
	for _, dir := range dirs {
		w.absent = append(w.absent, path.Join(dir, "m"), path.Join(dir, "m", "n"))
	}
	return w
}

func (w *world) mkdir(t *testing.T, p string) {
	t.Helper()
	if err := os.Mkdir(p, 0o755); err != nil {
		t.Fatal(err)
	}
	w.paths = append(w.paths, p)
	w.lines = append(w.lines, "dir  "+p)
}

func (w *world) pick(from []string) string { return from[w.r.IntN(len(from))] }

// entries are n random entries of a list.
func (w *world) entries(n int, globs bool) []string {
	out := []string{}
	for range n {
		p := w.pick(w.paths)
		if w.r.IntN(5) == 0 {
			p = w.pick(w.absent)
		}
		switch w.r.IntN(12) {
		case 0:
			p += "/**"
		case 1, 2:
			if !globs {
				break
			}
			rel := strings.Split(strings.TrimPrefix(p, w.root+"/"), "/")
			i := w.r.IntN(len(rel))
			rel[i] = w.pick([]string{"*", "**", "?", "a*", "[ab]", "**/a"})
			p = path.Join(w.root, strings.Join(rel, "/"))
			if w.r.IntN(4) == 0 && !strings.HasSuffix(p, "**") {
				p += "/**"
			}
		case 3:
			p += "/"
		}
		out = append(out, p)
	}
	return out
}

func (w *world) policy(globs bool) srt.Filesystem {
	f := srt.Filesystem{
		AllowWrite: w.entries(w.r.IntN(5), globs),
		DenyWrite:  w.entries(w.r.IntN(4), globs),
		DenyRead:   w.entries(w.r.IntN(4), globs),
		AllowRead:  w.entries(w.r.IntN(5), globs),
	}
	if w.r.IntN(4) > 0 {
		f.DenyRead = append([]string{w.home}, f.DenyRead...)
	}
	return f
}

// inode names a file whatever the way to it.
func inode(p string) string {
	info, err := os.Stat(p)
	if err != nil {
		return ""
	}
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// script tries every path: reads first, then writes, deep ones first so that a
// missing directory is made before anything takes its name.
func (w *world) script(probes []string) string {
	var b strings.Builder
	b.WriteString("echo started\n")
	b.WriteString("stat -L -c 'R %d:%i %n' --")
	for _, p := range probes {
		b.WriteString(" '" + p + "'")
	}
	b.WriteString(" 2>/dev/null\n")
	b.WriteString("w() { if [ -d \"$2\" ]; then echo mark$1 >\"$2/w$1\"; else mkdir -p \"${2%/*}\"; echo mark$1 >>\"$2\"; fi; } 2>/dev/null\n")
	for i, p := range probes {
		fmt.Fprintf(&b, "w %d '%s'\n", i, p)
	}
	b.WriteString("exit 0\n")
	return b.String()
}

// reached tells whether write i of the script got to p.
func reached(p string, i int) bool {
	mark := fmt.Sprintf("mark%d\n", i)
	for _, q := range []string{p, path.Join(p, fmt.Sprintf("w%d", i))} {
		if data, err := os.ReadFile(q); err == nil && strings.Contains(string(data), mark) {
			return true
		}
	}
	return false
}

// TestModelAgreesWithSandbox asks the model and the mounts that srt makes the
// same questions, about random trees with links and missing paths and random
// policies with nested entries, patterns and trailing slashes. A tree has links
// or the policy patterns, not both: what a pattern names through a link in its
// middle the model does not find.
func TestModelAgreesWithSandbox(t *testing.T) {
	o := newOracle(t)
	reads, writes, faults := 0, 0, 0
	for s := range rounds(t) {
		w := newWorld(t, rand.New(rand.NewPCG(s, 0)), s%2 == 0)
		f := w.policy(s%2 == 1)
		probes := append(slices.Clone(w.paths), w.absent...)
		slices.SortFunc(probes, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
		probes = slices.Compact(probes)

		type want struct{ read, write Verdict }
		m := New(policyOf(f), "linux", w.home).WithCwd(path.Join(w.root, "start"))
		wants := make([]want, len(probes))
		inodes := make([]string, len(probes))
		for i, p := range probes {
			wants[i] = want{m.Read(p), m.Write(p)}
			inodes[i] = inode(p)
		}
		a := o.ask(t, map[string]any{"home": w.home, "cwd": path.Join(w.root, "start"), "filesystem": f, "script": w.script(probes)})
		started := strings.HasPrefix(a.Stdout, "started\n")
		show := func(format string, args ...any) {
			settings, _ := json.MarshalIndent(f, "", "  ")
			mounts, _, _ := strings.Cut(a.Wrapped, " --dev ")
			t.Fatal(strings.ReplaceAll(fmt.Sprintf("HARNESS_ACCESS_SEED=%d: %s\n%s\n%s\n%s\n%s", s, fmt.Sprintf(format, args...),
				strings.Join(w.lines, "\n"), settings, strings.ReplaceAll(mounts, " --", "\n--"), a.Stderr), w.root, "$R"))
		}
		if _, fault := m.Fault(); started == (fault != "") {
			show("the sandbox started: %v; the model: %+v", started, wants[0].read)
		}
		if !started {
			faults++
			continue
		}
		seen := map[string]string{}
		for line := range strings.Lines(a.Stdout) {
			if parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3); parts[0] == "R" {
				seen[parts[2]] = parts[1]
			}
		}
		for i, p := range probes {
			if inodes[i] != "" {
				reads++
				if got := seen[p] == inodes[i]; got != wants[i].read.Allowed {
					show("reading %s: the sandbox says %v, the model %+v", p, got, wants[i].read)
				}
			}
			writes++
			if got := reached(p, i); got != wants[i].write.Allowed {
				show("writing %s: the sandbox says %v, the model %+v", p, got, wants[i].write)
			}
		}
	}
	t.Logf("%d reads, %d writes, %d policies under which bubblewrap does not start", reads, writes, faults)
}

func policyOf(f srt.Filesystem) *srt.Policy {
	s := srt.Settings{Filesystem: f}
	return s.Policy("settings.json")
}
