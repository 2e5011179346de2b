#!/bin/sh
# What coxswain/opencl.h promises, objects and images, on every set-up of OpenCL devices that this machine's packages allow, and
# once on whatever devices the machine has.   sh opencl.sh BIN_DIR SOURCE_DIR
#
# COX_SHORT=1: the first set-up that this machine can have.
# SPDX-License-Identifier: Apache-2.0
set -u
programs="${COX_TEST_DIR:-$1/../tests}"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
. "$(dirname "$0")/../support/setups.sh"
failed=0 passed=0
: >"$work/opencl" >"$work/image"

# NAME NEEDS VENDORS ARGUMENTS...
interop() {
    name=$1 icds=$3
    [ -z "${COX_SHORT:-}" ] || [ $((passed + failed)) -eq 0 ] || return 0
    able "$name" "$2" || return
    shift 3
    code=0
    for program in opencl image; do
        [ $code -ne 0 ] || OCL_ICD_VENDORS="$icds" timeout 300 "$programs/interop_$program" "$@" >"$work/$program" \
            2>"$work/err" || code=$?
    done
    if [ $code -eq 77 ]; then
        skip "$name" "$(tail -n 1 "$work/err")"
        return
    fi
    echo "$name:"
    sed 's/^/  /' "$work/opencl" "$work/image"
    if [ $code -eq 0 ]; then
        passed=$((passed + 1))
    else
        echo "  FAILED (exit status $code)"
        cat "$work/err"
        failed=$((failed + 1))
    fi
}

unset POCL_DEVICES RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
interop "PoCL" "pocl" "$work/pocl" --expect 1
interop "PoCL, staged" "pocl" "$work/pocl" --devices cpu=staged --expect 1
interop "PoCL, two sub-devices" "pocl cores" "$work/pocl" --devices cpu:2x1 --expect 2
interop "PoCL, two sub-devices, mapped" "pocl cores" "$work/pocl" --devices cpu:2x1=mapped --expect 2
export POCL_DEVICES="pthread basic"
interop "PoCL, pthread and basic" "pocl" "$work/pocl" --expect 2
unset POCL_DEVICES
export RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
# AddressSanitizer's quarantine does not count what llvmpipe's many small
# page-aligned allocations really take, and grows without bound.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
interop "llvmpipe" "rusticl" "$work/rusticl" --expect 1
interop "llvmpipe, staged" "rusticl" "$work/rusticl" --devices gpu=staged --expect 1
interop "PoCL and llvmpipe" "pocl rusticl" "$work/both" --devices cpu,gpu --expect 2
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
interop "this machine's own devices" "" "$vendors"

echo "$passed set-ups passed, $failed failed"
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
