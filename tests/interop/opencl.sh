#!/bin/sh
# What coxswain/opencl.h promises, objects and images, on every set-up of OpenCL devices that this machine's packages allow, and
# once on whatever devices the machine has.   sh opencl.sh BIN_DIR SOURCE_DIR
#
# COX_SHORT=1: the first set-up that this machine can have.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"
programs=${COX_TEST_DIR:-$bin/../tests}

# interop NAME NEEDS VENDORS ARGUMENTS...
interop() {
    name=$1 icds=$3
    [ -z "${COX_SHORT:-}" ] || [ $((passed + failed)) -eq 0 ] || return 0
    able "$name" "$2" || return
    shift 3
    for program in opencl image; do
        what="$name: $program"
        OCL_ICD_VENDORS="$icds" timeout 600 "$programs/interop_$program" "$@" >"$work/out" 2>"$work/err"
        status=$?
        if [ $status -eq 77 ]; then
            leave_out "$what" "$(tail -n 1 "$work/err")"
            return
        fi
        echo "$what"
        sed 's/^/  /' "$work/out"
        equal $status 0 'status'
    done
}

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
[ $((passed + failed)) -gt 0 ] || skip "no set-up can be had"
finish
