#!/bin/sh
# A stranger's project in C++: consumer/frame.cpp against the installed tree, as C++17 and C++20, with each compiler that is here,
# without a warning, and with find_package; each program runs one frame.   cpp.sh CMAKE GENERATOR CC BUILD_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -eu
cmake=$1 generator=$2 cc=$3 build=$4 source=$5
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. "$source/tests/install/find_package.sh"
"$cmake" --install "$build" --prefix "$dir/prefix" >/dev/null
pc=$(find "$dir/prefix" -name coxswain.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
export LD_LIBRARY_PATH
skipped=0

# frame PROGRAM: it runs its frame, or there is no device
frame() {
    status=0
    "$1" 2>"$dir/err" || status=$?
    case $status in
    0) ;;
    77) skipped=77 ;;
    *) cat "$dir/err"; echo "status $status"; exit 1 ;;
    esac
}

compilers=0
for cxx in "${CXX:-c++}" g++ clang++; do
    command -v "$cxx" >/dev/null || continue
    compilers=$((compilers + 1))
    for standard in 17 20; do
        echo "--- $cxx, C++$standard"
        # shellcheck disable=SC2046 # options
        "$cxx" -std=c++$standard -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags coxswain) \
            "$source/tests/install/consumer/frame.cpp" -o "$dir/frame" $(pkg-config --libs coxswain)
        frame "$dir/frame"
    done
done
[ $compilers -gt 0 ] || { echo "skipped, because no C++ compiler is installed"; exit 77; }

build_consumer "$dir/prefix" FRAME="$source/tests/install/consumer/frame.cpp"
frame "$dir/consumer/frame"
[ $skipped = 0 ] || echo "skipped running it, because this machine has no OpenCL device"
exit $skipped
