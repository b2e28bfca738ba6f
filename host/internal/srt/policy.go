// Package srt renders the settings files of srt, the sandbox runtime.
package srt

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/research-harness/harness/host/internal/origin"
	"github.com/research-harness/harness/host/internal/problem"
)

// Policy is one frontend's srt settings, each entry with where it came from.
type Policy struct {
	Frontend string

	AllowedDomains    []origin.Value
	DeniedDomains     []origin.Value
	AllowLocalBinding bool

	AllowWrite []origin.Value
	DenyWrite  []origin.Value
	DenyRead   []origin.Value
	AllowRead  []origin.Value

	// AllowPty is set on macOS alone, and stands in the file there alone.
	AllowPty bool
}

// Settings is the file that srt reads. Encode gives its exact bytes.
type Settings struct {
	Network    Network    `json:"network"`
	Filesystem Filesystem `json:"filesystem"`
	AllowPty   bool       `json:"allowPty,omitempty"`
}

// Network is the network part of [Settings].
type Network struct {
	AllowedDomains    []string `json:"allowedDomains"`
	DeniedDomains     []string `json:"deniedDomains"`
	AllowLocalBinding bool     `json:"allowLocalBinding"`
}

// Filesystem is the file system part of [Settings]. All paths are absolute.
type Filesystem struct {
	AllowWrite []string `json:"allowWrite"`
	DenyWrite  []string `json:"denyWrite"`
	DenyRead   []string `json:"denyRead"`
	AllowRead  []string `json:"allowRead"`
}

// Settings drops the origins.
func (p *Policy) Settings() Settings {
	return Settings{
		Network: Network{
			AllowedDomains:    origin.Texts(p.AllowedDomains),
			DeniedDomains:     origin.Texts(p.DeniedDomains),
			AllowLocalBinding: p.AllowLocalBinding,
		},
		Filesystem: Filesystem{
			AllowWrite: origin.Texts(p.AllowWrite),
			DenyWrite:  origin.Texts(p.DenyWrite),
			DenyRead:   origin.Texts(p.DenyRead),
			AllowRead:  origin.Texts(p.AllowRead),
		},
		AllowPty: p.AllowPty,
	}
}

// Encode returns the bytes that install writes: JSON with an indent of two
// spaces and a final newline, nothing escaped for HTML, empty lists as [].
func (s Settings) Encode() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		panic(fmt.Sprintf("srt settings of strings and booleans do not encode: %v", err))
	}
	return b.Bytes()
}

// Decode reads a settings file. Unknown keys are ignored, as srt ignores them.
func Decode(data []byte) (Settings, error) {
	var s Settings
	err := json.Unmarshal(data, &s)
	return s, problem.JSON(err)
}

// Policy gives every entry of s the origin source and its key.
func (s Settings) Policy(source string) *Policy {
	values := func(key string, texts []string) []origin.Value {
		out := make([]origin.Value, len(texts))
		for i, t := range texts {
			out[i] = origin.Value{Text: t, Origin: origin.Origin{Source: source, Element: fmt.Sprintf("%s[%d]", key, i)}}
		}
		return out
	}
	return &Policy{
		AllowedDomains:    values("network.allowedDomains", s.Network.AllowedDomains),
		DeniedDomains:     values("network.deniedDomains", s.Network.DeniedDomains),
		AllowLocalBinding: s.Network.AllowLocalBinding,
		AllowWrite:        values("filesystem.allowWrite", s.Filesystem.AllowWrite),
		DenyWrite:         values("filesystem.denyWrite", s.Filesystem.DenyWrite),
		DenyRead:          values("filesystem.denyRead", s.Filesystem.DenyRead),
		AllowRead:         values("filesystem.allowRead", s.Filesystem.AllowRead),
		AllowPty:          s.AllowPty,
	}
}
