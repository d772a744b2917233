#!/bin/sh
# Builds etch, writes the traces of Llama-3-8B training on 64 GPUs into out/ and says what they hold.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."

scripts/setup.sh build
jobs=$(getconf _NPROCESSORS_ONLN)
cmake --preset release -DBUILD_TESTING=OFF >&2
cmake --build --preset release --parallel "$jobs" --target etch >&2

etch=build/release/etch
spec=models/llama.etch
run="--config llama3_8b --plan megatron_sp --set dp=8,tp=8,batch=16,micro=2,seq=8192"

# say COMMAND...: prints the command as a user would type it, then runs it.
say() {
    printf '\n$ %s\n' "$*"
    "$@"
}

# shellcheck disable=SC2086 # one word per option
{
    start=$(date +%s%N)
    say "$etch" lower "$spec" $run -o out
    end=$(date +%s%N)
    say "$etch" query "$spec" 'flops(step)' $run
    say "$etch" query "$spec" 'comm(step)' $run --by axis
}
milliseconds=$(((end - start) / 1000000))
printf '\n%s traces, %s bytes in out/, written in %d.%03d seconds\n' \
    "$(find out -name '*.et' | wc -l)" "$(cat out/* | wc -c)" \
    $((milliseconds / 1000)) $((milliseconds % 1000))
