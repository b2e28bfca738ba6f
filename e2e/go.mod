module github.com/research-harness/harness/e2e

go 1.26.0

require github.com/creack/pty v1.1.24 // indirect
