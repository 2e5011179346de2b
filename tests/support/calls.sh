#!/bin/sh
# The harness for the scripts that run tests/calls/sweep.py.
#
#   need_programs         skips the test if a program is missing
#   sweeps OPTION...      runs the driver, which must find nothing
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
need python3 nm
[ -f "$COX_TEST_LAYER_DIR/calls.so" ] || skip "the library to preload is not built"

need_programs() {
    for h_program in cox-tonemap cox-lab cox-bench hello; do
        [ -x "$bin/$h_program" ] || skip "$h_program is not built"
    done
    printf 'YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420p10\n' >none.y4m
    ! "$bin/cox-tonemap" none.y4m -o none.mkv 2>&1 | grep -q 'built without libavformat' ||
        skip "this build has no libavformat"
}

sweeps() {
    expect_status 0 "$*" python3 "$source/tests/calls/sweep.py" "$bin" "$COX_TEST_LAYER_DIR" "$@"
    contains out '^[0-9]+ runs, [1-9][0-9]* disturbed, 0 findings'
    tail -n 1 "$work/out"
    grep "^FOUND" "$work/out"
}
