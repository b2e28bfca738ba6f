package access

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sexp is an atom, a string or a list of a seatbelt profile.
type sexp struct {
	atom string
	list []sexp
}

var sbplTokens = regexp.MustCompile(`;[^\n]*|[()]|#?"(?:[^"\\]|\\.)*"|[^\s()";]+`)

func parseProfile(t *testing.T, text string) []sexp {
	t.Helper()
	stack := [][]sexp{nil}
	for _, token := range sbplTokens.FindAllString(text, -1) {
		top := len(stack) - 1
		switch {
		case token[0] == ';':
		case token == "(":
			stack = append(stack, nil)
		case token == ")":
			done := sexp{list: stack[top]}
			stack = stack[:top]
			stack[top-1] = append(stack[top-1], done)
		case token[0] == '"':
			s, err := strconv.Unquote(token)
			if err != nil {
				t.Fatalf("%s: %v", token, err)
			}
			stack[top] = append(stack[top], sexp{atom: s})
		case token[0] == '#':
			stack[top] = append(stack[top], sexp{atom: token[2 : len(token)-1]})
		default:
			stack[top] = append(stack[top], sexp{atom: token})
		}
	}
	return stack[0]
}

// allows evaluates a profile as the kernel does: of the rules for op that match
// p the last decides, and one that names op itself goes before one for all of
// its kind.
func allows(t *testing.T, profile []sexp, op, p string) bool {
	t.Helper()
	exact, kind, isExact := false, false, false
	for _, rule := range profile {
		action := rule.list[0].atom
		if action != "allow" && action != "deny" {
			continue
		}
		var ops []string
		var filters []sexp
		for _, arg := range rule.list[1:] {
			if arg.list != nil {
				filters = append(filters, arg)
			} else {
				ops = append(ops, arg.atom)
			}
		}
		family := op[:strings.LastIndexByte(op, '-')] + "*"
		if !slices.Contains(ops, op) && !slices.Contains(ops, family) {
			continue
		}
		matched, any := false, false
		for _, f := range filters {
			if f.list[0].atom == "with" {
				continue
			}
			any = true
			matched = matched || filterMatches(t, f, p)
		}
		if any && !matched {
			continue
		}
		if slices.Contains(ops, op) {
			exact, isExact = action == "allow", true
		} else {
			kind = action == "allow"
		}
	}
	if isExact {
		return exact
	}
	return kind
}

func filterMatches(t *testing.T, f sexp, p string) bool {
	t.Helper()
	args := f.list[1:]
	switch f.list[0].atom {
	case "literal":
		return p == args[0].atom
	case "subpath":
		return atOrUnder(p, args[0].atom)
	case "regex":
		return regexp.MustCompile("(?s)" + args[0].atom).MatchString(p)
	case "require-not":
		return !filterMatches(t, args[0], p)
	case "require-all":
		return !slices.ContainsFunc(args, func(a sexp) bool { return !filterMatches(t, a, p) })
	case "vnode-type":
		return false // of no rule that gives data
	}
	t.Fatalf("a filter that the test does not know: %v", f)
	return false
}

// TestModelAgreesWithProfile asks the model and the profile that srt writes for
// macOS the same questions.
func TestModelAgreesWithProfile(t *testing.T) {
	o := newOracle(t)
	for s := range rounds(t) {
		w := newWorld(t, rand.New(rand.NewPCG(s, 1)), s%2 == 0)
		f := w.policy(true)
		cwd := path.Join(w.root, "start")
		if s%3 == 0 {
			cwd = w.home
		}
		probes := append(slices.Clone(w.paths), w.absent...)
		for _, name := range []string{".bashrc", "a/.git/hooks/x", "b/.vscode"} {
			probes = append(probes, path.Join(w.home, name))
		}
		m := New(policyOf(f), "darwin", w.home).WithCwd(cwd)
		a := o.ask(t, map[string]any{"profile": true, "home": w.home, "cwd": cwd, "filesystem": f})
		profile := parseProfile(t, a.Stdout)
		for _, p := range probes {
			real, err := filepath.EvalSymlinks(p)
			if err != nil {
				real, _ = m.links.deepest(p)
			}
			read := allows(t, profile, "file-read-data", real)
			write := allows(t, profile, "file-write-data", real)
			if _, err := os.Stat(real); err != nil {
				write = allows(t, profile, "file-write-create", real)
			}
			for _, c := range []struct {
				what string
				want bool
				got  Verdict
			}{{"read", read, m.Read(p)}, {"write", write, m.Write(p)}} {
				if c.want != c.got.Allowed {
					settings, _ := json.MarshalIndent(f, "", "  ")
					_, rules, _ := strings.Cut(a.Stdout, "; File read")
					t.Fatal(strings.ReplaceAll(fmt.Sprintf("HARNESS_ACCESS_SEED=%d: %s %s: the profile says %v, the model %+v\n%s\n%s\n%s", s,
						c.what, p, c.want, c.got, strings.Join(w.lines, "\n"), settings, rules), w.root, "$R"))
				}
			}
		}
	}
}
