package srt

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/paths"
)

const home = "/home/me"

func values(texts ...string) []origin.Value {
	out := make([]origin.Value, len(texts))
	for i, t := range texts {
		out[i] = origin.Value{Text: t, Origin: origin.Origin{Source: "test", Line: i + 1}}
	}
	return out
}

func fixture() Input {
	return Input{
		OS: "linux", Home: home,
		AllowWrite:  values("~/Research", "~/.cache", "/tmp/", "~/.omp/x", "~/.claude.json.d"),
		DenyWrite:   values("~/.claude.json", "~/Research/**/.git/hooks"),
		DenyRead:    values("~/.ssh", "~/.claude.json"),
		Credentials: values("~/.netrc", "~/.ssh"),
		ReadAllow:   values("~/.gitconfig", "~/.claude"),
		Frontends: []Frontend{
			{Name: "zed", State: values("~/.cache/zed")},
			{Name: "omp", State: values("~/.omp"), DenyWrite: values("~/.omp/agent/extensions")},
			{Name: "claude", State: values("~/.claude", "~/.claude.json"), Own: values("~/.claude.json")},
			{Name: "opencode", State: values("~/.cache/opencode", "~/.config/opencode")},
		},
	}
}

func TestRender(t *testing.T) {
	tests := map[string]struct {
		edit func(*Input)
		name string
		want Filesystem
	}{
		"own lifts equal denies of every list, another frontend's state is denied below an allowed path": {
			name: "claude",
			want: Filesystem{
				AllowWrite: []string{"/home/me/Research", "/home/me/.cache", "/tmp", "/home/me/.claude.json.d", "/home/me/.claude", "/home/me/.claude.json"},
				DenyWrite:  []string{"/home/me/Research/**/.git/hooks", "/home/me/.cache/opencode", "/home/me/.cache/zed"},
				DenyRead:   []string{"/home/me", "/home/me/.ssh", "/home/me/.netrc"},
				AllowRead:  []string{"/home/me/.gitconfig", "/home/me/.claude", "/home/me/.claude.json"},
			},
		},
		"an entry at or below another's state is left out, by whole components": {
			name: "opencode",
			want: Filesystem{
				AllowWrite: []string{"/home/me/Research", "/home/me/.cache", "/tmp", "/home/me/.claude.json.d", "/home/me/.cache/opencode", "/home/me/.config/opencode"},
				DenyWrite:  []string{"/home/me/.claude.json", "/home/me/Research/**/.git/hooks", "/home/me/.cache/zed"},
				DenyRead:   []string{"/home/me", "/home/me/.ssh", "/home/me/.claude.json", "/home/me/.netrc"},
				AllowRead:  []string{"/home/me/.gitconfig", "/home/me/.claude", "/home/me/.cache/opencode", "/home/me/.config/opencode"},
			},
		},
		"the temp directory follows the state": {
			edit: func(in *Input) { in.TempDir = values("/var/tmp/x")[0] },
			name: "omp",
			want: Filesystem{
				AllowWrite: []string{"/home/me/Research", "/home/me/.cache", "/tmp", "/home/me/.omp/x", "/home/me/.claude.json.d", "/home/me/.omp", "/var/tmp/x"},
				DenyWrite:  []string{"/home/me/.claude.json", "/home/me/Research/**/.git/hooks", "/home/me/.omp/agent/extensions", "/home/me/.cache/opencode", "/home/me/.cache/zed"},
				DenyRead:   []string{"/home/me", "/home/me/.ssh", "/home/me/.claude.json", "/home/me/.netrc"},
				AllowRead:  []string{"/home/me/.gitconfig", "/home/me/.claude", "/home/me/.omp"},
			},
		},
		"a temp directory below another's state is left out": {
			edit: func(in *Input) {
				in.TempDir = values("/home/me/.claude/tmp")[0]
				in.AllowWrite, in.DenyWrite, in.DenyRead, in.Credentials, in.ReadAllow = nil, nil, nil, nil, nil
			},
			name: "omp",
			want: Filesystem{
				AllowWrite: []string{"/home/me/.omp"},
				DenyWrite:  []string{"/home/me/.omp/agent/extensions"},
				DenyRead:   []string{"/home/me"},
				AllowRead:  []string{"/home/me/.omp"},
			},
		},
		"a trailing globstar counts as its directory and is printed": {
			edit: func(in *Input) {
				in.AllowWrite = values("~/.cache/**", "~/.cache", "~/.omp/**", "~/**")
				in.DenyWrite, in.DenyRead, in.Credentials, in.ReadAllow = nil, nil, nil, nil
			},
			name: "claude",
			want: Filesystem{
				AllowWrite: []string{"/home/me/.cache/**", "/home/me/**", "/home/me/.claude", "/home/me/.claude.json"},
				DenyWrite:  []string{"/home/me/.cache/opencode", "/home/me/.config/opencode", "/home/me/.omp", "/home/me/.cache/zed"},
				DenyRead:   []string{"/home/me"},
				AllowRead:  []string{"/home/me/.claude", "/home/me/.claude.json"},
			},
		},
		"on macOS a write path below home is read too, and a glob counts as above what it can match": {
			edit: func(in *Input) {
				in.OS = "darwin"
				in.AllowWrite = values("~/Research", "/tmp", "~/.c*/open*")
				in.DenyWrite, in.DenyRead, in.Credentials, in.ReadAllow = nil, nil, nil, nil
			},
			name: "omp",
			want: Filesystem{
				AllowWrite: []string{"/home/me/Research", "/tmp", "/home/me/.c*/open*", "/home/me/.omp"},
				DenyWrite:  []string{"/home/me/.omp/agent/extensions", "/home/me/.claude", "/home/me/.claude.json", "/home/me/.cache/opencode", "/home/me/.config/opencode"},
				DenyRead:   []string{"/home/me"},
				AllowRead:  []string{"/home/me/.omp", "/home/me/Research", "/home/me/.c*/open*"},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := fixture()
			if tt.edit != nil {
				tt.edit(&in)
			}
			p, err := Render(in, tt.name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, p.Settings().Filesystem); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRenderRefusesRelativePaths(t *testing.T) {
	for _, p := range []string{"Research", "./x", "../x", "**/.git/hooks", "~root/x", "", "$TMPDIR"} {
		in := fixture()
		in.DenyWrite = values("~/ok", p)
		_, err := Render(in, "claude")
		if want := fmt.Sprintf("test:2: %q is a relative path", p); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", p, err, want)
		}
	}
}

func TestEncode(t *testing.T) {
	const head = "{\n  \"network\": {\n    \"allowedDomains\": [\n      \"*.example.org\",\n      \"a.example.org\"\n    ],\n" +
		"    \"deniedDomains\": [],\n    \"allowLocalBinding\": false\n  },\n  \"filesystem\": {\n    \"allowWrite\": [\n"
	tests := map[string]struct {
		os, want string
		write    []origin.Value
	}{
		"nothing is escaped for HTML, and an empty list is []": {
			os: "linux", write: values("~/Größe & <x>"),
			want: head + "      \"/home/me/Größe & <x>\",\n      \"/home/me/.x\"\n    ],\n    \"denyWrite\": [],\n" +
				"    \"denyRead\": [\n      \"/home/me\"\n    ],\n    \"allowRead\": [\n      \"/home/me/.x\"\n    ]\n  }\n}\n",
		},
		"macOS alone has allowPty": {
			os: "darwin",
			want: head + "      \"/home/me/.x\"\n    ],\n    \"denyWrite\": [],\n" +
				"    \"denyRead\": [\n      \"/home/me\"\n    ],\n    \"allowRead\": [\n      \"/home/me/.x\"\n    ]\n  },\n  \"allowPty\": true\n}\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := Render(Input{
				OS: tt.os, Home: home, AllowWrite: tt.write,
				AllowedDomains: values("*.example.org", "a.example.org", "*.example.org"),
				Frontends:      []Frontend{{Name: "x", State: values("~/.x")}},
			}, "x")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(p.Settings().Encode())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// drawInput draws a policy over a small alphabet, so that paths nest often.
func drawInput(t *rapid.T) Input {
	segment := rapid.SampledFrom([]string{"a", "b", ".c", "a.b", "d e", "é"})
	path := rapid.Custom(func(t *rapid.T) string {
		p := rapid.SampledFrom([]string{"~", "", "/tmp"}).Draw(t, "root")
		p += "/" + strings.Join(rapid.SliceOfN(segment, 1, 3).Draw(t, "segments"), "/")
		return p + rapid.SampledFrom([]string{"", "", "", "/", "/**", "/*"}).Draw(t, "tail")
	})
	list := func(name string) []origin.Value { return values(rapid.SliceOfN(path, 0, 6).Draw(t, name)...) }
	in := Input{
		OS: rapid.SampledFrom([]string{"linux", "darwin"}).Draw(t, "os"), Home: home,
		AllowWrite: list("allowWrite"), DenyWrite: list("denyWrite"),
		DenyRead: list("denyRead"), Credentials: list("credentials"), ReadAllow: list("readAllow"),
	}
	if rapid.Bool().Draw(t, "temp") {
		in.TempDir = values("/tmp/" + segment.Draw(t, "tempdir"))[0]
	}
	// States that are equal or nested are refused before rendering.
	var taken []string
	for _, name := range []string{"claude", "opencode", "omp", "zz"} {
		f := Frontend{Name: name}
		for _, s := range rapid.SliceOfN(rapid.StringMatching(`~/(a|b|\.c)(/(a|b|a\.b)){0,2}`), 1, 2).Draw(t, "state") {
			p := paths.Expand(home, s)
			if !slices.ContainsFunc(taken, func(q string) bool { return paths.AtOrBelow(p, q) || paths.AtOrBelow(q, p) }) {
				taken = append(taken, p)
				f.State = append(f.State, values(s)...)
			}
		}
		in.Frontends = append(in.Frontends, f)
	}
	return in
}

func TestRenderProtectsEveryOtherState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		for _, f := range in.Frontends {
			p, err := Render(in, f.Name)
			if err != nil {
				t.Fatal(err)
			}
			fs := p.Settings().Filesystem
			for _, other := range in.Frontends {
				if other.Name == f.Name {
					continue
				}
				for _, s := range other.State {
					state := paths.Expand(home, s.Text)
					denied := slices.ContainsFunc(fs.DenyWrite, func(d string) bool { return paths.AtOrBelow(state, d) })
					for _, w := range fs.AllowWrite {
						if paths.AtOrBelow(w, state) {
							t.Errorf("%s may write %s in %s, the state of %s", f.Name, w, state, other.Name)
						}
						if paths.Below(state, w) && !denied {
							t.Errorf("%s may write %s above %s, the state of %s, without a deny", f.Name, w, state, other.Name)
						}
					}
				}
			}
		}
	})
}

func TestRenderKeepsOrderAndHoldsNothingTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		p, err := Render(in, "claude")
		if err != nil {
			t.Fatal(err)
		}
		again, err := Render(in, "claude")
		if err != nil || cmp.Diff(p, again) != "" {
			t.Fatalf("a second rendering differs: %v", err)
		}
		for name, list := range map[string][]origin.Value{
			"allowWrite": p.AllowWrite, "denyWrite": p.DenyWrite, "denyRead": p.DenyRead, "allowRead": p.AllowRead,
		} {
			seen := map[string]bool{}
			for _, v := range list {
				key := paths.TrimGlobstar(v.Text)
				if seen[key] {
					t.Errorf("%s holds %s twice", name, v.Text)
				}
				seen[key] = true
			}
		}
		var shared []int
		for _, v := range p.AllowWrite {
			if i := slices.IndexFunc(in.AllowWrite, func(w origin.Value) bool {
				return w.Origin == v.Origin && paths.Expand(home, w.Text) == v.Text
			}); i >= 0 {
				shared = append(shared, i)
			}
		}
		if !slices.IsSorted(shared) {
			t.Errorf("the template's order is lost: %v", shared)
		}
	})
}

// A policy that grows tenfold may take ten times as long, not a hundred.
func TestRenderIsLinear(t *testing.T) {
	measure := func(n int) time.Duration {
		in := fixture()
		in.AllowWrite = nil
		for i := range n {
			in.AllowWrite = append(in.AllowWrite, values(fmt.Sprintf("~/w/%d/x", i))...)
			in.DenyWrite = append(in.DenyWrite, values(fmt.Sprintf("~/w/%d/x/y", i))...)
		}
		for i := range n / 100 {
			in.Frontends = append(in.Frontends, Frontend{Name: fmt.Sprintf("f%d", i), State: values(fmt.Sprintf("~/.f/%d", i))})
		}
		best := time.Hour
		for range 3 {
			runtime.GC()
			start := time.Now()
			if _, err := Render(in, "claude"); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	small, large := measure(2_000), measure(40_000)
	if ratio := float64(large) / float64(small); ratio > 100 {
		t.Errorf("20 times the entries take %.0f times as long", ratio)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"network":{"allowedDomains":["a.b"]},"filesystem":{"allowWrite":["/tmp"]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Decode(s.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.Policy("x").Settings(), again.Policy("x").Settings()); diff != "" {
			t.Error(diff)
		}
	})
}
