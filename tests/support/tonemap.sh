#!/bin/sh
# Running cox-tonemap and judging how it ended: sourced by cli/*.sh with `tonemap`, the program, and `work`, a folder. The
# program runs in $work/d; what it printed is in $work/out and $work/err; `passed` and `failed` count.
# SPDX-License-Identifier: Apache-2.0
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE POCL_DEVICES OCL_ICD_VENDORS
: "${XDG_CACHE_HOME:=$work/cache}"
export XDG_CACHE_HOME
mkdir "$work/d"
passed=0
failed=0

pass() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    echo "FAILED: $1"
    sed 's/^/    out: /' "$work/out" | cut -c 1-300
    sed 's/^/    err: /' "$work/err" | cut -c 1-300
}

# run STATUS NAME ARGS...: in the folder d, the program ends with that status.
run() {
    expected=$1
    what=$2
    shift 2
    (cd "$work/d" && "$tonemap" "$@") >"$work/out" 2>"$work/err" </dev/null
    status=$?
    if [ "$status" -eq "$expected" ]; then pass; else fail "$what: status $status instead of $expected"; fi
}

# refuses STATUS PATTERN NAME ARGS...: one line on standard error that says why, and no file, whole or half.
refuses() {
    expected=$1
    pattern=$2
    about=$3
    shift 3
    run "$expected" "$about" "$@"
    if [ "$(wc -l <"$work/err")" -eq 1 ] && grep -Eq "^cox-tonemap: .*($pattern)" "$work/err"; then
        pass
    else
        fail "$about: no single line says '$pattern'"
    fi
    left=$(ls -A "$work/d")
    if [ -z "$left" ]; then pass; else fail "$about: $left was left behind"; fi
    clean
}

clean() {
    rm -rf "$work/d"
    mkdir "$work/d"
}

has() { if grep -Eq -- "$2" "$work/$1"; then pass; else fail "$3: no line matches '$2'"; fi; }
equal() { if [ "$1" = "$2" ]; then pass; else fail "$3: '$1' is not '$2'"; fi; }
# listening PID: until the process catches SIGTERM, appears FILE PATTERN: until a line that ends in CR or LF matches; for two
# minutes at most.
listening() {
    tries=1200
    until grep -q '^SigCgt:.*[4-7c-f]...$' "/proc/$1/status" 2>/dev/null || [ $tries -eq 0 ]; do
        sleep 0.1
        tries=$((tries - 1))
    done
}
appears() {
    tries=1200
    until tr '\r' '\n' <"$1" 2>/dev/null | grep -Eq -- "$2" || [ $tries -eq 0 ]; do
        sleep 0.1
        tries=$((tries - 1))
    done
}
# The hash that --hash printed.
hash_of() { sed -n 's/^hash  *\([0-9a-f]\{16\}\)  [a-z]*$/\1/p' "$work/out"; }

# Big-endian number of FILE at OFFSET, of so many BYTES.
number() {
    # shellcheck disable=SC2046
    set -- $(od -An -tu1 -j "$2" -N "$3" "$1")
    value=0
    for byte; do value=$((value * 256 + byte)); done
    echo "$value"
}

# is_png FILE WIDTH HEIGHT DEPTH NAME
is_png() {
    [ "$(od -An -tx1 -N 8 "$1" | tr -d ' \n')" = 89504e470d0a1a0a ] && pass || fail "$5: not a PNG"
    equal "$(number "$1" 16 4)x$(number "$1" 20 4)" "$2x$3" "$5: size"
    equal "$(number "$1" 24 1)" "$4" "$5: depth"
    equal "$(tail -c 8 "$1" | od -An -tx1 | tr -d ' \n')" 49454e44ae426082 "$5: end of the PNG"
}
