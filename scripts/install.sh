#!/bin/sh
# Builds etch and installs it: the program, its manual page, completion for shells, the library, the models.
#
#   scripts/install.sh [PREFIX]     into PREFIX, /usr/local without it
set -eu
exec </dev/null

prefix=${1:-/usr/local}
case $prefix in
-*)
    echo "usage: scripts/install.sh [PREFIX]" >&2
    exit 2
    ;;
/*) ;;
*) prefix=$PWD/$prefix ;;
esac
cd "$(dirname "$0")/.."

scripts/setup.sh build
jobs=$(getconf _NPROCESSORS_ONLN)
# A build folder of its own, so that another one keeps its prefix and its tests.
build=build/install
cmake --preset release -B "$build" -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX="$prefix" >&2
cmake --build "$build" --parallel "$jobs" --target etch >&2
cmake --install "$build" >&2
echo "etch is in $prefix/bin"
