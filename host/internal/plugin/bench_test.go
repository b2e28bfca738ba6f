package plugin_test

import (
	"testing"

	"github.com/research-harness/harness/host/internal/plugin/plugintest"
)

// BenchmarkLoad asks four bundled plugins, as every render does.
func BenchmarkLoad(b *testing.B) {
	h, dir := newHost(b)
	for _, name := range []string{"claude", "opencode", "omp", "antigravity"} {
		bundle(b, h, dir, name, plugintest.Stub{Answer: plugintest.Answer(name)})
	}
	for b.Loop() {
		if _, _, err := h.Load(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
