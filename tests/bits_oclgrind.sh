#!/bin/sh
# The video kernels, as vectors and as scalars, on Oclgrind: it finds accesses out of bounds and races inside a kernel, and
# must give both forms the same bits. In staged mode, for it takes one wrapper of a range for another.
#
#   sh bits_oclgrind.sh BIN_DIR SOURCE_DIR
#
# SPDX-License-Identifier: Apache-2.0
set -u
program="${COX_TEST_DIR:-$1/../tests}/bits_video"
if ! command -v oclgrind >/dev/null; then
    echo "skipped, because oclgrind is missing (Debian: oclgrind)"
    exit 77
elif ldd "$program" | grep -q libasan; then
    echo "skipped, because Oclgrind wants to be loaded first, and so does AddressSanitizer"
    exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

# It cannot run what clang makes of always_inline.
check() { # NAME ARGUMENTS...
    name=$1
    shift
    timeout 800 oclgrind --build-options "-DINLINE=static -fno-inline" --data-races --max-errors 1000 --log "$work/log" \
        "$program" --devices cpu=staged --small --splits 1 "$@" >"$work/$name" 2>"$work/err"
    code=$?
    if [ $code -ne 0 ] || [ -s "$work/log" ]; then
        echo "$name: FAILED (exit status $code)"
        cat "$work/$name" "$work/err"
        grep -E '^[A-Z]' "$work/log" | sort | uniq -c | head -n 20
        failed=1
    else
        echo "$name: $(tail -n 1 "$work/$name")"
    fi
}

check vectors
check scalars --scalars
grep '^bits ' "$work/vectors" >"$work/a"
grep '^bits ' "$work/scalars" >"$work/b"
if ! cmp -s "$work/a" "$work/b"; then
    echo "FAILED: the forms differ"
    diff "$work/a" "$work/b"
    failed=1
fi
exit $failed
