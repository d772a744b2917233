#!/bin/sh
# Succeeds when clang builds and runs programs with libFuzzer and the sanitizers; otherwise it says what is
# missing.
set -eu
exec </dev/null
command -v clang >/dev/null || {
    echo "clang is not installed" >&2
    exit 1
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/probe.c" <<'PROBE'
#include <stddef.h>
#include <stdint.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return data && size > 4096;
}
PROBE
clang -fsanitize=fuzzer,address,undefined -o "$scratch/probe" "$scratch/probe.c"
"$scratch/probe" -runs=1 >"$scratch/log" 2>&1 || {
    cat "$scratch/log" >&2
    exit 1
}
