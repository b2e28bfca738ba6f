package sdk

import "github.com/research-harness/harness/sdk/protected"

// ProtectedPaths are the paths that no frontend's state or own may be, hold or
// lie in, as in package protected.
func ProtectedPaths() []string { return protected.Paths() }
