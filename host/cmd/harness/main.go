// Harness writes the sandbox settings of CLI coding agents and starts them.
package main

import (
	"os"

	"github.com/research-harness/harness/host/internal/cli"
	"github.com/research-harness/harness/host/internal/system"
)

func main() { os.Exit(cli.Main(system.Host(), os.Args[1:])) }
