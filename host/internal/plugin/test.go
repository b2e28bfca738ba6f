package plugin

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/sdk"
	"github.com/research-harness/harness/sdk/sdktest"
)

// Test runs the plugin f through the checks of the conformance kit, confined
// where that works, and returns the rules that it breaks. A plugin that does
// not come as far as to be asked is an error.
func (h *Host) Test(ctx context.Context, f Found) (findings []sdktest.Finding, err error) {
	err = h.open(f, func(img *image, sockets string) error {
		home := filepath.Join(sockets, "Zoë Müller")
		if err := os.Mkdir(home, 0o700); err != nil {
			return problem.New(home, "", "%w", cause(err))
		}
		start := func() *process {
			p := h.process(f, img)
			p.confine, p.scratch = h.bwrap(), home
			return p
		}
		p := start()
		err := h.session(ctx, p, sockets, h.Timeout, func(ctx context.Context, conn *grpc.ClientConn) error {
			c, err := sdk.NewClient(conn).Describe(ctx, sdk.Request{OS: h.System.OS, Arch: h.System.Arch, Home: home})
			if err != nil {
				return h.explain(ctx, p, err)
			}
			if c.Name != f.Name {
				findings = append(findings, sdktest.Finding{
					Rule: "is called " + prefix + "<name>", Message: "the answer's name is " + c.Name,
					Fix: "call the file " + prefix + c.Name,
				})
			}
			return nil
		})
		if err != nil {
			return err
		}
		p = start() // each of its many answers has the same limit
		return h.session(ctx, p, sockets, 6*h.Timeout, func(ctx context.Context, conn *grpc.ClientConn) error {
			findings = append(findings, sdktest.CheckConn(ctx, conn, home)...)
			if left := p.descendants(); len(left) > 0 {
				findings = append(findings, sdktest.Finding{
					Rule: "leaves no process behind", Message: "still running: " + strings.Join(left, ", "),
					Fix: "end what the plugin starts before it answers",
				})
			}
			return nil
		})
	})
	return findings, err
}

// descendants returns the names of the processes that the plugin started and
// that still run, where /proc tells.
func (p *process) descendants() []string {
	children := map[string][]string{}
	names := map[string]string{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		data, _ := os.ReadFile(file)
		pid, rest, _ := strings.Cut(string(data), " (")
		name, rest, _ := strings.Cut(rest, ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[0] != "Z" {
			children[fields[1]] = append(children[fields[1]], pid)
			names[pid] = name
		}
	}
	var out []string
	for queue := []string{p.ID()}; len(queue) > 0; queue = queue[1:] {
		next := children[queue[0]]
		slices.SortFunc(next, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
		for _, pid := range next {
			out = append(out, names[pid])
		}
		queue = append(queue, next...)
	}
	if p.confine != "" {
		out = out[min(2, len(out)):] // bubblewrap's first process and the plugin itself
	}
	return out
}
