package install

import (
	"bytes"
	"fmt"
	"io"

	"github.com/aymanbagabas/go-udiff"
)

// writeDiff prints the plan as one unified diff. What a diff cannot show, a
// directory, a mode, or bytes that are no text, stands as a line of its own
// above or in place of a hunk, in the words of git's extended headers.
func (p *plan) writeDiff(w io.Writer) {
	for _, c := range p.changes {
		if !c.quiet {
			c.writeDiff(w)
		}
	}
}

func (c change) writeDiff(w io.Writer) {
	oldName, newName := c.path, c.path
	switch {
	case c.dir:
		fmt.Fprintln(w, c)
		return
	case c.remove:
		newName = "/dev/null"
		fmt.Fprintf(w, "deleted file mode %04o\n", c.oldMode)
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
	if diff == "" { // an empty file that comes or goes, or a mode alone
		diff = fmt.Sprintf("--- %s\n+++ %s\n", oldName, newName)
	}
	fmt.Fprint(w, diff)
}

func binary(data []byte) bool { return bytes.IndexByte(data, 0) >= 0 }
