#!/bin/sh
# The backend suite on each set-up of OpenCL devices that this machine's packages allow (tests/support/setups.sh),
# then on all devices of the machine. All runs must give the same hash.
#
#   sh suite.sh BIN_DIR SOURCE_DIR
#
# COX_SHORT=1: only the first set-up that this machine can have.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"
may_crash='/lib(pocl|LLVM|clang|RusticlOpenCL|MesaOpenCL|gallium|pipe)'
hash=

bench() { # NAME NEEDS VENDORS ARGUMENTS...
    title=$1 needs=$2 icds=$3
    shift 3
    on "$title" "$needs" "$icds" timeout 1200 "$COX_TEST_DIR/backend_suite" --cache "$work/cache" "$@" || return
    found=$(sed -n 's/^hash //p' "$work/out")
    equal "$found" "${hash:=$found}" "the other set-ups' hash"
}

bench "PoCL, mapped" "pocl" "$work/pocl" --expect 1 --mode mapped
bench "PoCL, staged" "pocl" "$work/pocl" --devices cpu=staged --expect 1 --mode staged
bench "PoCL, two sub-devices, shared" "pocl cores" "$work/pocl" --devices cpu:2x1 --expect 2 --mode shared
bench "PoCL, two sub-devices, mapped" "pocl cores" "$work/pocl" --devices cpu:2x1=mapped --expect 2 --mode mapped
bench "PoCL, two sub-devices, staged" "pocl cores" "$work/pocl" --devices cpu:2x1=staged --expect 2 --mode staged
export POCL_DEVICES="pthread basic"
bench "PoCL, pthread and basic" "pocl" "$work/pocl" --expect 2 --mode shared
unset POCL_DEVICES
show_llvmpipe
bench "llvmpipe" "rusticl" "$work/rusticl" --expect 1 --mode mapped
bench "llvmpipe, staged" "rusticl" "$work/rusticl" --devices gpu=staged --expect 1 --mode staged
bench "PoCL and llvmpipe" "pocl rusticl" "$work/both" --devices cpu,gpu --expect 2 --mode mapped
bench "PoCL and llvmpipe, staged" "pocl rusticl" "$work/both" --devices cpu,gpu=staged --expect 2
bench "two sub-devices and llvmpipe" "pocl rusticl cores" "$work/both" --devices cpu:2x1,gpu --expect 3
hide_llvmpipe
bench "this machine's own devices" "" "$vendors"
finish_setups
