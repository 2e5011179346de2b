#!/bin/sh
# Every kernel in every variant (kernels.c) on Oclgrind, which checks each access. There must be
#   No access out of bounds and no data race.
#   No use of uninitialised memory, checked for the scalar form of the mapping kernels.
#   Equal results of the vector and the scalar form.
#
# Oclgrind 21.10 does not track initialisation in vectors of 16: it reports constants, and crashes. It does the same
# for the filters' scalar form, which has vectors of 8 loaded from an array.
#
#   sh kernels.sh BIN_DIR SOURCE_DIR
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"
program=$COX_TEST_DIR/bits_kernels
need_oclgrind "$program"

# Without inlining, since Oclgrind cannot run clang's code for always_inline.
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
