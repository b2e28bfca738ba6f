package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/plugin"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/render"
	"github.com/research-harness/harness/host/internal/srt"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/sdk"
)

// home makes a home directory with some directories and links, "a -> b".
func home(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		link, target, ok := strings.Cut(name, " -> ")
		if !ok {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(dir, target), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// values are entries below home, from one source.
func values(home, source string, texts ...string) []origin.Value {
	out := make([]origin.Value, len(texts))
	for i, text := range texts {
		out[i] = origin.Value{Text: strings.Replace(text, "~", home, 1), Origin: origin.Origin{Source: source, Line: i + 1}}
	}
	return out
}

func TestCheck(t *testing.T) {
	type lists struct{ allowWrite, denyWrite, denyRead, allowRead, domains, denied []string }
	for _, tc := range []struct {
		name  string
		os    string // linux where empty
		home  []string
		lists lists
		want  []string // "severity id subject", of all findings
		says  string   // in the message of the first
		fix   string   // in its fix
	}{
		{
			name:  "a read entry above a write path makes it read-only on Linux",
			home:  []string{"go/pkg"},
			lists: lists{allowWrite: []string{"~/go/pkg"}, allowRead: []string{"~/go"}},
			want:  []string{"error read-above-write ~/go/pkg"},
			says:  `allowRead "~/go" (policy.toml:1) lies above allowWrite "~/go/pkg" (template:1)`,
			fix:   "name the paths below it",
		},
		{
			name:  "on macOS it does not",
			os:    "darwin",
			home:  []string{"go/pkg"},
			lists: lists{allowWrite: []string{"~/go/pkg"}, allowRead: []string{"~/go"}},
		},
		{
			name:  "nor where it lies below a write path itself",
			home:  []string{"go/pkg/mod"},
			lists: lists{allowWrite: []string{"~/go", "~/go/pkg/mod"}, allowRead: []string{"~/go/pkg"}},
		},
		{
			name:  "the same path in both lists is fine",
			home:  []string{"go"},
			lists: lists{allowWrite: []string{"~/go"}, allowRead: []string{"~/go"}},
		},
		{
			name:  "a read pattern that names what lies above a write path is found too",
			home:  []string{"go/pkg"},
			lists: lists{allowWrite: []string{"~/go/pkg"}, allowRead: []string{"~/g*"}},
			want:  []string{"error read-above-write ~/go/pkg"},
		},
		{
			name:  "a write deny at the state",
			home:  []string{".agent"},
			lists: lists{allowWrite: []string{"~/.agent"}, denyWrite: []string{"~/.agent"}},
			want:  []string{"error state-write-denied ~/.agent"},
			says:  `denyWrite "~/.agent" (template:1) covers ~/.agent, the state of agent`,
		},
		{
			name:  "a write deny above the state, spelled as a pattern at its end",
			home:  []string{".agent"},
			lists: lists{allowWrite: []string{"~/.agent"}, denyWrite: []string{"~/**"}},
			want:  []string{"error state-write-denied ~/.agent"},
		},
		{
			name:  "a write deny below the state is what plugins do",
			home:  []string{".agent/hooks"},
			lists: lists{allowWrite: []string{"~/.agent"}, denyWrite: []string{"~/.agent/hooks"}},
		},
		{
			name:  "a write pattern denies on macOS",
			os:    "darwin",
			home:  []string{".agent"},
			lists: lists{allowWrite: []string{"~/.agent"}, allowRead: []string{"~/.agent"}, denyWrite: []string{"~/.ag*"}},
			want:  []string{"error state-write-denied ~/.agent"},
		},
		{
			name:  "a read deny at the state",
			home:  []string{".agent"},
			lists: lists{allowWrite: []string{"~/.agent"}, denyRead: []string{"~/.agent"}},
			want:  []string{"error state-read-denied ~/.agent"},
		},
		{
			name:  "a write path above the settings",
			home:  []string{".config/research-harness/sandbox"},
			lists: lists{allowWrite: []string{"~/.config"}},
			want:  []string{"error governs-writable ~/.config/research-harness/sandbox"},
			says:  `allowWrite "~/.config" (template:1) would let a session write ~/.config/research-harness/sandbox, the settings`,
		},
		{
			name:  "also before the settings exist",
			lists: lists{allowWrite: []string{"~/.config"}},
			want:  []string{"error governs-writable ~/.config/research-harness/sandbox"},
		},
		{
			name:  "a write path inside what is guarded",
			home:  []string{".config/research-harness/sandbox/x"},
			lists: lists{allowWrite: []string{"~/.config/research-harness/sandbox/x"}},
			want:  []string{"error governs-writable ~/.config/research-harness/sandbox"},
		},
		{
			name:  "a write path that a link leads to from what is guarded",
			home:  []string{"Research/dotfiles", ".config/research-harness/sandbox -> Research/dotfiles"},
			lists: lists{allowWrite: []string{"~/Research"}},
			want:  []string{"error governs-writable ~/.config/research-harness/sandbox"},
		},
		{
			name:  "a link on the way that a session could replace",
			home:  []string{"Research", "elsewhere/research-harness/sandbox", ".config -> Research/link", "Research/link -> elsewhere"},
			lists: lists{allowWrite: []string{"~/Research"}},
			want:  []string{"error governs-writable ~/.config/research-harness/sandbox"},
		},
		{
			name:  "home itself as a write path is a finding",
			lists: lists{allowWrite: []string{"~"}},
			want:  []string{"error governs-writable ~/.config/research-harness/sandbox"},
		},
		{
			name:  "a path above home does not reach into it on Linux",
			lists: lists{allowWrite: []string{"/"}},
		},
		{
			name:  "on macOS it does",
			os:    "darwin",
			lists: lists{allowWrite: []string{"/"}},
			want:  []string{"error governs-writable ~/.config/research-harness/sandbox"},
		},
		{
			name:  "a write deny protects what is guarded",
			home:  []string{".config/research-harness/sandbox"},
			lists: lists{allowWrite: []string{"~/.config"}, denyWrite: []string{"~/.config/research-harness"}},
		},
		{
			name:  "patterns of the write lists do nothing on Linux",
			lists: lists{denyWrite: []string{"~/Research/*/keys"}},
			want:  []string{"warning inert-pattern ~/Research/*/keys"},
			fix:   "name the directories",
		},
		{
			name:  "but for names that srt denies by itself",
			lists: lists{denyWrite: []string{"~/Research/**/.git/hooks"}},
			want:  []string{"note inert-pattern ~/Research/**/.git/hooks"},
		},
		{
			name:  "a state that is a link is read-only on Linux",
			home:  []string{"dotfiles/agent", ".agent -> dotfiles/agent"},
			lists: lists{allowWrite: []string{"~/.agent"}},
			want:  []string{"warning state-link ~/.agent"},
			fix:   "rm ~/.agent && mv ~/dotfiles/agent ~/.agent",
		},
		{
			name:  "another write path that is a link",
			home:  []string{"big/cache", ".cache -> big/cache"},
			lists: lists{allowWrite: []string{"~/.cache"}},
			want:  []string{"warning write-link ~/.cache"},
			fix:   "name ~/big/cache instead",
		},
		{
			name:  "a read entry under which srt does not start",
			home:  []string{"bin", "pkg/tool", "bin/tool -> pkg/tool"},
			lists: lists{allowRead: []string{"~/bin", "~/bin/tool"}},
			want:  []string{"error no-start ~/bin/tool"},
		},
		{
			name:  "a domain that is denied too",
			lists: lists{domains: []string{"a.example.org", "*.b.example.org"}, denied: []string{"*.example.org"}},
			want:  []string{"warning domain-denied a.example.org", "warning domain-denied *.b.example.org"},
			says:  `is cancelled by deniedDomains "*.example.org" (network.toml:1)`,
		},
		{
			name:  "a domain that no request can spell",
			lists: lists{domains: []string{"127.1", "*.example.org", "example.org:8443", "[::1]"}},
			want:  []string{"warning domain-dead 127.1"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			home := home(t, tc.home...)
			if tc.os == "" {
				tc.os = "linux"
			}
			p := &srt.Policy{
				Frontend:       "agent",
				AllowWrite:     values(home, "template", tc.lists.allowWrite...),
				DenyWrite:      values(home, "template", tc.lists.denyWrite...),
				DenyRead:       values(home, "template", append([]string{"~"}, tc.lists.denyRead...)...),
				AllowRead:      values(home, "policy.toml", tc.lists.allowRead...),
				AllowedDomains: values(home, "network.toml", tc.lists.domains...),
				DeniedDomains:  values(home, "network.toml", tc.lists.denied...),
			}
			found := Check(p, Input{
				OS: tc.os, Home: home, State: []string{home + "/.agent"},
				Guarded: []Guarded{{home + "/.config/research-harness/sandbox", "the settings"}},
			})
			var got []string
			for _, f := range found {
				got = append(got, string(f.Severity)+" "+f.ID+" "+f.Subject)
				if f.Frontend != "agent" || f.Message == "" || f.Fix == "" || strings.Contains(f.Message, "\n") {
					t.Errorf("not whole: %+v", f)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Fatalf("found %q, want %q\n%+v", got, tc.want, found)
			}
			if len(found) > 0 && (!strings.Contains(found[0].Message, tc.says) || !strings.Contains(found[0].Fix, tc.fix)) {
				t.Errorf("message %q\nfix %q", found[0].Message, found[0].Fix)
			}
		})
	}
}

func TestErrNamesTheSourceAndTheFix(t *testing.T) {
	home := home(t, "go/pkg")
	p := &srt.Policy{
		AllowWrite: []origin.Value{{Text: home + "/go/pkg", Origin: origin.Origin{Source: "toolchain", Element: "GOPATH"}}},
		DenyRead:   values(home, "read limit", "~"),
		AllowRead:  []origin.Value{{Text: home + "/go", Origin: origin.Origin{Source: "sandbox/policy.toml", Line: 7, Element: "read.allow[2]"}}},
	}
	found := Check(p, Input{OS: "linux", Home: home})
	if len(found) != 1 {
		t.Fatalf("found %+v", found)
	}
	err := found[0].Err()
	want := `sandbox/policy.toml:7: read.allow[2]: "` + home + `/go" lies above allowWrite "~/go/pkg" (toolchain: GOPATH), which a session could then not write on linux`
	if err.Error() != want || problem.HintOf(err) == "" {
		t.Errorf("%v\nhint: %s", err, problem.HintOf(err))
	}
}

// TestEmbeddedPolicy finds nothing to refuse in what a user gets who changes
// nothing, on either system.
func TestEmbeddedPolicy(t *testing.T) {
	for _, goos := range []string{"linux", "darwin"} {
		t.Run(goos, func(t *testing.T) {
			home := home(t, "Research", ".cache", "go/pkg/mod", ".npm", ".cargo/registry", ".cargo/git", "Library/Caches")
			s := &system.System{
				OS: goos, Arch: "amd64", Env: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}, Dir: home,
				Stdin: strings.NewReader(""), Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Now: time.Now,
			}
			set, err := render.Of(s, home, render.Options{}, []plugin.Frontend{
				{
					Contribution: sdk.Contribution{Name: "claude", Command: "claude", State: []sdk.Path{{Path: "~/.claude", Kind: sdk.Dir}}},
					Plugin:       plugin.Found{Name: "claude", Bundled: true},
				},
				{
					Contribution: sdk.Contribution{Name: "other", Command: "other", State: []sdk.Path{{Path: "~/.config/other", Kind: sdk.Dir}}},
					Plugin:       plugin.Found{Name: "other", Bundled: true},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range set.Chosen {
				p, err := set.Policy(f.Name)
				if err != nil {
					t.Fatal(err)
				}
				for _, finding := range Check(p, For(s, set, f)) {
					if finding.Severity != Note {
						t.Errorf("%+v", finding)
					}
				}
			}
		})
	}
}
