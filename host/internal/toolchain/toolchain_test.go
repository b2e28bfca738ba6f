package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/research-harness/harness/host/internal/system"
)

// world is a temporary home and a place outside it, made of what a case lists:
// "dir/", "file" and "link -> target". $H and $O stand for the two.
type world struct {
	home, out string
	expand    *strings.Replacer
}

func newWorld(t *testing.T, tree ...string) world {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{home: top + "/häuser/a b", out: top + "/out"}
	w.expand = strings.NewReplacer("$H", w.home, "$O", w.out)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(w.home, 0o700))
	must(os.MkdirAll(w.out, 0o700))
	for _, entry := range tree {
		entry = w.expand.Replace(entry)
		name, target, link := strings.Cut(entry, " -> ")
		must(os.MkdirAll(filepath.Dir(name), 0o700))
		switch {
		case link:
			must(os.Symlink(target, name))
		case strings.HasSuffix(name, "/"):
			must(os.MkdirAll(name, 0o700))
		default:
			file, content, _ := strings.Cut(name, "=")
			must(os.WriteFile(file, []byte(content), 0o600))
		}
	}
	return w
}

func (w world) system(env ...string) *system.System {
	s := &system.System{OS: "linux", Env: []string{"HOME=" + w.home}}
	for _, e := range env {
		s.Env = append(s.Env, w.expand.Replace(e))
	}
	return s
}

// lines prints dirs as "PATH SOURCE [temp] [create]".
func (w world) lines(dirs []Dir) []string {
	var out []string
	for _, d := range dirs {
		line := strings.NewReplacer(w.home, "$H", w.out, "$O").Replace(d.Path) + " " + d.Source
		if d.Temp {
			line += " temp"
		}
		if d.Create {
			line += " create"
		}
		out = append(out, line)
	}
	return out
}

func TestWritableDirs(t *testing.T) {
	const tmp, cache, pkg = "/tmp /tmp temp", "$H/.cache ~/.cache create", "$H/go/pkg ~/go/pkg create"
	for _, tt := range []struct {
		rule string
		tree []string
		env  []string
		os   string
		want []string
		warn []string // what each warning says, in order
	}{
		{
			rule: "an empty home gives /tmp and the two that are created",
			want: []string{tmp, cache, pkg},
		},
		{
			rule: "all, in order",
			tree: []string{"$O/t/", "$O/xdg/", "$O/gc/", "$O/gm/", "$O/a/pkg/", "$O/b/pkg/", "$H/.npm/", "$H/.cargo/registry/", "$H/.cargo/git/"},
			env:  []string{"TMPDIR=$O/t", "XDG_CACHE_HOME=$O/xdg", "GOCACHE=$O/gc", "GOMODCACHE=$O/gm", "GOPATH=$O/a:$O/b"},
			want: []string{
				"$O/t TMPDIR temp", tmp, "$O/xdg XDG_CACHE_HOME", cache, "$O/gc GOCACHE", "$O/gm GOMODCACHE create",
				"$O/a/pkg GOPATH", "$O/b/pkg GOPATH", "$H/.npm ~/.npm", "$H/.cargo/registry ~/.cargo/registry", "$H/.cargo/git ~/.cargo/git",
			},
		},
		{
			rule: "macOS has its own cache directory, and no XDG_CACHE_HOME",
			os:   "darwin",
			tree: []string{"$H/Library/Caches/", "$O/xdg/"},
			env:  []string{"XDG_CACHE_HOME=$O/xdg"},
			want: []string{tmp, "$H/Library/Caches ~/Library/Caches", cache, pkg},
		},
		{
			rule: "what does not exist is left out",
			env:  []string{"TMPDIR=$O/t", "XDG_CACHE_HOME=$O/xdg", "GOCACHE=$O/gc"},
			want: []string{tmp, cache, pkg},
		},
		{
			rule: "a file is no directory",
			tree: []string{"$O/t=", "$H/.cache=", "$H/.npm="},
			env:  []string{"TMPDIR=$O/t"},
			want: []string{tmp, pkg},
		},
		{
			rule: "GOMODCACHE is created, and then no pkg",
			env:  []string{"GOMODCACHE=$O/gm"},
			want: []string{tmp, cache, "$O/gm GOMODCACHE create"},
		},
		{
			rule: "pkg of the first GOPATH element is created, the others must exist",
			env:  []string{"GOPATH=$O/a:$O/b"},
			want: []string{tmp, cache, "$O/a/pkg GOPATH create"},
		},
		{
			rule: "off, relative and .. values are skipped in silence",
			tree: []string{"$O/x/"},
			env:  []string{"TMPDIR=tmp", "XDG_CACHE_HOME=$O/x/../x", "GOCACHE=off", "GOMODCACHE=off", "GOPATH=go:../go"},
			want: []string{tmp, cache, pkg},
		},
		{
			rule: "empty values are unset ones",
			env:  []string{"TMPDIR=", "XDG_CACHE_HOME=", "GOCACHE=", "GOMODCACHE=", "GOPATH="},
			want: []string{tmp, cache, pkg},
		},
		{
			rule: "links are resolved, and one directory stands once",
			tree: []string{"$O/real/", "$H/.cache -> $O/real", "$O/t -> $O/real"},
			env:  []string{"GOCACHE=$O/t/", "XDG_CACHE_HOME=$H/.cache"},
			want: []string{tmp, "$O/real XDG_CACHE_HOME create", pkg},
		},
		{
			rule: "a dangling link is created where it points",
			tree: []string{"$H/.cache -> $O/later"},
			want: []string{tmp, "$O/later ~/.cache create", pkg},
		},
		{
			rule: "an entry below an earlier one is kept",
			tree: []string{"$H/.cache/go-build/"},
			env:  []string{"GOCACHE=$H/.cache/go-build"},
			want: []string{tmp, cache, "$H/.cache/go-build GOCACHE", pkg},
		},
		{
			rule: "go env -w counts where the variable is not set",
			tree: []string{"$O/gc/", "$O/gm/", "$H/.config/go/env=# comment\nGOCACHE=$O/gc\nGOMODCACHE=$O/wrong\nGOMODCACHE=$O/gm\n"},
			want: []string{tmp, cache, "$O/gc GOCACHE", "$O/gm GOMODCACHE create"},
		},
		{
			rule: "GOENV names another file, and the environment wins",
			tree: []string{"$O/gc/", "$O/env=GOCACHE=$O/gc\nGOPATH=$O/file\n"},
			env:  []string{"GOENV=$O/env", "GOPATH=$O/env-wins"},
			want: []string{tmp, cache, "$O/gc GOCACHE", "$O/env-wins/pkg GOPATH create"},
		},
		{
			rule: "GOENV=off drops go env -w",
			tree: []string{"$O/gc/", "$H/.config/go/env=GOCACHE=$O/gc\n"},
			env:  []string{"GOENV=off"},
			want: []string{tmp, cache, pkg},
		},
		{
			rule: "home, what holds it, and the root are refused",
			tree: []string{"$O/link -> $H"},
			env:  []string{"TMPDIR=$H/", "XDG_CACHE_HOME=$O/link", "GOCACHE=/", "GOMODCACHE=$O/.."},
			want: []string{tmp, cache, pkg},
			warn: []string{"TMPDIR: ~ is the home directory", "XDG_CACHE_HOME: ~ is the home directory", "GOCACHE: / is the root directory"},
		},
		{
			rule: "a protected path, what lies in it, and what holds it are refused",
			tree: []string{"$H/.ssh/x/", "$H/.config/", "$H/.local/", "$H/.aws -> $O/aws", "$O/aws/"},
			env:  []string{"TMPDIR=$H/.ssh", "XDG_CACHE_HOME=$H/.ssh/x", "GOCACHE=$H/.config", "GOMODCACHE=$O/aws"},
			want: []string{tmp, cache},
			warn: []string{
				"TMPDIR: ~/.ssh is protected", "XDG_CACHE_HOME: ~/.ssh/x lies in ~/.ssh, which is protected", "GOCACHE: ~/.config holds ~/.config/fish, which is protected",
				"GOMODCACHE: $O/aws is protected",
			},
		},
		{
			rule: "a cache that links into a protected path is refused",
			tree: []string{"$H/.ssh/", "$H/.cache -> $H/.ssh"},
			want: []string{tmp, pkg},
			warn: []string{"~/.cache: ~/.ssh is protected"},
		},
		{
			rule: "system directories are refused",
			env:  []string{"TMPDIR=/etc", "XDG_CACHE_HOME=/usr", "GOCACHE=/var", "GOMODCACHE=/dev"},
			want: []string{tmp, cache},
			warn: []string{"TMPDIR: /etc is protected", "XDG_CACHE_HOME: /usr holds ", "GOCACHE: /var holds ", "GOMODCACHE: /dev holds "},
		},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			w := newWorld(t, tt.tree...)
			s := w.system(tt.env...)
			if tt.os != "" {
				s.OS = tt.os
			}
			dirs, warnings := WritableDirs(s, w.home)
			if diff := cmp.Diff(tt.want, w.lines(dirs)); diff != "" {
				t.Errorf("directories (-want +got):\n%s", diff)
			}
			if len(warnings) != len(tt.warn) {
				t.Fatalf("warnings = %q, want %q", warnings, tt.warn)
			}
			for i, want := range tt.warn {
				if !strings.Contains(warnings[i], w.expand.Replace(want)) {
					t.Errorf("warning %d = %q, want it to hold %q", i, warnings[i], want)
				}
			}
		})
	}
}

func TestWritableDirsCreatesNothing(t *testing.T) {
	w := newWorld(t)
	WritableDirs(w.system(), w.home)
	if entries, err := os.ReadDir(w.home); err != nil || len(entries) != 0 {
		t.Errorf("home holds %v, %v; want nothing", entries, err)
	}
}

func TestWritableDirsWithoutHome(t *testing.T) {
	w := newWorld(t, "$O/gc/")
	dirs, warnings := WritableDirs(&system.System{OS: "linux", Env: []string{"GOCACHE=" + w.out + "/gc"}}, "")
	want := []string{"/tmp /tmp temp", "$O/gc GOCACHE"}
	if diff := cmp.Diff(want, strings.Split(strings.ReplaceAll(strings.Join(w.lines(dirs), "\n"), "$H", ""), "\n")); diff != "" || len(warnings) > 0 {
		t.Errorf("directories (-want +got):\n%s\nwarnings %q", diff, warnings)
	}
}

func TestLinks(t *testing.T) {
	for _, tt := range []struct {
		rule string
		tree []string
		env  []string
		want []string
	}{
		{rule: "no link, nothing", tree: []string{"$H/.cache/"}},
		{rule: "a cache that is a link", tree: []string{"$H/.cache -> $O"}, want: []string{"$H/.cache -> $O"}},
		{rule: "a link on the way, once", tree: []string{"$O/go/pkg/mod/", "$H/go -> $O/go"}, env: []string{"GOMODCACHE=$H/go/pkg/mod", "GOPATH=$H/go"}, want: []string{"$H/go -> $O/go"}},
		{rule: "a link that dangles, where the directory would be created", tree: []string{"$H/.cache -> $O/later"}, want: []string{"$H/.cache -> $O/later"}},
		{rule: "not one outside home", tree: []string{"$O/real/", "$O/link -> $O/real"}, env: []string{"GOCACHE=$O/link"}},
		{rule: "not a temporary directory", tree: []string{"$H/t -> $O"}, env: []string{"TMPDIR=$H/t"}},
		{rule: "not a cache that does not exist", tree: []string{"$H/.npm -> $O/later"}},
		{rule: "home spelled through a link", tree: []string{"$O/me -> $H", "$O/c/", "$H/c -> $O/c"}, env: []string{"HOME=$O/me", "GOCACHE=$O/me/c"}, want: []string{"$H/c -> $O/c"}},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			w := newWorld(t, tt.tree...)
			var got []string
			for _, l := range Links(w.system(tt.env...), w.home) {
				got = append(got, fmt.Sprintf("%s -> %s", l.Name, l.Target))
			}
			var want []string
			for _, l := range tt.want {
				want = append(want, w.expand.Replace(l))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
		})
	}
}
