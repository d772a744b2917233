#!/bin/sh
# Builds etch, installs what it is measured against, and runs all benchmarks of bench/. The status is 1 when a
# limit or goal is missed. FLINT is compared with where it can be installed.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."

scripts/setup.sh test
scripts/setup.sh bench || echo "FLINT is left out"
jobs=$(getconf _NPROCESSORS_ONLN)
cmake --preset release >&2
cmake --build --preset release --parallel "$jobs" >&2

status=0
for bench in symbolic query_cold compile lower_64 lower_405b emit_vs_write verify; do
    printf '\n== bench/%s.py\n' "$bench"
    "bench/$bench.py" || status=1
done
exit "$status"
