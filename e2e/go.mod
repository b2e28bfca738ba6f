module github.com/research-harness/harness/e2e

go 1.26.0
