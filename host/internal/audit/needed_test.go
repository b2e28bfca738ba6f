package audit

import (
	"testing"

	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/srt"
)

// A policy of the user's own that forgets what srt starts inside the sandbox
// is named before a session fails on it.
func TestNeeded(t *testing.T) {
	value := func(p string) origin.Value { return origin.Value{Text: p} }
	p := &srt.Policy{Frontend: "x", DenyRead: []origin.Value{value("/home/me")}, AllowRead: []origin.Value{value("/home/me/.local/share/a")}}
	in := Input{OS: "linux", Home: "/home/me", Needed: []Guarded{
		{"/home/me/.local/share/a/vendor", "seen"}, {"/home/me/.local/share/b/vendor", "what srt starts inside the sandbox"},
	}}
	var got []Finding
	for _, f := range Check(p, in) {
		if f.ID == "hidden-runtime" {
			got = append(got, f)
		}
	}
	if len(got) != 1 || got[0].Subject != "~/.local/share/b/vendor" || got[0].Severity != Warning ||
		got[0].Fix != `add "~/.local/share/b/vendor" to [read] allow of policy.toml` {
		t.Errorf("%+v", got)
	}
}
