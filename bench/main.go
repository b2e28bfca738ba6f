// Bench measures the harness side by side with what it stands on, and writes
// RESULTS.md. Each figure is a ratio within one run: the two commands take
// turns, so that a machine that slows down slows both.
//
//	bench -bin ../build -srt SRT [-rounds N] [-out RESULTS.md]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// pair compares two commands that do the same work.
type pair struct {
	name  string
	ours  []string
	other []string
	limit float64 // what the ratio may be at most
	why   string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	bin := flag.String("bin", "../build", "the build directory")
	srt := flag.String("srt", os.Getenv("HARNESS_TEST_SRT"), "the srt executable")
	rounds := flag.Int("rounds", 15, "pairs of runs for each figure")
	out := flag.String("out", "RESULTS.md", "the report")
	flag.Parse()
	if *srt == "" {
		return errors.New("name srt with -srt or HARNESS_TEST_SRT")
	}
	build, err := filepath.Abs(*bin)
	if err != nil {
		return err
	}
	w, err := newWorld(build, *srt)
	if err != nil {
		return err
	}
	defer os.RemoveAll(w.root)

	var report bytes.Buffer
	fmt.Fprintf(&report, "# Results\n\nWritten by `make bench`: %s/%s, %d processors, %s, srt %s, %d pairs a figure.\n\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), firstLine(w, "uname", "-sr"), firstLine(w, *srt, "--version"), *rounds)
	fmt.Fprintf(&report, "A ratio is the median over the pairs; it compares whole processes by wall time.\n\n")
	fmt.Fprintf(&report, "| figure | ours, median s | other, median s | ratio | at most | |\n|---|---|---|---|---|---|\n")
	missed := 0
	for _, p := range w.pairs() {
		ours, other, ratio, err := w.measure(p, *rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		verdict := "holds"
		if ratio > p.limit {
			verdict = "**missed**"
			missed++
		}
		fmt.Fprintf(&report, "| %s: %s | %.4f | %.4f | %.3f | %.2f | %s |\n", p.name, p.why, ours, other, ratio, p.limit, verdict)
		fmt.Fprintf(os.Stderr, "bench: %s: %.3f (at most %.2f)\n", p.name, ratio, p.limit)
	}
	if err := os.WriteFile(*out, report.Bytes(), 0o644); err != nil {
		return err
	}
	os.Stdout.Write(report.Bytes())
	if missed > 0 {
		return fmt.Errorf("%d figures are above their limit", missed)
	}
	return nil
}

// world is a home directory with an installed harness and a frontend that
// does nothing.
type world struct {
	root                           string // holds the rest
	home, project, programs, build string
	env                            []string
}

func newWorld(build, srt string) (*world, error) {
	root, err := os.MkdirTemp("/var/tmp", "bench") // as a home is: not below what every command may write
	if err != nil {
		return nil, err
	}
	home := filepath.Join(root, "home")
	w := &world{
		root: root, home: home, project: filepath.Join(home, "Research", "x"),
		programs: filepath.Join(root, "programs"), build: build,
	}
	w.env = []string{"HOME=" + home, "PATH=" + w.programs + ":" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	for _, dir := range []string{w.project, w.programs, filepath.Join(home, ".local/bin")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	// The frontend does nothing, so that only the start counts.
	if err := os.Symlink("/bin/true", filepath.Join(w.programs, "claude")); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(home, ".local/bin/srt"), fmt.Appendf(nil, "#!/bin/sh\nexec %q \"$@\"\n", srt), 0o755); err != nil {
		return nil, err
	}
	install := exec.Command(filepath.Join(build, "bin/harness"), "install", "--apply")
	install.Env, install.Dir = w.env, w.project
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("install: %w\n%s", err, out)
	}
	return w, nil
}

func (w *world) pairs() []pair {
	local := filepath.Join(w.home, ".local/bin")
	settings := filepath.Join(w.home, ".config/research-harness/sandbox")
	inner := filepath.Join(settings, "claude-inner-off.json")
	return []pair{
		{
			name: "launch", why: "`agentbox claude` against the same srt command",
			ours:  []string{filepath.Join(local, "agentbox"), "claude"},
			other: []string{filepath.Join(local, "srt"), "--settings", filepath.Join(settings, "claude.json"), "--", filepath.Join(w.programs, "claude"), "--settings", inner},
			limit: 1.05,
		},
		{
			name: "install", why: "a dry `harness install` with four plugins against `srt --version`",
			ours:  []string{filepath.Join(local, "harness"), "install"},
			other: []string{filepath.Join(local, "srt"), "--version"},
			limit: 1,
		},
		{
			name: "exec", why: "`harness exec -- true` against `bwrap --ro-bind / / true`",
			ours:  []string{filepath.Join(local, "harness"), "exec", "--", "true"},
			other: []string{"bwrap", "--ro-bind", "/", "/", "true"},
			limit: 2.5,
		},
		{
			name: "exec itself", why: "the same against bubblewrap with the mounts and the namespace that the scope has",
			ours: []string{filepath.Join(local, "harness"), "exec", "--", "true"},
			other: []string{
				"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc", "--die-with-parent",
				"--bind", "/tmp", "/tmp", "--bind", w.home + "/.cache", w.home + "/.cache", "--bind", w.home + "/go/pkg", w.home + "/go/pkg",
				"--bind", w.project, w.project, "--", "true",
			},
			limit: 2,
		},
	}
}

// measure lets the two commands take turns and returns the medians of their
// times and of the ratios of the pairs.
func (w *world) measure(p pair, rounds int) (ours, other, ratio float64, err error) {
	var a, b, ratios []float64
	for i := range rounds + 1 {
		times, err := w.hyperfine(p.ours, p.other)
		if err != nil {
			return 0, 0, 0, err
		}
		if i == 0 {
			continue // warm-up
		}
		a, b, ratios = append(a, times[0]), append(b, times[1]), append(ratios, times[0]/times[1])
	}
	return median(a), median(b), median(ratios), nil
}

// hyperfine runs each command once, in turn, and returns the times in seconds.
func (w *world) hyperfine(commands ...[]string) ([]float64, error) {
	out := filepath.Join(w.home, "hyperfine.json")
	args := []string{"--shell=none", "--runs=1", "--style=none", "--export-json", out}
	for _, c := range commands {
		for i, arg := range c {
			c[i] = strings.ReplaceAll(arg, " ", `\ `)
		}
		args = append(args, strings.Join(c, " "))
	}
	cmd := exec.CommandContext(context.Background(), "hyperfine", args...)
	cmd.Env, cmd.Dir = w.env, w.project
	if msg, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, msg)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	var report struct {
		Results []struct {
			Mean float64 `json:"mean"`
		} `json:"results"`
	}
	if err := json.Unmarshal(data, &report); err != nil {
		return nil, err
	}
	var times []float64
	for _, r := range report.Results {
		times = append(times, r.Mean)
	}
	return times, nil
}

func median(xs []float64) float64 {
	slices.Sort(xs)
	n := len(xs)
	return (xs[(n-1)/2] + xs[n/2]) / 2
}

func firstLine(w *world, name string, args ...string) string {
	cmd := exec.Command(name, args...)
	cmd.Env = w.env
	out, err := cmd.Output()
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}
