#!/bin/sh
# Gets what the tests need besides Go: Debian's packages, the real frontends
# and the real srt. What is there already is not fetched again. All but the
# system's packages goes below build/.
set -eu

cd "$(dirname "$0")/.."

# Each program that the tests start, and its Debian package.
missing=
while read -r program package; do
	command -v "$program" >/dev/null || missing="$missing $package"
done <<'END'
bwrap bubblewrap
socat socat
rg ripgrep
shellcheck shellcheck
tmux tmux
busybox busybox
dash dash
git git
node nodejs
npm npm
make make
curl curl
protoc protobuf-compiler
END
# Debian's own Python serves the example of a plugin in another language.
/usr/bin/python3 -c 'import grpc' 2>/dev/null || missing="$missing python3-grpcio"
# Debian's too are the toolchains that are tried in a session. On another system
# those tests are skipped.
if command -v apt-get >/dev/null; then
	[ -x /usr/bin/cargo ] || missing="$missing cargo"
	/usr/bin/python3 -m ensurepip --version >/dev/null 2>&1 || missing="$missing python3-venv"
fi
if [ -n "$missing" ]; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "test-setup: install these packages first:$missing" >&2
		exit 1
	fi
	echo "installing$missing"
	apt-get update -q
	# shellcheck disable=SC2086 # a list of words
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
fi

# The frontends, as the lock file pins them. Their install scripts only put the
# platform's program in the place of a stub; the tests start it where it is.
npm=build/npm
if ! cmp -s e2e/npm/package-lock.json "$npm/installed"; then
	echo "installing the real frontends into $npm (2 GB)"
	rm -rf "$npm"
	mkdir -p "$npm"
	cp e2e/npm/package.json e2e/npm/package-lock.json "$npm/"
	npm ci --prefix "$npm" --ignore-scripts --include=optional --no-audit --no-fund --loglevel=error
	cp e2e/npm/package-lock.json "$npm/installed"
fi

# srt, as a user gets it, in a home of its own. npm's cache is the caller's.
mkdir -p build/home
npm_config_cache=$(npm config get cache) HOME=$PWD/build/home build/bin/harness setup --apply
