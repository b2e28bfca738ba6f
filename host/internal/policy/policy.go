// Package policy reads policy.toml: what every frontend may read below home,
// and, where the user says so, a frontend's own lists in place of its
// plugin's.
package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/tomlfile"
)

// Policy is the file.
type Policy struct {
	ReadAllow []origin.Value
	Frontends map[string]Entry // by policy name
}

// Entry replaces a plugin's three lists.
type Entry struct {
	State     []origin.Value
	DenyWrite []origin.Value
	Own       []origin.Value
	Origin    origin.Origin // of the table
}

// Parse reads a file. All paths begin with "~/" and are free of "..", empty
// segments and NUL; anything else is a problem that names key or path.
func Parse(file string, data []byte) (*Policy, error) {
	entries, err := tomlfile.Parse(file, data)
	if err != nil {
		return nil, err
	}
	r := reader{policy: &Policy{Frontends: map[string]Entry{}}, seen: map[string]map[string]bool{}}
	for _, e := range entries {
		if err := r.entry(e); err != nil {
			return nil, err
		}
	}
	if r.policy.ReadAllow == nil {
		return nil, problem.New(file, "read.allow", "is missing").
			WithHint("add the table [read] with the list allow")
	}
	for _, name := range slices.Sorted(maps.Keys(r.policy.Frontends)) {
		for _, key := range []string{"state", "deny_write", "own"} {
			if !r.seen[name][key] {
				return nil, r.policy.Frontends[name].Origin.Problem("%s is missing", key).
					WithHint("a table of a frontend replaces its plugin's lists: state, deny_write and own, each of which may be []")
			}
		}
	}
	return r.policy, nil
}

type reader struct {
	policy *Policy
	seen   map[string]map[string]bool // frontend, key
}

func (r *reader) entry(e tomlfile.Entry) error {
	switch path := e.Path; {
	case path[0] == "read" && len(path) == 1, path[0] == "frontend" && len(path) <= 2:
		if !e.IsTable() {
			return e.Origin.Problem("must be a table")
		}
		if len(path) == 2 {
			r.frontend(path[1], e.Origin)
		}
		return nil
	case path[0] == "read" && len(path) == 2 && path[1] == "allow":
		var err error
		r.policy.ReadAllow, err = paths(e)
		return err
	case path[0] == "frontend" && len(path) == 3:
		table := e.Origin
		table.Element = "frontend." + path[1]
		r.frontend(path[1], table)
		return r.list(path[1], path[2], e)
	}
	kind := "key"
	if e.IsTable() {
		kind = "table"
	}
	return e.Origin.Problem("is not a %s of this file", kind).
		WithHint("the tables are [read] with allow, and [frontend.NAME] with state, deny_write and own")
}

// frontend makes sure that there is an entry of a frontend.
func (r *reader) frontend(name string, o origin.Origin) {
	if _, ok := r.policy.Frontends[name]; !ok {
		r.policy.Frontends[name] = Entry{Origin: o}
		r.seen[name] = map[string]bool{}
	}
}

func (r *reader) list(name, key string, e tomlfile.Entry) error {
	entry := r.policy.Frontends[name]
	into, ok := map[string]*[]origin.Value{
		"state": &entry.State, "deny_write": &entry.DenyWrite, "own": &entry.Own,
	}[key]
	if !ok {
		return e.Origin.Problem("is not a key of a frontend").WithHint("the keys are state, deny_write and own")
	}
	var err error
	if *into, err = paths(e); err != nil {
		return err
	}
	r.policy.Frontends[name] = entry
	r.seen[name][key] = true
	return nil
}

// paths reads a list of paths below home.
func paths(e tomlfile.Entry) ([]origin.Value, error) {
	values, err := e.Strings()
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		if err := checkPath(v); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func checkPath(v origin.Value) error {
	rest, ok := strings.CutPrefix(v.Text, "~/")
	if !ok {
		return v.Origin.Problem("%q does not start with ~/", v.Text).
			WithHint("only paths below the home directory can be listed here")
	}
	if rest == "" {
		return v.Origin.Problem("%q is the whole home directory", v.Text)
	}
	segments := strings.Split(strings.TrimSuffix(rest, "/"), "/")
	switch {
	case strings.ContainsRune(rest, 0):
		return v.Origin.Problem("%q holds a NUL", v.Text)
	case slices.Contains(segments, ".."):
		return v.Origin.Problem(`%q holds a ".." segment, which could leave the home directory`, v.Text)
	case slices.Contains(segments, ""):
		return v.Origin.Problem("%q holds an empty segment", v.Text)
	case !slices.ContainsFunc(segments, func(s string) bool { return s != "." }):
		return v.Origin.Problem("%q is the whole home directory", v.Text)
	}
	return nil
}

// Check reports a frontend of the file that is not among served, the policy
// names of the plugins.
func (p *Policy) Check(served []string) error {
	for _, name := range slices.Sorted(maps.Keys(p.Frontends)) {
		if !slices.Contains(served, name) {
			return p.Frontends[name].Origin.Problem("no plugin serves this frontend").
				WithHint("the frontends are %s", strings.Join(served, ", "))
		}
	}
	return nil
}
