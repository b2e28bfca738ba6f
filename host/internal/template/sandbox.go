package template

import (
	"github.com/research-harness/harness/host/internal/netrules"
	"github.com/research-harness/harness/host/internal/origin"
)

// Sandbox holds the lists of the sandbox object that every frontend shares.
// Paths are spelled as in the template.
type Sandbox struct {
	AllowWrite  []origin.Value
	DenyWrite   []origin.Value
	DenyRead    []origin.Value
	Credentials []origin.Value // credentials.files[].path

	AllowedDomains    []origin.Value
	DeniedDomains     []origin.Value
	AllowLocalBinding bool
}

// readSandbox takes the shared lists out of the sandbox object. Whatever else
// it holds is Claude Code's alone.
func readSandbox(sandbox node) (*Sandbox, error) {
	r := reader{}
	filesystem := r.object(&sandbox, "filesystem")
	network := r.object(&sandbox, "network")
	credentials := r.object(&sandbox, "credentials")
	s := &Sandbox{
		AllowWrite:        r.strings(filesystem, "allowWrite"),
		DenyWrite:         r.strings(filesystem, "denyWrite"),
		DenyRead:          r.strings(filesystem, "denyRead"),
		AllowedDomains:    r.strings(network, "allowedDomains"),
		DeniedDomains:     r.strings(network, "deniedDomains"),
		AllowLocalBinding: r.bool(network, "allowLocalBinding"),
	}
	for _, file := range r.list(credentials, "files") {
		s.Credentials = append(s.Credentials, r.path(file))
	}
	for _, v := range s.AllowedDomains {
		r.keep(netrules.CheckAllow(v))
	}
	for _, v := range s.DeniedDomains {
		r.keep(netrules.CheckDeny(v))
	}
	return s, r.err
}

// reader reads members of expected types and keeps the first problem. A
// member that is missing, or whose object is, reads as the zero value.
type reader struct{ err error }

func (r *reader) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) wrong(n node, want string) {
	r.keep(n.origin.Problem("must be %s", want))
}

func (r *reader) object(n *node, key string) *node {
	m := n.member(key)
	if m != nil && !m.object {
		r.wrong(*m, "an object")
		return nil
	}
	return m
}

func (r *reader) list(n *node, key string) []node {
	if n == nil {
		return nil
	}
	m := n.member(key)
	if m == nil {
		return nil
	}
	if !m.list {
		r.wrong(*m, "a list")
	}
	return m.items
}

func (r *reader) strings(n *node, key string) []origin.Value {
	var out []origin.Value
	for _, item := range r.list(n, key) {
		out = append(out, r.string(item))
	}
	return out
}

func (r *reader) string(n node) origin.Value {
	text, ok := n.text()
	if !ok {
		r.wrong(n, "a string")
	}
	return origin.Value{Text: text, Origin: n.origin}
}

// path reads the path of a credential file.
func (r *reader) path(file node) origin.Value {
	path := file.member("path")
	if path == nil {
		r.wrong(file, "an object with a path")
		return origin.Value{}
	}
	return r.string(*path)
}

func (r *reader) bool(n *node, key string) bool {
	if n == nil {
		return false
	}
	m := n.member(key)
	if m == nil {
		return false
	}
	if kind := m.literal.Kind(); kind != 't' && kind != 'f' {
		r.wrong(*m, "true or false")
	}
	return m.literal.Bool()
}
