package template

import (
	"slices"
	"strings"

	"github.com/research-harness/harness/host/internal/origin"
)

// The placeholders that every template may use, each a list.
const (
	AllowedDomains  = "allowed_domains"
	DeniedDomains   = "denied_domains"
	Workspaces      = "workspaces"
	ToolchainCaches = "toolchain_caches"
)

// IsBuiltin reports whether key is one of the placeholders that every
// template may use.
func IsBuiltin(key string) bool {
	return slices.Contains([]string{AllowedDomains, DeniedDomains, Workspaces, ToolchainCaches}, key)
}

// IsKey reports whether key can be a placeholder: lower-case letters, digits
// and underscores.
func IsKey(key string) bool {
	return key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// Value is what a placeholder stands for: a string, or a list of strings.
type Value struct {
	IsList bool
	List   []origin.Value // exactly one where the value is a string
}

// List is a list value.
func List(vs ...origin.Value) Value { return Value{IsList: true, List: vs} }

// String is a string value.
func String(v origin.Value) Value { return Value{List: []origin.Value{v}} }

// part is a piece of a string: literal text, or the placeholder key.
type part struct{ literal, key string }

// parse splits a string at its placeholders. "{{" and "}}" are braces, and so
// is any other brace that does not belong to a placeholder.
func parse(s string) []part {
	var parts []part
	var text strings.Builder
	for s != "" {
		if key, rest, ok := cutPlaceholder(s); ok {
			if text.Len() > 0 {
				parts = append(parts, part{literal: text.String()})
				text.Reset()
			}
			parts = append(parts, part{key: key})
			s = rest
			continue
		}
		n := 1
		if strings.HasPrefix(s, "{{") || strings.HasPrefix(s, "}}") {
			n = 2
		}
		text.WriteByte(s[0])
		s = s[n:]
	}
	if text.Len() > 0 {
		parts = append(parts, part{literal: text.String()})
	}
	return parts
}

// cutPlaceholder cuts "{key}" off the start of s.
func cutPlaceholder(s string) (key, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, "{")
	if !ok {
		return "", "", false
	}
	key, rest, ok = strings.Cut(s, "}")
	return key, rest, ok && IsKey(key)
}
