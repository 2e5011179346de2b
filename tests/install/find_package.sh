#!/bin/sh
# The project in consumer/, built against an installed tree with find_package: sourced by the scripts beside this one with
# `cmake`, `generator`, `cc` and `source`, which they are given, and `dir`, a folder.
# SPDX-License-Identifier: Apache-2.0

# build_consumer PREFIX FRAME=FILE|HELLO=FILE: the program is $dir/consumer/frame or $dir/consumer/hello
build_consumer() {
    echo "--- find_package"
    "$cmake" -S "$source/tests/install/consumer" -B "$dir/consumer" -G "$generator" -DCMAKE_PREFIX_PATH="$1" \
        -DCMAKE_C_COMPILER="$cc" -D"$2" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
    "$cmake" --build "$dir/consumer" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
}
