#!/bin/sh
# The fault layer's own test on every set-up of devices that this machine can give: sh selftest.sh BIN_DIR SOURCE_DIR
# Needs COX_TEST_DIR and COX_TEST_LAYER_DIR. COX_SHORT=1: the first set-up that this machine can have.
# SPDX-License-Identifier: Apache-2.0
set -u
program=$COX_TEST_DIR/fault_selftest
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
. "$2/tests/support/setups.sh"
failed=0
ran=0

# check NAME NEEDS VENDORS ARGUMENTS [VARIABLE=VALUE...]
check() {
    name=$1
    [ -z "${COX_SHORT:-}" ] || [ $ran -eq 0 ] || return 0
    able "$name" "$2" || return
    vendors_of=$3
    arguments=$4
    shift 4
    # shellcheck disable=SC2086
    env "$@" "OCL_ICD_VENDORS=$vendors_of" timeout 600 "$program" $arguments >"$work/out" 2>&1
    status=$?
    if [ $status -eq 77 ]; then
        skip "$name" "it shows no device"
        return
    fi
    ran=$((ran + 1))
    if [ $status -ne 0 ]; then
        failed=$((failed + 1))
        echo "$name: FAILED (exit status $status)"
        cat "$work/out"
    else
        echo "$name: $(tail -n 1 "$work/out")"
    fi
}

# What must never end is kept for ever by the layer, on purpose.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
rusticl_on="RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu"
check "PoCL" pocl "$work/pocl" "" RUSTICL_ENABLE=
check "PoCL basic" pocl "$work/pocl" -g RUSTICL_ENABLE= POCL_DEVICES=basic
# shellcheck disable=SC2086
check "rusticl" rusticl "$work/rusticl" "" $rusticl_on
grind=$(find /usr/lib /usr/local/lib -name liboclgrind-rt-icd.so 2>/dev/null | head -n 1)
if [ -n "$grind" ]; then
    mkdir -p "$work/grind"
    echo "$grind" >"$work/grind/oclgrind.icd"
    check "Oclgrind" "" "$work/grind" -g
else
    skip "Oclgrind" "it is missing (Debian: oclgrind)"
fi
audit=$COX_TEST_LAYER_DIR/layer_audit.so
check "PoCL, under the auditing layer" pocl "$work/pocl" "" RUSTICL_ENABLE= "OPENCL_LAYERS=$audit"
[ $ran -gt 0 ] || exit 77
[ $failed -eq 0 ]
