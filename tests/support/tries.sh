#!/bin/sh
# Runs of a program that a driver or a simulator may crash: sourced with `work` naming a folder of its own.
#
#   tries NAME OBJECTS COMMAND...   run it, its output to $work/out and $work/err; `code` is its exit status. If it ended by a
#                                   signal inside an object whose path the pattern OBJECTS (grep -E) matches, say so and run
#                                   it again, three times in all.
#
# The program calls crash_tell (crash.h), so that it tells where it crashed: innermost is the first object that is not of
# the C or C++ library.
# SPDX-License-Identifier: Apache-2.0
crashed_in() {
    sed -n 's/^crash: \([^([]*\).*/\1/p' "$work/err" | grep -vE '/(libc|libm|libstdc\+\+|libgcc_s|ld-linux[^/]*)[.]' | head -n 1
}

tries() {
    name=$1 objects=$2
    shift 2
    for try in 1 2 3; do
        code=0
        "$@" >"$work/out" 2>"$work/err" || code=$?
        [ $code -gt 128 ] && crashed_in | grep -qE "$objects" || return 0
        echo "$name: run $try of 3 crashed in $(crashed_in), not in our code (exit status $code)"
    done
}
