#!/bin/sh
# Runs the tests of every module; arguments go to go test. With -short, those
# that need nothing but Go.
set -eu

cd "$(dirname "$0")/.."
build=$PWD/build

# A fresh home, so that no test can lean on the caller's. Go and npm keep the
# caches that they have, by their files and not by variables, which would tell
# the programs under test where to write.
home=$build/test-home
rm -rf "$home"
mkdir -p "$home/.config/go"
cat "$(go env GOENV)" >"$home/.config/go/env" 2>/dev/null || true
go env GOCACHE GOMODCACHE GOPATH | {
	read -r gocache && read -r gomodcache && read -r gopath
	printf 'GOCACHE=%s\nGOMODCACHE=%s\nGOPATH=%s\n' "$gocache" "$gomodcache" "$gopath"
} >>"$home/.config/go/env"
if command -v npm >/dev/null; then
	cat "$(npm config get userconfig)" >"$home/.npmrc" 2>/dev/null || true
	echo "cache=$(npm config get cache)" >>"$home/.npmrc"
fi
unset GOCACHE GOMODCACHE GOPATH XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME
export HOME="$home"

modules=$(go list -m -f '{{.Dir}}' | sed "s|^$PWD/||")
case " $* " in
*" -short "*) modules=$(echo "$modules" | grep -vx -e e2e -e bench) ;;
*)
	export HARNESS_TEST_BIN="$build"
	export HARNESS_TEST_SRT="$build/home/.local/bin/srt"
	export HARNESS_TEST_NPM="$build/npm"
	set -- -count=1 -timeout=20m "$@"
	;;
esac

status=0
for module in $modules; do
	echo "# $module"
	(cd "$module" && go test "$@" ./...) || status=1
done
exit $status
