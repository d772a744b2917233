#!/usr/bin/env bash
# Fuzzes under clang: scripts/fuzz.sh [TARGET...], all targets unless some are named. It ends with status 1,
# and the names of the inputs, when something broke a target; with status 2 when there is no fuzzer.
#
# In the environment:
#   ETCH_FUZZ_SECONDS   for each target; 3600
#   ETCH_FUZZ_TIMEOUT   seconds that one input may take; 10
#   ETCH_FUZZ_FOUND     a folder that keeps what was found from one time to the next: inputs that reach
#                       something new, in TARGET, and those that break a target, in broken/TARGET;
#                       build/fuzz/found
#   ETCH_FUZZ_BUILD     a folder of targets that are built already, instead of the preset's
set -euo pipefail
exec </dev/null
cd "$(dirname "$0")/.."

jobs=$(getconf _NPROCESSORS_ONLN)
seconds=${ETCH_FUZZ_SECONDS:-3600}
limit=${ETCH_FUZZ_TIMEOUT:-10}
found=${ETCH_FUZZ_FOUND:-build/fuzz/found}
programs=${ETCH_FUZZ_BUILD:-build/fuzz/fuzz}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if ! scripts/fuzzer.sh >"$scratch/log" 2>&1; then
    cat "$scratch/log" >&2
    echo "scripts/fuzz.sh: NOTHING WAS FUZZED: clang, or its library of libFuzzer and the sanitizers," \
        "is missing" >&2
    echo "On Debian 12, as root: apt-get install clang libclang-rt-dev" >&2
    exit 2
fi

if [ -z "${ETCH_FUZZ_BUILD:-}" ]; then
    cmake --preset fuzz
    cmake --build --preset fuzz --parallel "$jobs"
fi
if [ $# -eq 0 ]; then
    for corpus in fuzz/corpus/*/; do
        set -- "$@" "$(basename "$corpus")"
    done
fi

# breaks TARGET INPUT: does it break the target, alone?
breaks() {
    ! "$programs/fuzz_$1" -timeout="$limit" -rss_limit_mb=2048 -artifact_prefix="$scratch/" "$2" \
        >"$scratch/log" 2>&1
}

# check TARGET: says which inputs that broke it once still do. The others were slow on a busy machine, or are
# repaired, and join what was found.
check() {
    local input status=0
    for input in "$found/broken/$1"/*; do
        if [ ! -e "$input" ]; then
            continue
        elif breaks "$1" "$input"; then
            tail -n 60 "$scratch/log"
            echo "scripts/fuzz.sh: target $1 is broken by $input"
            status=1
        else
            mv "$input" "$found/$1/"
        fi
    done
    return $status
}

# hunt TARGET: goes on behind inputs that break the target.
hunt() {
    FOUND=$found/$1 BROKEN=$found/broken/$1 fuzz/hunt.sh "$programs" "$1" -fork="$jobs" -ignore_crashes=1 \
        -ignore_timeouts=1 -ignore_ooms=1 -max_total_time="$seconds" -timeout="$limit" -rss_limit_mb=2048 \
        -report_slow_units=1000000 -print_funcs=0
}

failed=
for target in "$@"; do
    echo "==> $target"
    mkdir -p "$found/$target" "$found/broken/$target"
    status=0
    hunt "$target" || status=$?
    if [ $status -ne 0 ] && [ -z "$(ls "$found/broken/$target")" ]; then
        echo "scripts/fuzz.sh: the fuzzer of $target ended with status $status"
        failed="$failed $target"
    elif ! check "$target"; then
        failed="$failed $target"
    fi
done
if [ -n "$failed" ]; then
    echo "scripts/fuzz.sh: FAILED:$failed"
    exit 1
fi
echo "scripts/fuzz.sh: nothing breaks: $*"
