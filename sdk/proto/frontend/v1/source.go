// Package frontendv1 is the protocol between the host and a frontend plugin.
package frontendv1

import _ "embed"

// Source is frontend.proto, for plugins in other languages.
//
//go:embed frontend.proto
var Source []byte
