#!/bin/sh
# Builds etch and runs the whole test suite. Arguments go to ctest: scripts/test.sh -L unit
set -eu
exec </dev/null
cd "$(dirname "$0")/.."

scripts/setup.sh test
jobs=$(getconf _NPROCESSORS_ONLN)
cmake --preset release
cmake --build --preset release --parallel "$jobs"
ctest --preset release --parallel "$jobs" "$@"
