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
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"
program=$COX_TEST_DIR/bits_kernels
need_oclgrind "$program"

# It cannot run what clang makes of always_inline.
grind() { # NAME OPTIONS...
    name=$1
    shift
    expect_status 0 "$name" timeout 1200 oclgrind --build-options "-DINLINE=static -fno-inline" --max-errors 1000 \
        --log "$work/found" "$@"
    [ $status -eq 0 ] || grep -E ' DIFFERENT$|not the reference' "$work/out"
    check 'Oclgrind finds nothing' test ! -s "$work/found"
    grep -A 5 -E '^[A-Z]' "$work/found" | grep -E '^[A-Z]|At line' | sort | uniq -c | sort -rn | head -n 20
    echo "$name: $(tail -n 1 "$work/out")"
    cp "$work/out" "$work/$name"
}

for form in vectors scalars; do
    uninitialized=--uninitialized
    [ $form = scalars ] || uninitialized=
    # shellcheck disable=SC2086
    grind $form --data-races $uninitialized "$program" --$form picture histogram video
    grind filter-$form --data-races "$program" --$form filter
    grep -h '^bits ' "$work/$form" "$work/filter-$form" >"$work/bits-$form"
done
check 'the forms give the same bits' diff "$work/bits-vectors" "$work/bits-scalars"
finish
