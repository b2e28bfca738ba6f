module github.com/research-harness/harness/bench

go 1.26.0
