#!/bin/sh
# The fault matrix (matrix.c): kinds of fault on kinds of devices. Without options it runs:
#   The cost of a device's death (death.h).
#   Frames of two passes, on scripted devices and in mapped mode.
#   The quick selection of the matrix.
#
#   sh matrix.sh BIN_DIR SOURCE_DIR [--all] [other options of fault_matrix]
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"
shift 2
unset OPENCL_LAYERS
# The program skips the set-ups whose vendor folder is missing.
[ -n "$pocl" ] || rm -rf "$work/pocl" "$work/both"
[ -n "$rusticl" ] || rm -rf "$work/both"
# Drivers may leak after a fault, which is not tested here.
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
