#!/bin/sh
# etch on other machines than the usual one, as far as Debian's packages go.
#
#   scripts/platform.sh s390x [OPTION...]   builds for a big-endian machine, and runs the cases of the program
#                                           and tests of rooms under QEMU; options choose others, for ctest
#   scripts/platform.sh musl                builds the library with a second C library; what examples/ print
#                                           with it is what they print with the first one
#
# Compilers and QEMU are installed. Libraries for the other machine are unpacked below build/<platform>.root;
# the packages of this one stay as they are.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."

platform=${1:-}
root=$PWD/build/$platform.root
build=build/$platform
jobs=$(getconf _NPROCESSORS_ONLN)

# unpack ARCHITECTURE PACKAGE...: Debian's packages for it, below the root.
unpack() {
    architecture=$1
    shift
    rm -rf "$root"
    mkdir -p "$root/lists/partial" "$root/packages"
    set -- "-oAPT::Architecture=$architecture" "-oAPT::Architectures=$architecture" \
        "-oDir::State::Lists=$root/lists" -- "$@"
    options=
    while [ "$1" != -- ]; do
        options="$options $1"
        shift
    done
    shift
    # shellcheck disable=SC2086 # one word for each option
    apt-get $options -q update
    # shellcheck disable=SC2086
    (cd "$root/packages" && apt-get $options -q download "$@")
    for package in "$root"/packages/*.deb; do
        dpkg -x "$package" "$root"
    done
}

# with BUILD EXAMPLE COMPILER...: the example as a program of that build, with the archives below the root.
with() {
    made=$1
    example=$2
    shift 2
    "$@" -Iinclude -I"$made/include" "examples/$example.c" "$made/libetch.a" "$libraries/libmpfr.a" \
        "$libraries/libgmp.a" "$libraries/libjansson.a" "$libraries/libmd.a" "$libraries/libzstd.a" -lm \
        -o "$made/$example"
}

case $platform in
s390x)
    scripts/setup.sh s390x
    unpack s390x libgmp-dev libgmp10 libjansson-dev libjansson4 libmd-dev libmd0 libmpfr-dev libmpfr6 \
        libnlopt-dev libnlopt0 libzstd-dev libzstd1 check libsubunit-dev libsubunit0 libprotobuf-c-dev \
        libprotobuf-c1 libstdc++6 libgcc-s1
    shift
    ETCH_SYSROOT=$root CFLAGS=-Werror cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/s390x.cmake"
    cmake --build "$build" --parallel "$jobs"
    rooms='base|chakra|import|trace|symbolic|graph|machine|lang|lower|emit'
    if [ $# -eq 0 ]; then
        set -- --tests-regex "^(cli|$rooms)\." --exclude-regex 'exec|random|build|own_schedule' \
            --label-exclude 'prop|lint|fault|threads|budget|mpi'
    fi
    ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$jobs" "$@"
    ;;
musl)
    scripts/setup.sh musl
    unpack "$(dpkg --print-architecture)" libgmp-dev libjansson-dev libmd-dev libmpfr-dev libnlopt-dev \
        libnlopt0 libzstd-dev
    libraries=$root/usr/lib/$(gcc -print-multiarch)
    headers=$root/usr/include
    PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$libraries/pkgconfig cmake -S . -B "$build" -G Ninja \
        -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DCMAKE_C_COMPILER=musl-gcc \
        -DCMAKE_LIBRARY_PATH="$libraries" \
        -DCMAKE_C_FLAGS="-Werror -isystem $headers/$(gcc -print-multiarch) -isystem $headers"
    cmake --build "$build" --parallel "$jobs" --target libetch
    cmake --preset release
    cmake --build --preset release --parallel "$jobs" --target libetch
    # Not the program: CMake names shared libraries, too, where it links that, and those need glibc.
    for example in examples/*.c; do
        name=$(basename "$example" .c)
        with "$build" "$name" musl-gcc -static tests/platform/fortified.c
        with build/release "$name" gcc
        "$build/$name" >"$build/$name.out"
        build/release/"$name" >"$build/$name.expected"
        cmp "$build/$name.out" "$build/$name.expected"
        echo "musl: $name: same"
    done
    ;;
*)
    echo "usage: scripts/platform.sh s390x|musl" >&2
    exit 2
    ;;
esac
