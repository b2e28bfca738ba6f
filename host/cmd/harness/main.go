// Harness starts CLI coding agents in their sandbox, and is the front of the
// host that writes the sandbox's settings.
package main

import (
	"os"

	"github.com/research-harness/harness/host/internal/front"
	"github.com/research-harness/harness/host/internal/system"
)

func main() { os.Exit(front.Main(system.Host(), os.Args[1:])) }
