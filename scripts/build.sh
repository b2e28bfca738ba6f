#!/bin/sh
# Builds the harness and its bundled frontends into a directory, build/ by
# default. GOOS and GOARCH cross-compile as usual.
#
# The frontends come first: the host proper is linked with their SHA-256 digests
# and trusts exactly those bytes. Nothing that differs between two machines gets
# into a binary, so the same commit and Go version give the same digests.
set -eu

cd "$(dirname "$0")/.."
out=${1:-build}
case $out in /*) ;; *) out=$PWD/$out ;; esac

# Each module is built as it is released: alone, without the workspace.
export CGO_ENABLED=0 GOWORK=off
go_build() { # MODULE PACKAGE OUTPUT LDFLAGS
	go build -C "$1" -trimpath -buildvcs=false -ldflags "-s -w $4" -o "$3" "$2"
}

sha256() {
	if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

frontends=$out/libexec/research-harness/frontends
mkdir -p "$out/bin" "$frontends"

# A host of an earlier build would not trust the frontends of this one.
trap '[ $? = 0 ] || rm -f "$out/bin/harness" "$out/libexec/research-harness/harness-host"' EXIT

bundled=
for dir in frontends/*/; do
	name=$(basename "$dir")
	go_build "$dir" . "$frontends/harness-frontend-$name" ""
	bundled="$bundled $name=$(sha256 "$frontends/harness-frontend-$name")"
done

# A source archive has no commit to tell; the host then says so.
commit=$(git rev-parse HEAD 2>/dev/null || true)
if [ -n "$commit" ] && [ -n "$(git status --porcelain 2>/dev/null)" ]; then commit=$commit-dirty; fi
version=$(git describe --tags --exact-match --match 'v*' 2>/dev/null || echo v0.0.0-dev)

pkg=github.com/research-harness/harness/host/internal/version
go_build host ./cmd/harness "$out/bin/harness" ""
go_build host ./cmd/harness-host "$out/libexec/research-harness/harness-host" \
	"-X $pkg.version=${version#v} -X $pkg.commit=$commit -X '$pkg.bundled=${bundled# }'"

cp host/defaults/sandbox/agentbox "$out/bin/agentbox"
chmod 755 "$out/bin/agentbox"
