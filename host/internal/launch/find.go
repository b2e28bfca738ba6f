package launch

import "github.com/research-harness/harness/host/internal/system"

// Find returns the program that a start of command would run, or "".
func Find(s *system.System, command string) string { return lookPath(s, command) }

// Satisfies tells whether version meets constraint, such as ">= 1.0, < 3". An
// empty version counts as the newest.
func Satisfies(version, constraint string) (bool, error) { return satisfies(version, constraint) }
