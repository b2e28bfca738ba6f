package front

import (
	"context"
	"fmt"

	"github.com/research-harness/harness/host/internal/exit"
	"github.com/research-harness/harness/host/internal/launch"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/warden"
)

// launchMain is "harness launch", which agentbox execs. Its messages begin
// "agentbox: " and are one line each. Where a session starts it does not
// return: the process becomes the sandbox runtime. Each of change is done to
// the start before that.
func launchMain(s *system.System, args []string, change ...func(*launch.Start)) int {
	if len(args) > 0 && (args[0] == "-h" || args[0] == "--help") {
		fmt.Fprint(s.Stdout, launch.Usage(s))
		return 0
	}
	say := func(v any) { fmt.Fprintf(s.Stderr, "agentbox: %s\n", problem.OneLine(fmt.Sprint(v))) }
	start, err := launch.Prepare(context.Background(), s, args)
	if err != nil {
		say(err)
		return exit.Error
	}
	if start.Warning != "" {
		say(start.Warning)
	}
	for _, c := range change {
		c(start)
	}
	warden.Start(s)
	say(start.Exec())
	return exit.Error
}
