package render

import "github.com/research-harness/harness/host/internal/system"

// Shared is what all frontends share: the sources, the profile and the
// template. It starts no plugin, so it names no frontend.
func Shared(s *system.System, home string, o Options) (*Set, error) {
	set, _, err := read(s, home, o)
	return set, err
}
