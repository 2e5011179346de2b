#!/bin/sh
# What a release build must have against the exploitation of a fault, read from the library and the programs as built.
# hardening.sh FILE...   (the library is the one called *.so*)
# SPDX-License-Identifier: Apache-2.0
set -u
LC_ALL=C
export LC_ALL
command -v readelf >/dev/null || { echo "skipped, because readelf is missing (Debian: binutils)"; exit 77; }
failed=0

fail() { # FILE WHAT
    echo "$(basename "$1"): $2"
    failed=1
}

# expect FILE TEXT PATTERN WHAT
expect() {
    printf '%s\n' "$2" | grep -qE "$3" || fail "$1" "$4"
}

refuse() {
    ! printf '%s\n' "$2" | grep -qE "$3" || fail "$1" "$4"
}

[ $# -gt 0 ] || { echo "no file is given"; exit 1; }
parts=$(mktemp) || exit 1
trap 'rm -f "$parts"' EXIT
fortified=0
for file in "$@"; do
    header=$(readelf -hW "$file") segments=$(readelf -lW "$file") dynamic=$(readelf -dW "$file")
    symbols=$(readelf -W --dyn-syms "$file")
    [ -n "$header" ] && [ -n "$symbols" ] || { fail "$file" "cannot be read"; continue; }
    expect "$file" "$header" 'Type:.* DYN' "lies at fixed addresses (no PIE)"
    case $file in
    *.so*) ;;
    *) expect "$file" "$dynamic" 'FLAGS_1.* PIE' "lies at fixed addresses (no PIE)" ;;
    esac
    expect "$file" "$segments" 'GNU_STACK .* RW +0x' "its stack is not marked as data"
    refuse "$file" "$segments" '(LOAD|GNU_STACK) .* R?WE ' "a part of it is writable and executable"
    expect "$file" "$segments" 'GNU_RELRO' "its tables stay writable (no RELRO)"
    # separate-code: nothing but code is executable, so the first segment, with the headers, is not.
    refuse "$file" "$(printf '%s\n' "$segments" | grep -m 1 LOAD)" ' R E ' "its headers and constants are executable"
    expect "$file" "$dynamic" 'FLAGS_1.* NOW|BIND_NOW' "symbols are bound lazily"
    refuse "$file" "$dynamic" 'TEXTREL' "its code is changed on loading"
    # An empty or relative part would have libraries looked for where somebody happens to be.
    printf '%s\n' "$dynamic" | sed -n 's/.*R[UN]*PATH.*\[\(.*\)\]$/\1/p' | tr ':' '\n' >"$parts"
    refuse "$file" "$(sed 's/^/=/' "$parts")" '^=($|[^$/])' "its run path has a part that is not absolute"
    expect "$file" "$symbols" ' __stack_chk_fail' "no function of it guards its stack"
    ! printf '%s\n' "$symbols" | grep -qE ' __[a-z]+_chk(@|$)' || fortified=$((fortified + 1))
    refuse "$file" "$symbols" ' (gets|strcpy|strcat|sprintf|vsprintf)(@|$)' "calls what knows no size"
done
# A small program may have no call that can be checked.
[ $((fortified * 2)) -gt $# ] || { echo "only $fortified of $# files have checked calls (FORTIFY_SOURCE)"; failed=1; }
[ $failed = 0 ] && echo "$# files, $fortified with checked calls"
exit $failed
