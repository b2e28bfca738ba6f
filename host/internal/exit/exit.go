// Package exit turns the end of a verb into a message and an exit status, in
// one place.
package exit

import (
	"errors"
	"fmt"

	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
)

// The statuses of every verb.
const (
	Change = 1 // a dry run found something to change, or a check a finding
	Error  = 2 // usage error, bad input, or a failure while applying
)

// Status is an error that ends a run with a status and no message of its own.
type Status int

func (e Status) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Of is the error that ends a run with a command's status, nil for 0.
func Of(status int) error {
	if status == 0 {
		return nil
	}
	return Status(status)
}

// Report prints err, if there is something to print, and returns the status.
func Report(s *system.System, err error) int {
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[Status](err); ok {
		return int(status)
	}
	fmt.Fprintf(s.Stderr, "harness: %s\n", problem.OneLine(err.Error()))
	if hint := problem.HintOf(err); hint != "" {
		fmt.Fprintf(s.Stderr, "hint: %s\n", hint)
	}
	return Error
}
