// Package problem is the one form in which the harness tells a user that
// something is wrong: the file, the key in it, the fault, and what to type.
package problem

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is a fault that the user can mend. Its text is one line,
// "FILE: KEY: reason", as much of it as applies.
type Error struct {
	File   string // the file at fault, or empty
	Key    string // the key, entry or path in it, or empty
	Reason string // what is wrong, lower case, no period
	Hint   string // what to type or change, or empty
	Err    error  // the cause, or nil; it is not printed twice
}

// New returns a fault of key in file. Either may be empty. The reason is
// formatted as by [fmt.Errorf], so %w records a cause.
func New(file, key, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{File: file, Key: key, Reason: err.Error(), Err: errors.Unwrap(err)}
}

// WithHint sets the line that tells the user what to type and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Error is the one line, without the program's name and the hint.
func (e *Error) Error() string {
	var parts []string
	for _, p := range []string{e.File, e.Key, e.Reason} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return OneLine(strings.Join(parts, ": "))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// HintOf returns the hint of the first [Error] in err's chain that has one.
func HintOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return OneLine(e.Hint)
		}
		err = e.Err
	}
	return ""
}

// OneLine makes control characters and bytes that are no text visible, so that
// a hostile name or value can neither break the line nor drive the terminal.
func OneLine(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case hidden(r):
			q := fmt.Sprintf("%q", r)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// hidden reports control characters and the marks that reorder or hide text.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}
