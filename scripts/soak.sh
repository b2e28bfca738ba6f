#!/bin/sh
# Runs every fuzz target for FUZZTIME, one minute by default.
set -eu

cd "$(dirname "$0")/.."
for module in $(go list -m -f '{{.Dir}}' | sed "s|^$PWD/||"); do
	for package in $(cd "$module" && go list ./...); do
		for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
			echo "$package $target"
			(cd "$module" && go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-1m}" "$package")
		done
	done
done
