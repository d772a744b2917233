# A toolchain for a big-endian machine: Debian's cross compiler, libraries of its packages for s390x below
# $ETCH_SYSROOT, and QEMU's user emulation, which runs what is built. scripts/platform.sh brings all three.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR s390x)
set(CMAKE_C_COMPILER s390x-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE s390x-linux-gnu)

set(libraries $ENV{ETCH_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
set(CMAKE_FIND_ROOT_PATH $ENV{ETCH_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(ENV{PKG_CONFIG_SYSROOT_DIR} $ENV{ETCH_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/pkgconfig)
set(ENV{PKG_CONFIG_ALLOW_SYSTEM_LIBS} 1)
set(CMAKE_C_FLAGS_INIT "-isystem $ENV{ETCH_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -isystem $ENV{ETCH_SYSROOT}/usr/include")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${libraries}")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-s390x -L /usr/s390x-linux-gnu
    -E LD_LIBRARY_PATH=${libraries}:/usr/s390x-linux-gnu/lib)
