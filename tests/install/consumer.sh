#!/bin/sh
# Build the project in consumer/ with the installed tree, and run it. Usage:
#
#   consumer.sh KIND CMAKE GENERATOR CC BUILD_DIR SOURCE_DIR
#
#   c        hello.c with find_package and with pkg-config
#   meson    hello.c as a Meson project, with dependency()
#   cpp      frame.cpp as C++17 and C++20, without a warning, with each installed compiler and with find_package
#   static   the static library, built as a subproject (BUILD_SHARED_LIBS=OFF). hello.c is linked in that project, and
#            with what the project installs: by pkg-config, with and without --static, and by find_package
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/install/launcher.sh"
kind=$1 cmake=$2 generator=$3 cc=$4 build=$5
prefix="$work/d/moved prefix"

# install_moved BUILD: install to a folder, then move it to $prefix, which has a blank in its name. No file may name
# the build folder or the first folder.
install_moved() {
    expect_status 0 'cmake --install' "$cmake" --install "$1" --prefix "$work/d/first"
    mv first "$prefix"
    equal "$(grep -rIl -e "$1" -e "$work/d/first" "$prefix")" '' 'files that name the build folder, or the prefix they were installed to'
}

# PKG_CONFIG_PATH finds it.
use_pkg_config() {
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name coxswain.pc)")
    export PKG_CONFIG_PATH
}

# build_consumer FRAME=FILE|HELLO=FILE: build the project in consumer/ with find_package. The program is consumer/frame
# or consumer/hello.
build_consumer() {
    expect_status 0 'find_package' "$cmake" -S "$source/tests/install/consumer" -B consumer -G "$generator" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$cc" -D"$1"
    expect_status 0 'a build with find_package' "$cmake" --build consumer
}

# hello PROGRAM: the program prints something, or reports that there is no OpenCL device.
no_device=
hello() {
    what="$1"
    if "$@" >"$work/out" 2>"$work/err"; then
        check 'it printed nothing' [ -s "$work/out" ]
    else
        contains err 'no OpenCL'
        no_device=yes
    fi
}

# --- The kinds ---

use_c() {
    install_moved "$build"
    build_consumer HELLO="$source/examples/hello.c"
    hello consumer/hello

    use_pkg_config
    # eval, because pkg-config quotes the space in the prefix for a shell.
    expect_status 0 'a build with pkg-config' eval "\"$cc\" -std=c11 -Wall -Wextra -Werror $(pkg-config --cflags coxswain) \
        \"$source/examples/hello.c\" -o hello $(pkg-config --libs coxswain) -lm"
    hello env LD_LIBRARY_PATH="$(dirname "$PKG_CONFIG_PATH")" ./hello

    # The installed programs find the library next to them.
    hello "$prefix/bin/cox-devices"
}

use_meson() {
    need meson
    install_moved "$build"
    use_pkg_config
    expect_status 0 'meson setup' env CC="$cc" meson setup consumer "$source/tests/install/consumer" -Dhello="$source/examples/hello.c"
    # Through pkg-config, so that another installed copy is not found instead.
    contains out '^Run-time dependency coxswain found: YES'
    expect_status 0 'meson compile' meson compile -C consumer
    hello consumer/hello
}

runs() { # PROGRAM: one frame, or no device
    what="$1"
    "$1" >"$work/out" 2>"$work/err"
    status=$?
    case $status in
    0) pass ;;
    77) no_device=yes ;;
    *) fail "status $status" ;;
    esac
}

use_cpp() {
    frame=$source/tests/install/consumer/frame.cpp
    compilers=
    for cxx in "${CXX:-c++}" g++ clang++; do
        command -v "$cxx" >/dev/null && compilers="$compilers $cxx"
    done
    [ "$compilers" ] || skip "no C++ compiler is installed"
    install_moved "$build"
    use_pkg_config
    LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
    export LD_LIBRARY_PATH

    for cxx in $compilers; do
        for standard in 17 20; do
            expect_status 0 "$cxx, C++$standard" eval "$cxx -std=c++$standard -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags coxswain) \
                \"$frame\" -o frame $(pkg-config --libs coxswain)"
            runs ./frame
        done
    done
    build_consumer FRAME="$frame"
    runs consumer/frame
}

linked() { # PROGRAM: it contains the library, and runs
    refute 'the program wants the shared library' eval 'readelf -d "$program" | grep "NEEDED.*libcoxswain"'
    hello "$program"
}

use_static() {
    make_launcher "$build"
    mkdir around
    cat >around/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.20)
project(around LANGUAGES C)
set(BUILD_SHARED_LIBS OFF)
add_subdirectory("$source" coxswain)
add_executable(hello "$source/examples/hello.c")
target_link_libraries(hello PRIVATE coxswain::coxswain m)
END
    expect_status 0 'add_subdirectory' "$cmake" -S around -B build -G "$generator" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_C_COMPILER_LAUNCHER="$work/d/launcher" -DCMAKE_BUILD_TYPE=Release
    expect_status 0 'a build with add_subdirectory' "$cmake" --build build
    program=build/hello
    linked

    install_moved "$work/d/build"
    equal "$(find "$prefix" -name '*.so*')" '' 'a shared library beside the static one'
    library=$(find "$prefix" -name libcoxswain.a)
    equal "$(nm -g --defined-only "$library" | awk 'NF == 3 && $3 !~ /^cox_/ { print $3 }')" '' "names that are in a program's way"
    check 'it has no names' eval 'nm -g --defined-only "$library" | grep -q " cox_"'

    use_pkg_config
    for how in "" --static; do
        # shellcheck disable=SC2086 # no option is no argument
        # eval, because pkg-config quotes the space in the prefix for a shell.
        expect_status 0 "a build with pkg-config $how" eval "\"$cc\" -std=c11 -Wall -Wextra -Werror \"$source/examples/hello.c\" -o hello \
            $(pkg-config $how --cflags --libs coxswain) -lm"
        program=./hello
        linked
    done

    build_consumer HELLO="$source/examples/hello.c"
    program=consumer/hello
    linked
}

use_"$kind"
[ -z "$no_device" ] || skip "this machine has no OpenCL device: the programs were built, and not run"
finish
