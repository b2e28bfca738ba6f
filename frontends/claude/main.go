// Harness-frontend-claude is the plugin of the frontend claude.
package main

import "github.com/research-harness/harness/sdk"

func main() { sdk.Serve(frontend{}) }
