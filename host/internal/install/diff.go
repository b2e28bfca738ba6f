package install

import (
	"bytes"
	"fmt"
	"io"

	"github.com/aymanbagabas/go-udiff"

	"github.com/research-harness/harness/host/internal/problem"
)

// writeDiff prints the plan as one unified diff. A directory and what is removed
// whole stand as a line of their own. So does what a diff cannot show, a mode
// or bytes that are no text, above or in place of a hunk, in the words of git's
// extended headers.
func (p *plan) writeDiff(w io.Writer) {
	for _, c := range p.changes {
		if !c.quiet {
			c.path = p.on(c.path)
			c.writeDiff(w)
		}
	}
}

func (c change) writeDiff(w io.Writer) {
	oldName, newName := c.path, c.path
	switch {
	case c.dir, c.remove:
		fmt.Fprintln(w, problem.OneLine(c.String()))
		return
	case !c.existed:
		oldName = "/dev/null"
		fmt.Fprintf(w, "new file mode %04o\n", c.mode)
	case c.oldMode != c.mode:
		fmt.Fprintf(w, "old mode %04o\nnew mode %04o\n", c.oldMode, c.mode)
	}
	if binary(c.old) || binary(c.data) {
		fmt.Fprintf(w, "Binary files %s and %s differ\n", oldName, newName)
		return
	}
	diff := udiff.Unified(oldName, newName, string(c.old), string(c.data))
	if diff == "" { // an empty file, or a mode alone
		diff = fmt.Sprintf("--- %s\n+++ %s\n", oldName, newName)
	}
	fmt.Fprint(w, diff)
}

func binary(data []byte) bool { return bytes.IndexByte(data, 0) >= 0 }
