// Package defaults embeds the four sources that every policy is made from. A
// directory of the user's may replace any of them; package sources decides.
package defaults

import (
	"embed"
	"fmt"
)

// The names of the embedded sources, which are also their names in a
// directory that replaces them.
const (
	Template = "settings/settings.proposal.json"
	Network  = "settings/network.toml"
	Policy   = "sandbox/policy.toml"
	Agentbox = "sandbox/agentbox"
)

//go:embed settings/settings.proposal.json settings/network.toml sandbox/policy.toml sandbox/agentbox
var files embed.FS

// Read returns the bytes of an embedded source. It panics on any other name.
func Read(name string) []byte {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("no embedded source: %v", err))
	}
	return data
}
