package report

import (
	"slices"
	"strings"
	"testing"
)

func TestReader(t *testing.T) {
	const wrapped = "[SandboxDebug] Wrapped command\n"
	for _, tt := range []struct {
		rule, in, out string
		hosts         []string
		atOnce        bool // as the runtime writes its lines
	}{
		{"log is not passed on", wrapped + "[SandboxDebug] x\n", "", nil, false},
		{"all else is", "a\n" + wrapped + "b\n\nc", "a\nb\n\nc", nil, false},
		{"a message of several lines is one", "[SandboxDebug] {\n  \"allowedHosts\": []\n}\nError: x\n", "Error: x\n", nil, false},
		{"arguments of several lines are one", "[SandboxDebug] Original command: sh -c 'a\nb\n'\n[SandboxDebug] {\n}\nc\n", "c\n", nil, false},
		{"log after a line that the session has begun", "a [Sand[SandboxDebug] x\n\n", "a [Sand\n", nil, true},
		{"what only begins like log", "[Sandbox\n[SandboxD", "[Sandbox\n[SandboxD", nil, false},
		{"hosts", "[SandboxDebug] Connection blocked to a.example:443\n[SandboxDebug] HTTP request blocked to a.example:80\n" +
			"[SandboxDebug] Connection blocked to a.example:443\n[SandboxDebug] Connection blocked to ::1:22\n", "",
			[]string{"a.example:443", "a.example:80", "[::1]:22"}, false},
		{"what the session says is no log", "Connection blocked to a.example:443\n", "Connection blocked to a.example:443\n", nil, false},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			for _, size := range []int{1, 16, len(tt.in)} {
				if tt.atOnce {
					size = len(tt.in)
				}
				var out strings.Builder
				r := &reader{out: &out}
				for chunk := range slices.Chunk([]byte(tt.in), size) {
					if _, err := r.Write(chunk); err != nil {
						t.Fatal(err)
					}
				}
				r.close()
				if out.String() != tt.out || !slices.Equal(r.hosts, tt.hosts) {
					t.Errorf("passes %q on, want %q; hosts %q, want %q", out.String(), tt.out, r.hosts, tt.hosts)
				}
			}
		})
	}
}
