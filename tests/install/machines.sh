#!/bin/sh
# The configuration refuses big-endian processors and 32-bit systems. No compiler for them is needed, because the test
# overrides what CMake has detected.
#   machines.sh CMAKE GENERATOR CC SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
refused() { # VARIABLE VALUE WORDS
    echo "set($1 $2)" >machine.cmake
    what="$1 $2"
    refute 'configured' "$cmake" -S "$source" -B build -G "$generator" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PROJECT_INCLUDE="$work/d/machine.cmake"
    contains "$work/log" "Coxswain runs on $3 only: "
}
cmake=$1 generator=$2 cc=$3
refused CMAKE_C_BYTE_ORDER BIG_ENDIAN "little-endian processors"
refused CMAKE_SIZEOF_VOID_P 4 "64-bit systems"
finish
