package problem

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestOneLine(t *testing.T) {
	for name, tc := range map[string][2]string{
		"plain text stays":             {"höme/x y", "höme/x y"},
		"a line break is shown":        {"a\nb\r", `a\nb\r`},
		"an escape is shown":           {"\x1b[31m", `\x1b[31m`},
		"a mark that turns text round": {"a\u202eb", `a\u202eb`},
		"a byte that is no text":       {"a\x9b31m\xff", `a\x9b31m\xff`},
		"a replacement character":      {"a\ufffdb\n", `a` + "\ufffd" + `b\n`},
	} {
		if got := OneLine(tc[0]); got != tc[1] {
			t.Errorf("%s: %q, not %q", name, got, tc[1])
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"claude", "opencode", "omp", "antigravity", "agy"}
	for word, want := range map[string]string{
		"cluade": "claude", "claud": "claude", "open": "opencode", "anti": "antigravity", "opm": "omp", "ag": "agy",
		"cursor": "", "": "", "x": "", strings.Repeat("claude", 100): "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q: %q, not %q", word, got, want)
		}
	}
}

// TestJSON holds that no name of a Go type reaches a user.
func TestJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"List": "x"}`:               `List: is a JSON string where something else belongs`,
		`{"N": 1.5}`:                  `N: is a JSON number where something else belongs`,
		`[]`:                          `is a JSON array where something else belongs`,
		`{`:                           `is no JSON: unexpected end of JSON input`,
		`{"Map": {"a": [1]}, "N": 1}`: `Map: is a JSON array where something else belongs`,
	} {
		var v struct {
			List []string
			N    int
			Map  map[string]string
		}
		if err := JSON(json.Unmarshal([]byte(text), &v)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, not %s", text, err, want)
		}
	}
}
