#!/bin/sh
# Runs the commands of the program, and its unit tests, under valgrind: scripts/valgrind.sh build/release
# No error and no leak is allowed, also where a command refuses its input.
set -eu
exec </dev/null
build=$(realpath "${1:-build/release}")
etch=$build/etch
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# check STATUS ARGUMENT...: the command must end with that status and nothing to complain about.
check() {
    wanted=$1
    shift
    status=0
    valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all \
        "$etch" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    if [ "$status" -ne "$wanted" ]; then
        cat "$scratch/out" "$scratch/err"
        echo "valgrind: etch $*: exit status $status, expected $wanted"
        exit 1
    fi
    echo "valgrind: etch $*: clean"
}

check 0 help
check 2 nonsense
check 3 check "$scratch/missing.etch"
printf 'dim A = \n}}} q[B] = z * \n' >"$scratch/broken.etch"
check 1 check "$scratch/broken.etch"
for spec in models/llama.etch models/gpt.etch; do
    check 0 check "$spec"
    check 0 query "$spec" 'params(model)'
done
check 0 query models/llama.etch 'comm(step)' --config llama3_8b --plan megatron_sp --by axis
check 1 query models/llama.etch 'params(model)' --config no_such_config
check 0 query models/gpt.etch 'matmul_flops(step)' --by term --diff seq --format latex
check 0 prove models/gpt.etch 'matmul_flops(step) >= 6*batch*seq*hidden*vocab'
check 1 prove models/llama.etch 'tp | vocab' --plan megatron --format json
check 5 prove models/llama.etch 'heads^3 + layers^3 != vocab^3'
check 0 lower models/llama.etch --config llama3_8b --plan megatron_sp \
    --set dp=2,tp=2,batch=4,micro=2,seq=64,layers=2 -j 2 -o "$scratch/traces"
check 1 lower models/llama.etch --config llama3_8b --plan megatron_sp \
    --set dp=2,tp=3,batch=4,micro=2,seq=64,layers=2 -o "$scratch/refused"

# One process for each test, or Check's own processes would hide leaks. Threads and random models are for the
# sanitizers: they would take minutes here.
export CK_FORK=no ETCH_SOURCE_DIR="$PWD"
for test in "$build"/tests/lang/test_lang_* "$build"/tests/graph/test_graph_kernels \
    "$build"/tests/graph/test_graph_costs \
    "$build"/tests/lower/test_lower_groups "$build"/tests/lower/test_lower_programs \
    "$build"/tests/lower/test_lower_binding \
    "$build"/tests/symbolic/test_symbolic_f* "$build"/tests/session/test_session_api; do
    case $test in
    *_mutation | *_damage | *.log) continue ;;
    esac
    echo "$test"
done >"$scratch/tests"
# shellcheck disable=SC2016 # the inner shell expands them
xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 1 sh -c '
    name=$(basename "$1")
    if ! valgrind --quiet --error-exitcode=99 --leak-check=full "$1" >"$0/$name" 2>&1; then
        cat "$0/$name"
        echo "valgrind: $name failed"
        exit 1
    fi
    echo "valgrind: $name: clean"' "$scratch" <"$scratch/tests"
