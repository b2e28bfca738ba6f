package install

import (
	"bytes"
	"testing"

	"github.com/research-harness/harness/host/internal/system"
)

// TestTeller counts what is created in a new directory.
func TestTeller(t *testing.T) {
	var out bytes.Buffer
	tl := &teller{sys: &system.System{Stderr: &out}, home: "/h"}
	for _, c := range []change{
		{path: "/h/.a", dir: true, mode: 0o700},
		{path: "/h/.b", dir: true, mode: 0o700},
		{path: "/h/.a/x", dir: true, mode: 0o700},
		{path: "/h/.a/x/y", write: true, mode: 0o600},
		{path: "/h/.b/z", write: true, mode: 0o600},
		{path: "/h/.ab", write: true, mode: 0o600},
		{path: "/h/.m", write: true, quiet: true},
		{path: "/h/old", remove: true, existed: true},
		{path: "/h/f", write: true, existed: true},
	} {
		tl.note(c)
	}
	tl.tell()
	want := `harness: create directory ~/.a (0700) and 2 paths in it
harness: create directory ~/.b (0700) and 1 path in it
harness: create ~/.ab (0600)
harness: remove ~/old
harness: update ~/f
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
