#!/bin/sh
# Every kind of fault on every kind of device, or the selection that every run of the tests takes, after what the death of a
# device costs and some of the same with frames of two passes:
#
#   sh matrix.sh BIN_DIR SOURCE_DIR [--all] [fault_matrix's other options]
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"
shift 2
unset OPENCL_LAYERS
[ -n "$pocl" ] || rm -rf "$work/pocl" "$work/both" # what a set-up lacks, the program is to see
[ -n "$rusticl" ] || rm -rf "$work/both"
# The drivers' leaks after a fault are not what is looked for here.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
matrix() { # ARGUMENT...
    status=0
    "$COX_TEST_DIR/fault_matrix" "$@" || status=$?
}

if [ $# -eq 0 ]; then
    matrix --death
    equal $status 0 'the death of a device'
    matrix --passes --setup scripted --frames 60
    equal $status 0 'frames of two passes, scripted'
    matrix --vendors "$work" --passes --setup mapped --frames 60
    [ $status -eq 77 ] || equal $status 0 'frames of two passes, mapped'
fi
matrix --vendors "$work" "$@"
[ $status -eq 77 ] || equal $status 0 'faults'
finish_setups
