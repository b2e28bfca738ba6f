package jsonc

import (
	"strings"
	"testing"
)

func TestNesting(t *testing.T) {
	deep := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	for rule, tt := range map[string]struct{ data, want string }{
		"as deep as can be":                  {`{"a":` + deep[1:len(deep)-1] + `}`, ""},
		"one level more":                     {"{\n\"a\":" + deep + `}`, "f:2: is nested more than 100 levels deep"},
		"more than a stack holds":            {`{"a":` + strings.Repeat("[", 8<<20), "f:1: is nested more than 100 levels deep"},
		"brackets in a string and an escape": {`{"a": "\"` + deep + deep + `"}`, ""},
		"brackets in comments":               {"{ // " + deep + deep + "\n/*" + deep + "\n" + deep + "*/ }", ""},
		"many beside each other":             {`{"a":[` + strings.Repeat("[],", 1000) + `]}`, ""},
		"a block comment that ends at once":  {"{/**/}", ""},
		"a block comment that seems to":      {"{ /*/ " + deep + deep + "*/ }", ""},
		"a string without an end":            {`{"a`, "f:1: is not JSON: "},
		"a comment without an end":           {"{} /* " + deep + deep, "f:1: is not JSON: "},
	} {
		t.Run(rule, func(t *testing.T) {
			_, err := Parse("f", []byte(tt.data))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
