// Harness-frontend-antigravity is the plugin of the frontend antigravity.
package main

import "github.com/research-harness/harness/sdk"

func main() { sdk.Serve(frontend{}) }
