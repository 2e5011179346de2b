#!/bin/sh
# Whether a delivered frame changes afterwards: fault_torn on two cores of one device and on two platforms, beside busy loops, with
# submit and with run, and with kernels that end late (fault layer).
#
#   sh torn.sh BIN_DIR SOURCE_DIR
#
# FRAMES (60) frames of each combination. Needs COX_TEST_DIR and COX_TEST_LAYER_DIR, or takes them to be beside BIN_DIR.
# SPDX-License-Identifier: Apache-2.0
set -u
: "${COX_TEST_DIR:=$1/../tests}"
: "${COX_TEST_LAYER_DIR:=$COX_TEST_DIR/layers}"
: "${FRAMES:=60}"
source_dir=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
. "$source_dir/tests/support/setups.sh"
unset OPENCL_LAYERS POCL_DEVICES
passed=0
failed=0

run() { # NAME VENDORS ARGUMENT...
    name=$1
    OCL_ICD_VENDORS=$work/$2
    export OCL_ICD_VENDORS
    shift 2
    "$COX_TEST_DIR/fault_torn" "$@" >"$work/out" 2>&1
    status=$?
    echo "$name: $(tr '\n' ' ' <"$work/out")"
    case $status in
    0) passed=$((passed + 1)) ;;
    77) ;;
    *) failed=$((failed + 1)) ;;
    esac
}

each() { # NAME NEEDS VENDORS DEVICES LATE
    able "$1" "$2" || return 0
    for hogs in 0 3 8; do
        run "$1, $hogs busy loops" "$3" "$4" "$FRAMES" --devices-at-least 2 --hogs $hogs
    done
    run "$1, cox_session_run, 3 busy loops" "$3" "$4" "$FRAMES" --devices-at-least 2 --hogs 3 --run
    echo "clEnqueueNDRangeKernel device=$5 from=30 every=20 late=120ms" >"$work/plan"
    OPENCL_LAYERS=$COX_TEST_LAYER_DIR/layer_fault.so COX_FAULT_PLAN=$work/plan \
        run "$1, kernels 120 ms late" "$3" "$4" "$FRAMES" --devices-at-least 2 --rounds 20 --later 150
}

each "two cores of PoCL" "pocl cores" pocl cpu:2x1 0.1
RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
export RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
each "PoCL and llvmpipe" "pocl rusticl" both all cpu
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
