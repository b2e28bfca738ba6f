package install

import (
	"fmt"

	"github.com/research-harness/harness/host/internal/paths"
	"github.com/research-harness/harness/host/internal/system"
)

// teller says on standard error what an install has done. What was created in a
// directory that is new itself is counted and not listed: it is a hundred paths
// for four frontends.
type teller struct {
	sys   *system.System
	home  string
	lines []told
}

// told is a change to tell of, with how many were made in the directory that it
// created.
type told struct {
	change
	within int
}

func (t *teller) note(c change) {
	if c.quiet {
		return
	}
	if !c.existed && !c.remove {
		for i, in := range t.lines {
			if in.dir && !in.remove && paths.Below(c.path, in.path) {
				t.lines[i].within++
				return
			}
		}
	}
	t.lines = append(t.lines, told{change: c})
}

// tell prints what was noted.
func (t *teller) tell() {
	for _, l := range t.lines {
		more := ""
		if l.within == 1 {
			more = " and 1 path in it"
		} else if l.within > 1 {
			more = fmt.Sprintf(" and %d paths in it", l.within)
		}
		tell(t.sys, t.home, l.change, more)
	}
}
