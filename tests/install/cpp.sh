#!/bin/sh
# A stranger's project in C++: consumer/frame.cpp against the installed tree, as C++17 and C++20, with each compiler that is here,
# without a warning, and with find_package; each program runs one frame.   cpp.sh CMAKE GENERATOR CC BUILD_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/installed.sh"
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

runs() { # PROGRAM: one frame, or there is no device
    what="$1"
    "$1" >"$work/out" 2>"$work/err"
    status=$?
    case $status in
    0) pass ;;
    77) no_device=yes ;;
    *) fail "status $status" ;;
    esac
}
for cxx in $compilers; do
    for standard in 17 20; do
        expect_status 0 "$cxx, C++$standard" eval "$cxx -std=c++$standard -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags coxswain) \
            \"$frame\" -o frame $(pkg-config --libs coxswain)"
        runs ./frame
    done
done
build_consumer FRAME="$frame"
runs consumer/frame
finish_hello
