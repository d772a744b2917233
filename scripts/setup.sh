#!/bin/sh
# Finds the Debian packages that etch needs and installs those that are missing.
#
#   scripts/setup.sh build      what the program needs
#   scripts/setup.sh test       what the tests need as well
#   scripts/setup.sh mpi        what the program needs with -DETCH_MPI=ON
#   scripts/setup.sh bench      what etch is measured against
#   scripts/setup.sh s390x      what scripts/platform.sh needs for a big-endian machine
#   scripts/setup.sh musl       what it needs for another C library
#   scripts/setup.sh check      what the checks before a release need as well (sanitizers, valgrind, clang
#                               with libFuzzer)
#
# As root, or where sudo needs no password or can ask for it, apt-get installs them. Otherwise their names are
# printed and the exit status is 1.
set -eu
exec </dev/null

wanted=${1:-test}
case $wanted in
build | mpi | test | check | bench | s390x | musl) ;;
*)
    echo "usage: scripts/setup.sh [build|mpi|test|check|bench|s390x|musl]" >&2
    exit 2
    ;;
esac

# need PACKAGE COMMAND...: the package is missing when the command fails.
need() {
    package=$1
    shift
    if ! "$@" >/dev/null 2>&1; then
        missing="$missing $package"
    fi
}

find_missing() {
    missing=
    need cmake command -v cmake
    need ninja-build command -v ninja
    need gcc command -v cc
    need libc6-dev test -e /usr/include/stdio.h
    need pkg-config command -v pkg-config
    need libgmp-dev pkg-config --exists gmp
    need libjansson-dev pkg-config --exists jansson
    need libmd-dev pkg-config --exists libmd
    need libmpfr-dev pkg-config --exists mpfr
    need libzstd-dev pkg-config --exists libzstd
    if [ "$wanted" = mpi ] || [ "$wanted" = check ]; then
        need libopenmpi-dev pkg-config --exists ompi-c
        need openmpi-bin command -v mpirun
    fi
    if [ "$wanted" != build ] && [ "$wanted" != mpi ] && [ "$wanted" != musl ]; then
        need bison command -v bison
        need groff-base command -v groff
        need check pkg-config --exists check
        need libprotobuf-c-dev pkg-config --exists libprotobuf-c
        need protobuf-c-compiler command -v protoc-c
        need python3 test -x /usr/bin/python3
        need python3-protobuf /usr/bin/python3 -c 'import google.protobuf'
        need python3-sympy /usr/bin/python3 -c 'import sympy'
        need protobuf-compiler command -v protoc
    fi
    if [ "$wanted" = s390x ]; then
        need gcc-s390x-linux-gnu command -v s390x-linux-gnu-gcc
        need libc6-dev-s390x-cross test -e /usr/s390x-linux-gnu/include/stdio.h
        need qemu-user command -v qemu-s390x
    fi
    if [ "$wanted" = musl ]; then
        need musl-tools command -v musl-gcc
    fi
    if [ "$wanted" = bench ]; then
        need libflint-dev test -e /usr/include/flint/fmpq_mpoly.h
    fi
    if [ "$wanted" = check ]; then
        need valgrind command -v valgrind
        need clang command -v clang
        need chromium command -v chromium
        need libclang-rt-dev "$(dirname "$0")/fuzzer.sh"
    fi
}

# as_root COMMAND...: runs it as root, or fails. A password is asked for only where somebody can type it.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif ! command -v sudo >/dev/null 2>&1; then
        return 1
    elif [ -z "${CI:-}" ] && [ -t 2 ] && (: </dev/tty) 2>/dev/null; then
        sudo "$@"
    else
        sudo -n "$@"
    fi
}

find_missing
if [ -z "$missing" ]; then
    exit 0
fi
if command -v apt-get >/dev/null 2>&1; then
    echo "Installing:$missing" >&2
    # Without a network the lists on this machine may still do; what counts is what is missing afterwards.
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update >&2 || true
    # shellcheck disable=SC2086 # one word per package
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y install --no-install-recommends $missing >&2 || true
    find_missing
fi
if [ -n "$missing" ]; then
    echo "Missing packages:$missing" >&2
    echo "On Debian 12, as root: apt-get install$missing" >&2
    exit 1
fi
