package sdk

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/Masterminds/semver/v3"
)

// Violation is one rule that a contribution breaks.
type Violation struct {
	Field string // such as "state[0]"
	Value string
	Rule  string // what is wrong, one clause
	Fix   string // what the author changes
}

// Error is one line: field, value, rule and fix.
func (v Violation) Error() string {
	return fmt.Sprintf("%s: %q %s; %s", v.Field, v.Value, v.Rule, v.Fix)
}

// Violations is the error that [Contribution.Validate] returns.
type Violations []Violation

// Error is the first violation, and how many follow.
func (vs Violations) Error() string {
	if len(vs) > 1 {
		return fmt.Sprintf("%s (and %d more)", vs[0].Error(), len(vs)-1)
	}
	return vs[0].Error()
}

// Validate checks every rule on an answer to req and returns the broken ones
// as [Violations]. It looks at nothing but its arguments: the host checks in
// addition where symbolic links lead.
func (c Contribution) Validate(req Request) error {
	v := &validator{c: c, req: req}
	v.names()
	v.paths()
	v.args()
	v.env()
	if len(v.found) == 0 {
		return nil
	}
	return v.found
}

type validator struct {
	c     Contribution
	req   Request
	found Violations
}

func (v *validator) add(field, value, rule, fix string) {
	v.found = append(v.found, Violation{Field: field, Value: value, Rule: rule, Fix: fix})
}

var (
	plainName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	envName   = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
	fileName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// maxName keeps every file name that is made of a name well below the limit
// of 255 bytes.
const maxName = 64

func (v *validator) names() {
	for _, n := range []struct{ field, value string }{{"name", v.c.Name}, {"command", v.c.Command}} {
		switch {
		case !plainName.MatchString(n.value):
			v.add(n.field, n.value, "is not a plain name", "use a lower-case letter, then lower-case letters, digits and hyphens")
		case len(n.value) > maxName:
			v.add(n.field, n.value, "is too long", fmt.Sprintf("use at most %d characters", maxName))
		}
	}
	if v.c.Command == "index" {
		v.add("command", v.c.Command, "is the name of the launcher's own list", "choose another command")
	}
	v.line("title", v.c.Title)
	if v.c.SDKVersion != "" {
		v.line("sdk_version", v.c.SDKVersion)
	}
	if v.c.TestedVersions != "" {
		v.versions("tested_versions", v.c.TestedVersions)
	}
}

// line checks text that is shown to people.
func (v *validator) line(field, s string) {
	switch {
	case strings.TrimSpace(s) == "":
		v.add(field, s, "is empty", "give one line of text")
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		v.add(field, s, "is not one line of printable text", "remove control characters, escapes and invalid UTF-8")
	case len(s) > 200:
		v.add(field, s[:40]+"…", "is too long", "use at most 200 bytes")
	}
}

func (v *validator) versions(field, s string) {
	if _, err := semver.NewConstraint(s); err != nil {
		v.add(field, s, "is not a version constraint", `write it like ">= 1.2, < 3"`)
	}
}

func (v *validator) paths() {
	if len(v.c.State) == 0 {
		v.add("state", "", "is empty", "name at least one path that the agent keeps its state in")
	}
	files := map[string]string{} // absolute path of every declared file, to the field that declares it
	seen := map[string]Kind{}
	declare := func(field string, p Path) (abs string, ok bool) {
		abs, ok = v.path(field, p.Path)
		if !ok {
			return "", false
		}
		switch {
		case p.Kind != Dir && p.Kind != File:
			v.add(field, p.Path, "has no kind", "set Kind to Dir or File")
		case p.Kind == Dir && len(p.Content) > 0:
			v.add(field, p.Path, "is a directory with content", "remove Content or set Kind to File")
		case seen[abs] != 0 && seen[abs] != p.Kind:
			v.add(field, p.Path, "is both a directory and a file", "declare it once")
		}
		seen[abs] = p.Kind
		if p.Kind == File {
			files[abs] = field
		}
		return abs, true
	}

	var states []string
	for i, p := range v.c.State {
		field := fmt.Sprintf("state[%d]", i)
		abs, ok := declare(field, p)
		if !ok {
			continue
		}
		states = append(states, abs)
		v.unprotected(field, p.Path, abs)
	}
	below := func(field, p, abs string) {
		if !slices.ContainsFunc(states, func(s string) bool { return v.atOrBelow(abs, s) }) {
			v.add(field, p, "lies outside the state", "name a path at or below an entry of state")
		}
	}
	for i, p := range v.c.Own {
		field := fmt.Sprintf("own[%d]", i)
		if abs, ok := v.path(field, p); ok {
			v.unprotected(field, p, abs)
			below(field, p, abs)
		}
	}
	for i, p := range v.c.DenyWrite {
		v.path(fmt.Sprintf("deny_write[%d]", i), p)
	}
	for i, p := range v.c.Ensure {
		field := fmt.Sprintf("ensure[%d]", i)
		if abs, ok := declare(field, p); ok {
			below(field, p.Path, abs)
		}
	}
	if p := v.c.SettingsFile; p != "" {
		if abs, ok := v.path("settings_file", p); ok {
			below("settings_file", p, abs)
			if seen[abs] == Dir {
				v.add("settings_file", p, "is a directory", "name a file")
			}
		}
	}
	for _, abs := range slices.Sorted(maps.Keys(seen)) {
		for dir := path.Dir(abs); dir != "/"; dir = path.Dir(dir) {
			if field, ok := files[dir]; ok {
				v.add(field, dir, "is a file, but "+abs+" lies below it", "set Kind to Dir")
			}
		}
	}
}

// path checks the spelling of p and returns it with "~" replaced by the home
// directory.
func (v *validator) path(field, p string) (abs string, ok bool) {
	bad := func(rule, fix string) (string, bool) {
		v.add(field, p, rule, fix)
		return "", false
	}
	rest, tilde := strings.CutPrefix(p, "~/")
	if !tilde {
		rest = strings.TrimPrefix(p, "/")
	}
	switch {
	case !utf8.ValidString(p):
		return bad("is not valid UTF-8", "remove the invalid bytes")
	case strings.ContainsFunc(p, func(r rune) bool { return !unicode.IsPrint(r) }):
		return bad("holds a control or invisible character", "remove it")
	case !tilde && !path.IsAbs(p):
		return bad("does not begin with ~/", `write a path below home as "~/…"`)
	case strings.ContainsAny(p, "*?["):
		return bad("holds a glob character", "name the directory or file itself: the sandbox ignores globs on Linux")
	}
	for seg := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), "/") {
		switch seg {
		case "":
			return bad("has an empty segment", "name a path below home without //")
		case ".", "..":
			return bad("has a "+seg+" segment", "write the path without it")
		}
	}
	if tilde {
		return path.Join(v.req.Home, rest), true
	}
	abs = path.Clean(p)
	for _, name := range v.c.Env {
		if val := v.req.Env[name]; path.IsAbs(val) && v.atOrBelow(abs, path.Clean(val)) {
			return abs, true
		}
	}
	return bad("is absolute and follows from no variable of env", `begin it with "~/", or with the value of a variable named in env`)
}

// unprotected checks that a path of state or own is not, does not hold and
// does not lie in a protected path.
func (v *validator) unprotected(field, p, abs string) {
	for _, prot := range ProtectedPaths() {
		full := path.Join(v.req.Home, prot[2:])
		if v.atOrBelow(abs, full) || v.atOrBelow(full, abs) {
			v.add(field, p, "is, holds or lies in the protected path "+prot, "name only the agent's own directories and files")
			return
		}
	}
}

// atOrBelow compares by whole components, on macOS without regard to case, as
// its file system does.
func (v *validator) atOrBelow(p, dir string) bool {
	if v.req.OS == "darwin" {
		p, dir = strings.ToLower(p), strings.ToLower(dir)
	}
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

func (v *validator) args() {
	prefix, suffix := v.c.Name+"-", ".json"
	known := map[string]bool{}
	for i, o := range v.c.Overrides {
		field := fmt.Sprintf("overrides[%d]", i)
		switch {
		case !fileName.MatchString(o.Name) || !strings.HasPrefix(o.Name, prefix) || !strings.HasSuffix(o.Name, suffix) || len(o.Name) <= len(prefix)+len(suffix) || len(o.Name) > 2*maxName:
			v.add(field, o.Name, "is not a plain file name of this frontend", "call it "+prefix+"….json, with letters, digits, dots, hyphens and underscores")
		case known[o.Name]:
			v.add(field, o.Name, "is given twice", "give each override once")
		case !json.Valid(o.Content):
			v.add(field, o.Name, "does not hold JSON", "write its content as JSON")
		}
		known[o.Name] = true
	}
	for i, a := range v.c.Args {
		field := fmt.Sprintf("args[%d]", i)
		switch {
		case a.Literal != "" && a.Override != "":
			v.add(field, a.Literal, "is both a literal and an override", "set one of the two")
		case a.Override != "" && !known[a.Override]:
			v.add(field, a.Override, "refers to an override that does not exist", "give an override of that name")
		default:
			v.argument(field, a.Literal)
		}
		if a.Versions != "" {
			v.versions(field+".versions", a.Versions)
		}
	}
	for i, r := range v.c.RefusedArgs {
		field := fmt.Sprintf("refused_args[%d]", i)
		if r.Arg == "" {
			v.add(field, r.Arg, "is empty", "name the argument that is refused")
		}
		v.argument(field, r.Arg)
		v.line(field+".reason", r.Reason)
	}
}

// argument checks what a process can be given and a JSON file can keep.
func (v *validator) argument(field, s string) {
	if strings.ContainsRune(s, 0) || !utf8.ValidString(s) {
		v.add(field, s, "holds a NUL or invalid UTF-8", "remove it")
	}
}

func (v *validator) env() {
	for i, name := range v.c.Env {
		field := fmt.Sprintf("env[%d]", i)
		switch {
		case !envName.MatchString(name):
			v.add(field, name, "is not the name of a variable", "use upper-case letters, digits and underscores")
		case secret(name):
			v.add(field, name, "looks like the name of a secret, which no plugin is given", "name only variables that move the agent's files")
		case slices.Index(v.c.Env, name) < i:
			v.add(field, name, "is given twice", "name each variable once")
		}
	}
}

// secret reports a variable whose value the host should not hand over.
func secret(name string) bool {
	for word := range strings.SplitSeq(name, "_") {
		word = strings.TrimSuffix(word, "S")
		for _, s := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"} {
			if strings.HasSuffix(word, s) {
				return true
			}
		}
	}
	return false
}
