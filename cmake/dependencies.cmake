# Finds what Debian must provide and names all that is missing at once, with the line that installs it.

find_package(PkgConfig)
find_package(Threads REQUIRED)
set(missing)

# A library by its pkg-config module, as the target PkgConfig::<prefix>.
macro(etch_library prefix module debian_package)
    if(PKG_CONFIG_FOUND)
        pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${module})
    endif()
    if(NOT ${prefix}_FOUND)
        list(APPEND missing ${debian_package})
    endif()
endmacro()

# The same library as its archive, where there is one, for the program: it begins faster, since the loader
# finds fewer libraries, and runs where they are not installed.
macro(etch_archive prefix)
    if(${prefix}_FOUND)
        list(GET ${prefix}_LIBRARIES 0 name)
        find_library(${prefix}_ARCHIVE lib${name}.a HINTS ${${prefix}_LIBRARY_DIRS})
        mark_as_advanced(${prefix}_ARCHIVE)
        if(${prefix}_ARCHIVE)
            list(APPEND ETCH_ARCHIVE_FILES ${${prefix}_ARCHIVE})
        endif()
    endif()
endmacro()

macro(etch_program variable program debian_package)
    find_program(${variable} ${program})
    if(NOT ${variable})
        list(APPEND missing ${debian_package})
    endif()
endmacro()

if(NOT PKG_CONFIG_FOUND)
    list(APPEND missing pkg-config)
endif()
etch_library(GMP gmp libgmp-dev)
etch_library(JANSSON jansson libjansson-dev)
etch_library(LIBMD libmd libmd-dev)
etch_library(MPFR mpfr libmpfr-dev)
etch_library(ZSTD libzstd libzstd-dev)
if(ETCH_MPI)
    etch_library(MPI ompi-c libopenmpi-dev)
endif()
set(ETCH_ARCHIVE_FILES)
if(ETCH_ARCHIVES AND NOT BUILD_SHARED_LIBS)
    foreach(prefix MPFR GMP JANSSON LIBMD ZSTD) # MPFR uses GMP
        etch_archive(${prefix})
    endforeach()
endif()

# Where all of them, and the C library, have archives, nothing is left for the loader to find, and a short run
# takes a fifth less. Sanitizers and MPI need shared libraries, and so may a system. What is built for another
# machine cannot be tried here.
list(LENGTH ETCH_ARCHIVE_FILES archives)
set(ETCH_STATIC OFF)
if(archives EQUAL 5 AND NOT ETCH_MPI AND NOT CMAKE_CROSSCOMPILING)
    include(CheckCSourceRuns)
    set(CMAKE_REQUIRED_LINK_OPTIONS -static-pie)
    set(CMAKE_REQUIRED_LIBRARIES ${ETCH_ARCHIVE_FILES} Threads::Threads m)
    check_c_source_runs("#include <gmp.h>
                         int main(void) { mpz_t a; mpz_init_set_ui(a, 1); return mpz_cmp_ui(a, 1); }"
                        ETCH_LINKS_STATICALLY)
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
    unset(CMAKE_REQUIRED_LIBRARIES)
    if(ETCH_LINKS_STATICALLY)
        set(ETCH_STATIC ON)
    endif()
endif()
set(ETCH_LIBRARIES PkgConfig::GMP PkgConfig::JANSSON PkgConfig::LIBMD PkgConfig::MPFR PkgConfig::ZSTD
    Threads::Threads m)
set(ETCH_PKGCONFIG_MODULES gmp jansson libmd libzstd mpfr)

if(BUILD_TESTING)
    etch_library(CHECK check check)
    etch_library(PROTOBUF_C libprotobuf-c libprotobuf-c-dev)
    etch_program(PROTOC_C protoc-c protobuf-c-compiler)
    etch_program(PROTOC protoc protobuf-compiler)
    # Debian's interpreter first: python3-protobuf belongs to it and to no other.
    find_program(ETCH_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
    etch_program(ETCH_PYTHON python3 python3)
    if(ETCH_PYTHON)
        execute_process(COMMAND ${ETCH_PYTHON} -c "import google.protobuf" RESULT_VARIABLE failed ERROR_QUIET)
        if(failed)
            list(APPEND missing python3-protobuf)
        endif()
        execute_process(COMMAND ${ETCH_PYTHON} -c "import sympy" RESULT_VARIABLE failed ERROR_QUIET)
        if(failed)
            list(APPEND missing python3-sympy)
        endif()
    endif()
endif()

if(missing)
    list(JOIN missing " " names)
    message(FATAL_ERROR "Missing packages: ${names}\nOn Debian: apt-get install ${names}")
endif()
