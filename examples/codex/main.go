// Harness-frontend-codex is the plugin of the frontend codex.
package main

import "github.com/research-harness/harness/sdk"

func main() { sdk.Serve(sdk.Func(describe)) }
