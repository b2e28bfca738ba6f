package main

import (
	"context"
	"fmt"
	"os"

	"github.com/research-harness/harness/host/internal/launch"
	"github.com/research-harness/harness/host/internal/problem"
	"github.com/research-harness/harness/host/internal/system"
	"github.com/research-harness/harness/host/internal/warden"
)

func main() {
	s := system.Host()
	if os.Args[1] == "warden" {
		os.Exit(warden.Main(os.Args[2:]))
	}
	start, err := launch.Prepare(context.Background(), s, os.Args[2:])
	if err != nil {
		fmt.Fprintf(s.Stderr, "agentbox: %s\n", problem.OneLine(err.Error()))
		os.Exit(2)
	}
	if start.Warning != "" {
		fmt.Fprintf(s.Stderr, "agentbox: %s\n", problem.OneLine(start.Warning))
	}
	if os.Getenv("NOWARDEN") == "" {
		warden.Start(s)
	}
	fmt.Fprintln(s.Stderr, start.Exec())
	os.Exit(2)
}
