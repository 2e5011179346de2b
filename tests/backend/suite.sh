#!/bin/sh
# The backend suite on every set-up of OpenCL devices that this machine's packages allow, each with only the platforms it
# names, and once on whatever devices the machine has. All set-ups must give the same hash.
#
#   sh suite.sh BIN_DIR SOURCE_DIR
#
# COX_SHORT=1: the first set-up that this machine can have.
# SPDX-License-Identifier: Apache-2.0
set -u
suite="${COX_TEST_DIR:-$1/../tests}/backend_suite"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
. "$(dirname "$0")/../support/setups.sh"
. "$(dirname "$0")/../support/tries.sh"
drivers='/lib(pocl|LLVM|clang|RusticlOpenCL|MesaOpenCL|gallium|pipe)'
failed=0 passed=0 hash=

# NAME NEEDS VENDORS ARGUMENTS...
bench() {
    name=$1 icds=$3
    [ -z "${COX_SHORT:-}" ] || [ $((passed + failed)) -eq 0 ] || return 0
    able "$name" "$2" || return
    shift 3
    tries "$name" "$drivers" env OCL_ICD_VENDORS="$icds" timeout 1200 "$suite" --cache "$work/cache" "$@"
    own=$(sed -n 's/^hash //p' "$work/out")
    if [ $code -eq 77 ]; then
        skip "$name" "$(tail -n 1 "$work/err")"
        return
    fi
    if [ $code -ne 0 ]; then
        echo "$name: FAILED (exit status $code)"
        cat "$work/out" "$work/err"
        failed=$((failed + 1))
    elif [ -n "$hash" ] && [ "$hash" != "$own" ]; then
        echo "$name: FAILED: hash $own, the others have $hash"
        failed=$((failed + 1))
    else
        hash=$own
        passed=$((passed + 1))
        echo "$name: $(tail -n 1 "$work/out"), hash $own"
    fi
}

unset POCL_DEVICES RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
bench "PoCL, mapped" "pocl" "$work/pocl" --expect 1 --mode mapped
bench "PoCL, staged" "pocl" "$work/pocl" --devices cpu=staged --expect 1 --mode staged
bench "PoCL, two sub-devices, shared" "pocl cores" "$work/pocl" --devices cpu:2x1 --expect 2 --mode shared
bench "PoCL, two sub-devices, mapped" "pocl cores" "$work/pocl" --devices cpu:2x1=mapped --expect 2 --mode mapped
bench "PoCL, two sub-devices, staged" "pocl cores" "$work/pocl" --devices cpu:2x1=staged --expect 2 --mode staged
export POCL_DEVICES="pthread basic"
bench "PoCL, pthread and basic" "pocl" "$work/pocl" --expect 2 --mode shared
unset POCL_DEVICES
export RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
# AddressSanitizer's quarantine does not count what llvmpipe's many small
# page-aligned allocations really take, and grows without bound.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
bench "llvmpipe" "rusticl" "$work/rusticl" --expect 1 --mode mapped
bench "llvmpipe, staged" "rusticl" "$work/rusticl" --devices gpu=staged --expect 1 --mode staged
bench "PoCL and llvmpipe" "pocl rusticl" "$work/both" --devices cpu,gpu --expect 2 --mode mapped
bench "PoCL and llvmpipe, staged" "pocl rusticl" "$work/both" --devices cpu,gpu=staged --expect 2
bench "two sub-devices and llvmpipe" "pocl rusticl cores" "$work/both" --devices cpu:2x1,gpu --expect 3
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
bench "this machine's own devices" "" "$vendors"

echo "$passed set-ups passed, $failed failed"
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
