package scope

import (
	"os"
	"strings"
	"testing"

	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/toolchain"
)

// The page for users names every directory that the program may list, and what
// the program prints.
func TestPermissionsPage(t *testing.T) {
	data, err := os.ReadFile("../../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	p := newPlace(t)
	var env []string
	for _, name := range []string{"TMPDIR", "XDG_CACHE_HOME", "GOCACHE", "GOMODCACHE", "GOPATH"} {
		dir := p.home + "/x/" + name
		p.mkdir(dir + "/pkg")
		env = append(env, name+"="+dir)
	}
	for _, dir := range []string{"/.npm", "/.cargo/registry", "/.cargo/git", "/Library/Caches"} {
		p.mkdir(p.home + dir)
	}
	for _, goos := range []string{"linux", "darwin"} {
		dirs, _ := toolchain.WritableDirs(&system.System{OS: goos, Env: append(env, "HOME="+p.home)}, p.home)
		for _, d := range dirs {
			if !strings.Contains(page, "`"+d.Source+"`") {
				t.Errorf("the page does not name %s", d.Source)
			}
		}
	}
	if notice := (&Scope{Workspace: "/home/ada/Research/demo"}).Notice(); !strings.Contains(page, notice) {
		t.Errorf("the page does not hold %q", notice)
	}
}
