#!/bin/sh
# Big-endian processors and 32-bit systems are refused when the build is configured. No compiler for them is needed: what
# CMake found out of this one's is set to theirs.   machines.sh CMAKE GENERATOR CC SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -eu
cmake=$1 generator=$2 cc=$3 source=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

refused() { # VARIABLE VALUE WORDS
    echo "set($1 $2)" >"$dir/machine.cmake"
    if "$cmake" -S "$source" -B "$dir/build" -G "$generator" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_PROJECT_INCLUDE="$dir/machine.cmake" >"$dir/log" 2>&1; then
        echo "$1 $2: configured"
        exit 1
    fi
    grep -q "Coxswain runs on $3 only: " "$dir/log" || { cat "$dir/log"; echo "$1 $2: refused without the reason"; exit 1; }
}
refused CMAKE_C_BYTE_ORDER BIG_ENDIAN "little-endian processors"
refused CMAKE_SIZEOF_VOID_P 4 "64-bit systems"
