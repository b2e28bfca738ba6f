#!/bin/sh
# Sets up this machine for its user: builds the harness, installs srt and what
# it needs, and writes the policy of the frontends. Each step says what it does
# and can be run again.
set -eu

cd "$(dirname "$0")/.."
say() { printf '\n==> %s\n' "$*"; }
stop() { printf 'install: %s\nhint: %s\n' "$1" "$2" >&2; exit 2; }

say "1/5 Go"
if ! command -v go >/dev/null; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		stop "Go is not on PATH" "install Go 1.26 or newer, for example: sudo apt-get install golang-go"
	fi
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends golang-go
fi
go version
# From 1.21 on, Go gets the version that go.mod names by itself.
case $(go env GOVERSION) in
go1.[0-9] | go1.[0-9].* | go1.1[0-9]* | go1.20* | '')
	stop "this Go is too old" "install Go 1.26 or newer and put it first on PATH" ;;
esac

say "2/5 the harness and its frontends, into build/"
sh scripts/build.sh

say "3/5 srt, Node and the system's programs"
build/bin/harness setup --apply

say "4/5 the policy, and the programs into ~/.local"
build/bin/harness install --apply

say "5/5 what a session can do, tried from inside"
status=0
"$HOME/.local/bin/harness" verify || status=$?

echo
case :$PATH: in
*:"$HOME/.local/bin":*) ;;
*) echo "$HOME/.local/bin is not on your PATH. Put this line into your shell's start-up file:
    export PATH=\"\$HOME/.local/bin:\$PATH\"" ;;
esac
[ "$status" != 0 ] || echo "Ready. Type: mkdir -p ~/Research/x && cd ~/Research/x && git init && agentbox claude"
exit "$status"
