#!/bin/sh
# Release builds must be hardened against exploitation of faults. Read from the built library and programs.
#   hardening.sh FILE...   (the library is the one called *.so*)
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
need readelf
[ $# -gt 0 ] || fail 'no file is given'

matches() { printf '%s\n' "$1" | grep -E "$2"; } # TEXT PATTERN

fortified=0
for file in "$@"; do
    header=$(readelf -hW "$file") segments=$(readelf -lW "$file") dynamic=$(readelf -dW "$file")
    symbols=$(readelf -W --dyn-syms "$file")
    what=$(basename "$file")
    check "it cannot be read" [ -n "$header" ]
    check "lies at fixed addresses (no PIE)" matches "$header" 'Type:.* DYN'
    case $file in
    *.so*) ;;
    *) check "lies at fixed addresses (no PIE)" matches "$dynamic" 'FLAGS_1.* PIE' ;;
    esac
    check "its stack is not marked as data" matches "$segments" 'GNU_STACK .* RW +0x'
    refute "a part of it is writable and executable" matches "$segments" '(LOAD|GNU_STACK) .* R?WE '
    check "its tables are writable (no RELRO)" matches "$segments" 'GNU_RELRO'
    # separate-code: only code is executable, so the first segment, with the headers, is not.
    refute "its headers and constants are executable" matches "$(printf '%s\n' "$segments" | grep -m 1 LOAD)" ' R E '
    check "symbols are bound lazily" matches "$dynamic" 'FLAGS_1.* NOW|BIND_NOW'
    refute "its code is changed on loading" matches "$dynamic" 'TEXTREL'
    # An empty or relative part would find libraries in the current folder.
    printf '%s\n' "$dynamic" | sed -n 's/.*R[UN]*PATH.*\[\(.*\)\]$/\1/p' | tr ':' '\n' >parts
    refute "its run path has a part that is not absolute" matches "$(sed 's/^/=/' parts)" '^=($|[^$/])'
    check "none of its functions guards its stack" matches "$symbols" ' __stack_chk_fail'
    ! matches "$symbols" ' __[a-z]+_chk(@|$)' >/dev/null || fortified=$((fortified + 1))
    refute "calls what knows no size" matches "$symbols" ' (gets|strcpy|strcat|sprintf|vsprintf)(@|$)'
done
# A small program may have no call that can be checked.
what='FORTIFY_SOURCE'
check "only $fortified of $# files have checked calls" [ $((fortified * 2)) -gt $# ]
finish
