// Package origin records where a value of a policy came from.
package origin

import (
	"fmt"

	"github.com/research-harness/harness/host/internal/problem"
)

// Origin is the place that gave a value.
type Origin struct {
	// Source is the file as the user knows it, such as
	// "settings/settings.proposal.json" or a path, or a short name such as
	// "plugin claude", "TMPDIR" or "toolchain".
	Source string
	// Line is the line in Source from 1, or 0 where there is none.
	Line int
	// Element is the key in Source, such as "sandbox.filesystem.allowWrite[3]".
	Element string
}

// String is "source:line: element", as much of it as there is.
func (o Origin) String() string {
	s := o.Source
	if o.Line > 0 {
		s = fmt.Sprintf("%s:%d", s, o.Line)
	}
	if o.Element != "" {
		s += ": " + o.Element
	}
	return s
}

// Problem is a fault of what stands at o.
func (o Origin) Problem(format string, args ...any) *problem.Error {
	return problem.New(Origin{Source: o.Source, Line: o.Line}.String(), o.Element, format, args...)
}

// Value is a string with the place it came from.
type Value struct {
	Text   string
	Origin Origin
}

// Texts returns the values without their origins.
func Texts(vs []Value) []string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = v.Text
	}
	return out
}
