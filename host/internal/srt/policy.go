// Package srt renders the settings files of srt, the sandbox runtime.
package srt

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/research-harness/harness/host/internal/origin"
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
