// Harness-host is the host proper. Users start it through harness, two
// directories above.
package main

import (
	"os"
	"path/filepath"

	"github.com/research-harness/harness/host/internal/cli"
	"github.com/research-harness/harness/host/internal/system"
)

func main() {
	s := system.Host()
	s.Exe = filepath.Join(filepath.Dir(s.Exe), "..", "..", "bin", "harness")
	os.Exit(cli.Main(s, os.Args[1:]))
}
