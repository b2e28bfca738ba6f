package cli

import "github.com/research-harness/harness/host/internal/system"

func launchMain(s *system.System, args []string) int { return statusError }
