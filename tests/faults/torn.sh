#!/bin/sh
# Whether a delivered frame changes afterwards: fault_torn on two cores of one device and on two platforms, beside busy
# loops, with submit and with run, with kernels that end late or whose device is given up meanwhile (fault layer).
#
#   sh torn.sh BIN_DIR SOURCE_DIR
#
# FRAMES (60) frames of each combination, CHAINED (FRAMES) whose output is the next one's input, HANGING (FRAMES) with
# devices that hang. ALL=1: every combination, devices that are staged too, up to 8 busy loops. Outputs are looked at in
# the callback and 50 ms later, or when what is late has come. Needs COX_TEST_DIR and COX_TEST_LAYER_DIR, or takes them
# to be beside BIN_DIR.
# SPDX-License-Identifier: Apache-2.0
set -u
: "${COX_TEST_DIR:=$1/../tests}"
: "${COX_TEST_LAYER_DIR:=$COX_TEST_DIR/layers}"
: "${FRAMES:=60}"
: "${CHAINED:=$FRAMES}"
: "${HANGING:=$FRAMES}"
: "${ALL:=}"
source_dir=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
export COX_TEST_LAYER_DIR
. "$source_dir/tests/support/setups.sh"
unset OPENCL_LAYERS POCL_DEVICES
passed=0
failed=0

run() { # NAME VENDORS ARGUMENT...
    title=$1
    OCL_ICD_VENDORS=$work/$2
    export OCL_ICD_VENDORS
    shift 2
    "$COX_TEST_DIR/fault_torn" "$@" >"$work/out" 2>&1
    status=$?
    echo "$title: $(tr '\n' ' ' <"$work/out")"
    case $status in
    0) passed=$((passed + 1)) ;;
    77) ;;
    *) failed=$((failed + 1)) ;;
    esac
}

# Frames as submit and run make them, beside busy loops, without and with kernels that are 120 ms late.
beside() { # NAME VENDORS DEVICES LATE HOGS...
    name=$1 vendors=$2 devices=$3
    echo "clEnqueueNDRangeKernel device=$4 from=30 every=20 late=120ms" >"$work/late"
    shift 4
    for hogs; do
        for call in submit run; do
            option=
            [ $call = submit ] || option=--run
            run "$name, $call, $hogs busy loops" "$vendors" "$devices" "$FRAMES" --devices-at-least 2 --hogs "$hogs" \
                --later 50 $option
            [ $ALL ] || [ "$hogs $call" = "0 submit" ] || continue
            OPENCL_LAYERS=$COX_TEST_LAYER_DIR/layer_fault.so COX_FAULT_PLAN=$work/late \
                run "$name, $call, $hogs busy loops, kernels 120 ms late" "$vendors" "$devices" "$FRAMES" \
                --devices-at-least 2 --rounds 20 --hogs "$hogs" --later 150 $option
        done
    done
    run "$name, each frame's output the next one's input" "$vendors" "$devices" "$CHAINED" --devices-at-least 2 --chain \
        --in-flight 4
}

# Kernels that hang until their device has been given up, and wake beside frames that were delivered.
hanging() { # NAME VENDORS DEVICES LATE
    echo "clEnqueueNDRangeKernel device=$4 from=20 every=20 late=3600s" >"$work/hang"
    for memory in '' --wrapped; do
        COX_FAULT_PLAN=$work/hang run "$1, kernels that wake once given up $memory" "$2" "$3" "$HANGING" --wake \
            --devices-at-least 2 --rounds 20 --later 100 --timeout 2000 $memory
    done
}

each() { # NAME NEEDS VENDORS DEVICES LATE
    able "$1" "$2" || return 0
    if [ $ALL ]; then
        beside "$1" "$3" "$4" "$5" 0 2 8
    else
        beside "$1" "$3" "$4" "$5" 0 2
    fi
    hanging "$1" "$3" "$4" "$5"
}

each "two cores of PoCL" "pocl cores" pocl cpu:2x1 0.1
[ ! $ALL ] || each "two cores of PoCL, staged" "pocl cores" pocl cpu:2x1=staged 0.1
RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
export RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
each "PoCL and llvmpipe" "pocl rusticl" both cpu,gpu cpu
[ ! $ALL ] || each "PoCL and llvmpipe, staged" "pocl rusticl" both cpu=staged,gpu=staged cpu
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
