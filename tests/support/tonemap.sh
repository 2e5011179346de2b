#!/bin/sh
# cox-tonemap under the harness: sourced in its place by scripts that get BIN_DIR SOURCE_DIR. $tonemap is the program.
#
#   run STATUS WHAT ARGS...               it ends with that status
#   refuses STATUS PATTERN WHAT ARGS...   with one line on standard error that says why, and no file, whole or half
#   hashes EXPECTED WHAT ARGS...          it computes the frames with that hash;  hash_of: the one that --hash printed
#   is_png FILE WIDTH HEIGHT DEPTH        number FILE OFFSET BYTES: a big-endian number
#   last_line PATTERN                     the last line on standard output
#   appears FILE PATTERN                  whether a line that ends in CR or LF matches
#   catches_term PID                      whether the program catches SIGTERM, for wait_until
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
unset OCL_ICD_VENDORS
tonemap=$bin/cox-tonemap
data=$source/examples/data
[ -x "$tonemap" ] || skip "cox-tonemap is not built (libpng is missing)"

# What it says of a build without libavformat, if it is one.
need_libavformat() {
    printf 'YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420p10\n' >"$work/none.y4m"
    ! "$tonemap" "$work/none.y4m" -o "$work/none.mkv" 2>&1 | grep -q 'built without libavformat' ||
        skip "this build has no libavformat"
}

bytes() { wc -c <"$1" | tr -d ' '; }
hash_of() { sed -n 's/^hash  *\([0-9a-f]\{16\}\)  [a-z]*$/\1/p' "$work/out"; }
nothing_left() { equal "$(ls -A "$work/d")" '' 'left behind'; }

run() {
    h_status=$1
    h_what=$2
    shift 2
    expect_status "$h_status" "$h_what" "$tonemap" "$@"
}

refuses() {
    h_pattern=$2
    h_status=$1
    h_what=$3
    shift 3
    expect_status "$h_status" "$h_what" "$tonemap" "$@"
    equal "$(wc -l <"$work/err")" 1 'lines of the error'
    contains err "^cox-tonemap: .*($h_pattern)"
    nothing_left
    clean
}

hashes() {
    h_expected=$1
    h_what=$2
    shift 2
    h_hash=$h_expected
    expect_status 0 "$h_what" "$tonemap" "$@" --hash
    equal "$(hash_of)" "$h_hash" hash
}

last_line() {
    tail -n 1 "$work/out" >"$work/last"
    contains "$work/last" "$1"
}

number() {
    # shellcheck disable=SC2046
    set -- $(od -An -tu1 -j "$2" -N "$3" "$1")
    value=0
    for byte; do value=$((value * 256 + byte)); done
    echo "$value"
}

is_png() {
    equal "$(od -An -tx1 -N 8 "$1" | tr -d ' \n')" 89504e470d0a1a0a "the first bytes of $1"
    equal "$(number "$1" 16 4) x $(number "$1" 20 4)" "$2 x $3" "the size of $1"
    equal "$(number "$1" 24 1)" "$4" "the depth of $1"
    equal "$(tail -c 8 "$1" | od -An -tx1 | tr -d ' \n')" 49454e44ae426082 "the end of $1"
}

appears() { tr '\r' '\n' <"$1" | grep -Eq -- "$2"; }
catches_term() { catches "$1" 15; }
