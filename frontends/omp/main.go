// Harness-frontend-omp is the plugin of the frontend omp.
package main

import "github.com/research-harness/harness/sdk"

func main() { sdk.Serve(frontend{}) }
