#!/bin/sh
# The self-test of the fault layer (selftest.c), on each set-up of devices that this machine can have. Usage:
#
#   sh selftest.sh BIN_DIR SOURCE_DIR
#
# COX_SHORT=1: only the first set-up that this machine can have.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"

own_test() { # NAME NEEDS VENDORS ARGUMENT...
    title=$1 needs=$2 icds=$3
    shift 3
    on "$title" "$needs" "$icds" timeout 600 "$COX_TEST_DIR/fault_selftest" "$@"
}

# The layer keeps commands that must never end, so leaks are expected.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
own_test "PoCL" pocl "$work/pocl"
export POCL_DEVICES=basic
own_test "PoCL basic" pocl "$work/pocl" -g
unset POCL_DEVICES
show_llvmpipe
own_test "rusticl" rusticl "$work/rusticl"
hide_llvmpipe
grind=$(find /usr/lib /usr/local/lib -name liboclgrind-rt-icd.so 2>/dev/null | head -n 1)
if [ -n "$grind" ]; then
    mkdir "$work/grind"
    echo "$grind" >"$work/grind/oclgrind.icd"
    own_test "Oclgrind" "" "$work/grind" -g
else
    leave_out "Oclgrind" "it is missing (Debian: oclgrind)"
fi
export OPENCL_LAYERS="$COX_TEST_LAYER_DIR/layer_audit.so"
own_test "PoCL, under the auditing layer" pocl "$work/pocl"
finish_setups
