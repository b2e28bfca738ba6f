#!/bin/sh
# Checks everything that is written by hand. GOLANGCI_LINT and BUF name the
# tools.
set -eu

cd "$(dirname "$0")/.."
modules=$(go list -m -f '{{.Dir}}' | sed "s|^$PWD/||")

echo "gofmt"
unformatted=$(git ls-files -co --exclude-standard '*.go' | while read -r f; do [ ! -f "$f" ] || echo "$f"; done | xargs gofmt -l)
if [ -n "$unformatted" ]; then
	printf 'not formatted:\n%s\n' "$unformatted" >&2
	exit 1
fi

# Each module must stand alone, as its users get it, and on each system.
echo "go vet, each module alone"
for module in $modules; do
	(cd "$module" && GOWORK=off go vet ./...)
done
echo "go build for macOS"
for module in sdk frontends/* host; do
	(cd "$module" && GOWORK=off GOOS=darwin GOARCH=arm64 go build -o /dev/null ./...)
done

echo "golangci-lint"
packages=
for module in $modules; do packages="$packages ./$module/..."; done
# shellcheck disable=SC2086 # a list of words
"$GOLANGCI_LINT" run --allow-parallel-runners $packages

echo "links between documents"
dead=$(git ls-files '*.md' | while read -r f; do
	grep -o '](\([^):#]*\))' "$f" | sed 's/^](//; s/)$//' | while read -r to; do
		[ -e "$(dirname "$f")/$to" ] || echo "$f: $to does not exist"
	done
done)
if [ -n "$dead" ]; then
	echo "$dead" >&2
	exit 1
fi

echo "shellcheck"
shellcheck .ci/run scripts/*.sh host/defaults/sandbox/agentbox

echo "buf lint"
"$BUF" lint sdk/proto
