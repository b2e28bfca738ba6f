package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newRepositories is a world whose repositories lie at paths below home.
func newRepositories(t *testing.T, paths ...string) *world {
	t.Helper()
	w := newWorld(t)
	w.install()
	w.write(w.in(".gitconfig"), "[user]\n\tname = José\n\temail = jose@example.org\n")
	for _, path := range paths {
		w.git("init", "-q", w.in(path))
		w.git("-C", w.in(path), "commit", "-q", "--allow-empty", "-m", "one")
	}
	return w
}

// git runs outside of any session, as the user.
func (w *world) git(args ...string) string {
	w.t.Helper()
	r := w.run("git", args...)
	if r.code != 0 {
		w.t.Fatalf("git %q: status %d: %s", args, r.code, r.stderr)
	}
	return r.stdout
}

// TestGit works in a repository. What git runs or reads at its next start
// stays as it is; the rest works.
func TestGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal(err)
	}
	w := newRepositories(t, "Research/repo")
	w.work = w.in("Research", "repo")
	config := w.read(filepath.Join(w.work, ".git", "config"))
	const locked = "could not write config file .git/config: Device or resource busy"
	for _, tt := range []struct {
		rule, script string
		status       int
		says         string
	}{
		{"a commit", "echo a > a && git add a && git commit -qm two", 0, ""},
		{"a branch", "git checkout -qb topic && git commit -q --allow-empty -m three", 0, ""},
		{"a tag, a stash, a rebase", "git tag v1 && echo b >> a && git stash -q && git stash pop -q && git checkout -q -- a && git rebase -q HEAD~1", 0, ""},
		{"a worktree and a commit there", "git worktree add -q ../tree && cd ../tree && git commit -q --allow-empty -m four", 0, ""},
		{"a clone", "git clone -q . ../clone", 0, ""},
		{"a setting is refused", "git config core.pager evil", 4, locked},
		{"and a remote", "git remote add origin https://example.org/x", 128, locked},
		{"an upstream is not kept, though git goes on", "git branch -u v1~1 2>&1; git branch -u topic topic2 2>&1; git branch --track other topic", 0, locked},
		{"a hook is refused", "echo evil > .git/hooks/post-commit", 2, "Read-only file system"},
		{"nor can the hooks be moved", "mv .git/hooks .git/old", 1, "Device or resource busy"},
		{"nor what holds them", "mv .git old", 1, "Device or resource busy"},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			r := w.shell("claude", tt.script)
			if r.code != tt.status || !strings.Contains(r.stderr, tt.says) {
				t.Errorf("status %d, want %d and %q:\n%s%s", r.code, tt.status, tt.says, r.stdout, r.stderr)
			}
		})
	}
	if log := w.git("log", "--all", "--format=%s"); !strings.Contains(log, "four") || !strings.Contains(log, "two") {
		t.Errorf("the history holds %q", log)
	}
	if got := w.read(filepath.Join(w.work, ".git", "config")); got != config {
		t.Errorf(".git/config is %q, was %q", got, config)
	}
}

// TestHooks plants a hook. The sandbox runtime guards the repositories that are
// in the current directory and directly below it when the session starts, and
// no others, which is what SECURITY.md warns of.
func TestHooks(t *testing.T) {
	w := newRepositories(t, "Research/repo", "Research/repo/1", "Research/repo/1/2", "Research/beside")
	w.git("-C", w.in("Research", "beside"), "worktree", "add", "-q", "../linked")
	for _, tt := range []struct {
		rule, start, repo string
		planted           bool
	}{
		{"in the current directory", "repo", ".", false},
		{"in a directory of it", "repo", "1", false},
		{"further below", "repo", "1/2", true},
		{"in a repository that the session makes", "repo", "new", true},
		{"in another project of the workspace", "repo", "../beside", true},
		{"from a directory within the repository", "repo/src", "..", true},
		{"in the repository that the current worktree belongs to", "linked", "../beside", true},
		{"from the workspace, in each of its projects", ".", "repo", false},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			w.work = w.in("Research", tt.start)
			w.must(os.MkdirAll(w.work, 0o755))
			hook := filepath.Join(w.work, tt.repo, ".git", "hooks", "pre-commit")
			r := w.shell("claude", "git init -q "+quote(tt.repo)+"; echo evil > "+quote(hook))
			if planted := w.read(hook) == "evil\n"; planted != tt.planted || (r.code == 0) != tt.planted {
				t.Errorf("planted: %v, want %v; status %d: %s", planted, tt.planted, r.code, r.stderr)
			}
			if tt.planted {
				w.must(os.Remove(hook))
			}
		})
	}
}
