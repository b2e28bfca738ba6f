package srt

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/problem"
)

// Input is all that a policy is rendered from. Rendering reads nothing else.
// Paths may begin with "~" for Home.
type Input struct {
	OS   string // GOOS
	Home string // the real path
	// TempDir is the real path of $TMPDIR, or empty.
	TempDir origin.Value

	// The template's lists, expanded.
	AllowedDomains    []origin.Value
	DeniedDomains     []origin.Value
	AllowLocalBinding bool
	AllowWrite        []origin.Value
	DenyWrite         []origin.Value
	DenyRead          []origin.Value
	Credentials       []origin.Value // credentials.files[].path

	// ReadAllow is what every frontend reads below home.
	ReadAllow []origin.Value

	// Frontends are all that are installed and trusted, whether chosen or
	// not: each one's state is protected from the others.
	Frontends []Frontend
}

// Frontend is one frontend's part of the policy.
type Frontend struct {
	Name      string
	State     []origin.Value
	Own       []origin.Value
	DenyWrite []origin.Value
}

// bundledOrder is the order in which the bundled frontends' states are
// listed; others follow by name.
var bundledOrder = []string{"claude", "opencode", "omp", "antigravity"}

// CompareNames orders policy names: the bundled ones first, in their own
// order, then the others by name.
func CompareNames(a, b string) int {
	rank := func(name string) int {
		if i := slices.Index(bundledOrder, name); i >= 0 {
			return i
		}
		return len(bundledOrder)
	}
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// Render assembles the policy of the frontend called name, which in.Frontends
// holds.
//
// No policy allows a write to another frontend's state: an entry at or below
// one is left out, and a state below an entry is denied. A path that is
// relative after the expansion of "~", or that JSON cannot hold, is a problem
// with the place that gave it.
func Render(in Input, name string) (*Policy, error) {
	r := renderer{home: in.Home}
	all := slices.Clone(in.Frontends)
	slices.SortFunc(all, func(a, b Frontend) int { return CompareNames(a.Name, b.Name) })

	var self Frontend
	var others []origin.Value
	for _, f := range all {
		if f.Name == name {
			self = f
		} else {
			others = append(others, r.expand(f.State)...)
		}
	}
	state, own := r.expand(self.State), r.expand(self.Own)
	foreign := newTree(others)

	allowWrite := without(r.expand(in.AllowWrite), foreign.holds)
	allowWrite = append(allowWrite, state...)
	if in.TempDir.Text != "" {
		allowWrite = append(allowWrite, without(r.expand([]origin.Value{in.TempDir}), foreign.holds)...)
	}
	allowWrite = unique(allowWrite)

	notOwn := newTree(own).hasExactly
	denyWrite := without(r.expand(in.DenyWrite), notOwn)
	denyWrite = append(denyWrite, r.expand(self.DenyWrite)...)
	writable := newTree(allowWrite)
	for _, s := range others {
		if writable.holdsStrictly(s.Text) || in.OS == "darwin" && writable.globReaches(s.Text) {
			denyWrite = append(denyWrite, s)
		}
	}

	denyRead := []origin.Value{{Text: in.Home, Origin: origin.Origin{Source: "read limit", Element: "home"}}}
	denyRead = append(denyRead, without(r.expand(in.DenyRead), notOwn)...)
	denyRead = append(denyRead, without(r.expand(in.Credentials), notOwn)...)

	allowRead := append(r.expand(in.ReadAllow), state...)
	if in.OS == "darwin" {
		for _, w := range allowWrite {
			if paths.Below(w.Text, in.Home) {
				allowRead = append(allowRead, w)
			}
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return &Policy{
		Frontend:          name,
		AllowedDomains:    uniqueText(in.AllowedDomains),
		DeniedDomains:     uniqueText(in.DeniedDomains),
		AllowLocalBinding: in.AllowLocalBinding,
		AllowWrite:        allowWrite,
		DenyWrite:         unique(denyWrite),
		DenyRead:          unique(denyRead),
		AllowRead:         unique(allowRead),
		AllowPty:          in.OS == "darwin",
	}, nil
}

// renderer expands paths and keeps the first problem.
type renderer struct {
	home string
	err  error
}

func (r *renderer) expand(vs []origin.Value) []origin.Value {
	out := make([]origin.Value, 0, len(vs))
	for _, v := range vs {
		p := paths.Expand(r.home, v.Text)
		if r.err == nil && (!filepath.IsAbs(p) || !utf8.ValidString(p) || strings.ContainsRune(p, 0)) {
			r.err = badPath(v, p)
		}
		out = append(out, origin.Value{Text: p, Origin: v.Origin})
	}
	return out
}

func badPath(v origin.Value, expanded string) error {
	where := v.Origin.Source
	if v.Origin.Line > 0 {
		where = origin.Origin{Source: v.Origin.Source, Line: v.Origin.Line}.String()
	}
	switch {
	case !utf8.ValidString(expanded):
		return problem.New(where, v.Origin.Element, "%q is not valid UTF-8, which a settings file cannot hold", v.Text)
	case strings.ContainsRune(expanded, 0):
		return problem.New(where, v.Origin.Element, "%q holds a NUL byte", v.Text)
	}
	return problem.New(where, v.Origin.Element, "%q is a relative path", v.Text).
		WithHint(`begin the path with "~/" or "/"`)
}

// tree is a set of paths that answers questions of containment in time that
// grows with the depth of a path, not with the number of paths.
type tree struct {
	dirs  map[string]struct{}
	globs []string
}

func newTree(vs []origin.Value) tree {
	t := tree{dirs: make(map[string]struct{}, len(vs))}
	for _, v := range vs {
		t.dirs[paths.TrimGlobstar(v.Text)] = struct{}{}
		if paths.IsGlob(v.Text) {
			t.globs = append(t.globs, v.Text)
		}
	}
	return t
}

func (t tree) hasExactly(p string) bool {
	_, ok := t.dirs[paths.TrimGlobstar(p)]
	return ok
}

// holds reports whether p is at or below a path of the set.
func (t tree) holds(p string) bool { return t.hasExactly(p) || t.holdsStrictly(p) }

// holdsStrictly reports whether p is below a path of the set.
func (t tree) holdsStrictly(p string) bool {
	for p = paths.TrimGlobstar(p); p != "/"; {
		p = path.Dir(p)
		if t.hasExactly(p) {
			return true
		}
	}
	return false
}

// globReaches reports whether a glob of the set can match p, a directory
// above it, or something below it.
func (t tree) globReaches(p string) bool {
	return slices.ContainsFunc(t.globs, func(glob string) bool { return globReaches(glob, p) })
}

func globReaches(glob, p string) bool {
	pattern, name := strings.Split(paths.TrimGlobstar(glob), "/"), strings.Split(p, "/")
	for i := range min(len(pattern), len(name)) {
		if strings.Contains(pattern[i], "**") {
			return true
		}
		// A pattern that does not parse may mean anything to srt.
		if ok, err := path.Match(pattern[i], name[i]); err == nil && !ok {
			return false
		}
	}
	return true
}

func without(vs []origin.Value, drop func(string) bool) []origin.Value {
	return slices.DeleteFunc(vs, func(v origin.Value) bool { return drop(v.Text) })
}

// unique keeps the first of paths that name the same place.
func unique(vs []origin.Value) []origin.Value {
	return uniqueBy(vs, func(v origin.Value) string { return paths.TrimGlobstar(v.Text) })
}

func uniqueText(vs []origin.Value) []origin.Value {
	return uniqueBy(vs, func(v origin.Value) string { return v.Text })
}

func uniqueBy(vs []origin.Value, key func(origin.Value) string) []origin.Value {
	seen := make(map[string]struct{}, len(vs))
	out := make([]origin.Value, 0, len(vs))
	for _, v := range vs {
		k := key(v)
		if _, dup := seen[k]; !dup {
			seen[k] = struct{}{}
			out = append(out, v)
		}
	}
	return out
}
