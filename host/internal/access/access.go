// Package access answers whether a session may read or write a path or reach a
// host under a policy, and why. It models what srt makes of its settings on an
// operating system, not what the settings say: on Linux an ordered list of
// mounts, of which the last one on the way to a path decides, on macOS a
// seatbelt profile, of which the last rule that matches decides.
//
// The file system is asked when a question is, and each answer is remembered:
// a model is good for one moment, and for one goroutine.
package access

import (
	"path"
	"strings"

	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/srt"
)

// The lists of a policy, as a [Verdict] names them. Default is the rule where
// no entry decided.
const (
	AllowWrite     = "filesystem.allowWrite"
	DenyWrite      = "filesystem.denyWrite"
	DenyRead       = "filesystem.denyRead"
	AllowRead      = "filesystem.allowRead"
	AllowedDomains = "network.allowedDomains"
	DeniedDomains  = "network.deniedDomains"
	Default        = "default"
)

// Verdict is the answer to one question.
type Verdict struct {
	Allowed bool
	// Rule is the list that decided, or [Default].
	Rule string
	// Entry is the deciding entry; it is zero where Rule is [Default]. An entry
	// that srt adds by itself has the source "srt".
	Entry origin.Value
	// Reason is one clause, lower case, without a period.
	Reason string
	// Touches are the other entries that bear on the target.
	Touches []Touch
}

// Touch is an entry that bears on a target without deciding.
type Touch struct {
	Rule  string
	Entry origin.Value
	// Inert says why srt makes nothing of the entry; it is empty where srt
	// does.
	Inert string
}

// Model is a policy as srt applies it.
type Model struct {
	policy *srt.Policy
	goos   string
	home   string
	cwd    string
	links  *links

	lists  *lists            // the entries, read
	tables map[string]*table // Linux: by the matches of patterns that a question adds
	seat   *seatbelt         // macOS
	hosts  *hosts
}

// New returns the model of p on goos for a user whose home has the real path
// home. It asks nothing of the file system yet.
func New(p *srt.Policy, goos, home string) *Model {
	return &Model{policy: p, goos: goos, home: home, links: newLinks(false)}
}

// WithCwd returns the model of a session that starts in dir, where srt write-denies
// more files, such as .bashrc and .git/hooks.
func (m *Model) WithCwd(dir string) *Model {
	return &Model{policy: m.policy, goos: m.goos, home: m.home, cwd: dir, links: m.links}
}

// WithMissing returns the model of the time when every path that an entry names
// is there. Without it an entry whose path is missing does nothing on Linux, as
// srt skips it.
func (m *Model) WithMissing() *Model {
	return &Model{policy: m.policy, goos: m.goos, home: m.home, cwd: m.cwd, links: newLinks(true)}
}

// Read tells whether the session can read path, an absolute path, as it is on
// the host. A directory that is only above visible ones is not readable: the
// session sees another, empty one.
func (m *Model) Read(path string) Verdict { return m.ask(path, false) }

// Write tells whether a write to path, an absolute path, would reach the host:
// creating it where it is missing, changing it where it is there.
func (m *Model) Write(path string) Verdict { return m.ask(path, true) }

// Host tells whether the session can reach hostport, a host with an optional
// port, through srt's proxy. Without a port the question is about 443.
func (m *Model) Host(hostport string) Verdict {
	if m.hosts == nil {
		m.hosts = newHosts(m.policy)
	}
	return m.hosts.ask(hostport)
}

func (m *Model) ask(target string, write bool) Verdict {
	m.prepare()
	target = path.Clean(target)
	if m.goos == "darwin" {
		return m.askDarwin(target, write)
	}
	return m.askLinux(target, write)
}

// Inert returns the entries that srt makes nothing of here, each with the
// reason: patterns, links and missing paths.
func (m *Model) Inert() []Touch {
	m.prepare()
	return m.lists.inert
}

// Fault is why srt would not start at all under the policy, and the entry that
// is at fault; the reason is empty where srt would start.
func (m *Model) Fault() (origin.Value, string) {
	m.prepare()
	if m.goos != "linux" {
		return origin.Value{}, ""
	}
	t := m.tableFor(nil)
	if t.fault == "" {
		return origin.Value{}, ""
	}
	return t.faultBy.Entry, t.fault
}

func (m *Model) prepare() {
	if m.lists == nil {
		m.lists = m.readLists()
	}
}

// atOrUnder tells whether p is dir or lies below it. Both are clean.
func atOrUnder(p, dir string) bool {
	return p == dir || strictlyUnder(p, dir)
}

// strictlyUnder tells whether p lies below dir. Both are clean.
func strictlyUnder(p, dir string) bool {
	if dir == "/" {
		return p != "/"
	}
	return len(p) > len(dir) && p[len(dir)] == '/' && strings.HasPrefix(p, dir)
}

// upward yields p and the directories above it, nearest first, the root last.
func upward(p string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for {
			if !yield(p) || p == "/" {
				return
			}
			p = parent(p)
		}
	}
}

// above yields the directories above p, nearest first, the root last.
func above(p string) func(func(string) bool) {
	return func(yield func(string) bool) {
		if p != "/" {
			upward(parent(p))(yield)
		}
	}
}
