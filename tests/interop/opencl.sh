#!/bin/sh
# Tests of coxswain/opencl.h, objects and images. They run on each set-up of OpenCL devices that this machine's
# packages allow (tests/support/setups.sh), then on all devices of the machine. Usage:
#
#   sh opencl.sh BIN_DIR SOURCE_DIR
#
# COX_SHORT=1: only the first set-up that this machine can have.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"

interop() { # NAME NEEDS VENDORS ARGUMENTS...
    setup=$1 icds=$3
    wanted && able "$1" "$2" || return
    shift 3
    for program in ${programs:-opencl image device}; do
        launch "$setup: $program" env OCL_ICD_VENDORS="$icds" timeout 600 "$COX_TEST_DIR/interop_$program" "$@"
        [ $status -ne 77 ] || [ $program = device ] || return # no device of this set-up is staged
        sed 's/^/  /' "$work/out"
    done
}

interop "PoCL" "pocl" "$work/pocl" --expect 1
interop "PoCL, staged" "pocl" "$work/pocl" --devices cpu=staged --expect 1
programs="opencl device" # such parts of PoCL's CPU take no images
interop "PoCL, two sub-devices, staged" "pocl cores" "$work/pocl" --devices cpu:2x1=staged --expect 2
programs=
interop "PoCL, two sub-devices" "pocl cores" "$work/pocl" --devices cpu:2x1 --expect 2
interop "PoCL, two sub-devices, mapped" "pocl cores" "$work/pocl" --devices cpu:2x1=mapped --expect 2
export POCL_DEVICES="pthread basic"
interop "PoCL, pthread and basic" "pocl" "$work/pocl" --expect 2
unset POCL_DEVICES
show_llvmpipe
interop "llvmpipe" "rusticl" "$work/rusticl" --expect 1
interop "llvmpipe, staged" "rusticl" "$work/rusticl" --devices gpu=staged --expect 1
interop "PoCL and llvmpipe" "pocl rusticl" "$work/both" --devices cpu,gpu --expect 2
interop "PoCL, and llvmpipe staged" "pocl rusticl" "$work/both" --devices cpu,gpu=staged --expect 2
hide_llvmpipe
interop "this machine's own devices" "" "$vendors"
finish_setups
