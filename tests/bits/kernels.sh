#!/bin/sh
# Every kernel in every variant (kernels.c) on Oclgrind, which looks at each access: none is out of bounds, no
# two race; in the scalar form of the mapping kernels also: nothing uninitialised is used. The vector form must give the scalar
# form's bits.
#
# Of vectors of 16 Oclgrind 21.10 does not know what is initialised: it reports constants, and crashes. The filters' scalar form
# has vectors too, of 8 samples loaded from an array, of which it says the same.
#
#   sh kernels.sh BIN_DIR SOURCE_DIR
#
# SPDX-License-Identifier: Apache-2.0
set -u
program="${COX_TEST_DIR:-$1/../tests}/bits_kernels"
if ! command -v oclgrind >/dev/null; then
    echo "skipped, because oclgrind is missing (Debian: oclgrind)"
    exit 77
elif ldd "$program" | grep -q libasan; then
    echo "skipped, because Oclgrind wants to be loaded first, and so does AddressSanitizer"
    exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
failed=0

# It cannot run what clang makes of always_inline.
check() { # NAME OPTIONS...
    name=$1
    shift
    timeout 1200 oclgrind --build-options "-DINLINE=static -fno-inline" --max-errors 1000 --log "$work/log" "$@" \
        >"$work/$name" 2>"$work/err"
    code=$?
    if [ $code -ne 0 ] || [ -s "$work/log" ]; then
        echo "$name: FAILED (exit status $code)"
        cat "$work/err"
        grep -E ' DIFFERENT$|not the reference' "$work/$name"
        grep -A 5 -E '^[A-Z]' "$work/log" | grep -E '^[A-Z]|At line' | sort | uniq -c | sort -rn | head -n 20
        failed=1
    else
        echo "$name: $(tail -n 1 "$work/$name")"
    fi
}

for form in vectors scalars; do
    uninitialized=--uninitialized
    [ $form = scalars ] || uninitialized=
    # shellcheck disable=SC2086
    check $form --data-races $uninitialized "$program" --$form picture histogram video
    check filter-$form --data-races "$program" --$form filter
    grep -h '^bits ' "$work/$form" "$work/filter-$form" >"$work/bits-$form"
done
if ! cmp -s "$work/bits-vectors" "$work/bits-scalars"; then
    echo "FAILED: the forms differ"
    diff "$work/bits-vectors" "$work/bits-scalars"
    failed=1
fi
exit $failed
