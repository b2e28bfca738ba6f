// Harness-frontend-opencode is the plugin of the frontend opencode.
package main

import "github.com/research-harness/harness/sdk"

func main() { sdk.Serve(frontend{}) }
