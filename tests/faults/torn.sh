#!/bin/sh
# Whether a delivered frame changes afterwards: fault_torn on two cores of one device and on two platforms, beside busy
# loops, with submit and with run, with kernels that end late or whose device is given up meanwhile (fault layer).
#
#   sh torn.sh BIN_DIR SOURCE_DIR
#
# FRAMES (60) frames of each combination, CHAINED (FRAMES) whose output is the next one's input, HANGING (FRAMES) with
# devices that hang. ALL=1: every combination, devices that are staged too, up to 8 busy loops. Outputs are looked at in
# the callback and 50 ms later, or when what is late has come.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"
: "${FRAMES:=60}"
: "${CHAINED:=$FRAMES}"
: "${HANGING:=$FRAMES}"
: "${ALL:=}"
unset OPENCL_LAYERS
torn=$COX_TEST_DIR/fault_torn

# Submit and run frames while busy loops use the cores, without and with kernels that are 120 ms late.
beside() { # NAME DEVICES LATE HOGS...
    name=$1 devices=$2
    echo "clEnqueueNDRangeKernel device=$3 from=30 every=20 late=120ms" >"$work/late"
    shift 3
    for hogs; do
        for call in submit run; do
            option=
            [ $call = submit ] || option=--run
            launch "$name, $call, $hogs busy loops" \
                "$torn" "$devices" "$FRAMES" --devices-at-least 2 --hogs "$hogs" --later 50 $option
            [ "$ALL" ] || [ "$hogs $call" = "0 submit" ] || continue
            launch "$name, $call, $hogs busy loops, kernels 120 ms late" \
                env OPENCL_LAYERS="$COX_TEST_LAYER_DIR/layer_fault.so" COX_FAULT_PLAN="$work/late" \
                "$torn" "$devices" "$FRAMES" --devices-at-least 2 --rounds 20 --hogs "$hogs" --later 150 $option
        done
    done
    launch "$name, each frame's output the next one's input" \
        "$torn" "$devices" "$CHAINED" --devices-at-least 2 --chain --in-flight 4
}

# Kernels that hang until the session gives their device up. They wake after frames were delivered.
hanging() { # NAME DEVICES LATE
    echo "clEnqueueNDRangeKernel device=$3 from=20 every=20 late=3600s" >"$work/hang"
    for memory in '' --wrapped; do
        launch "$1, kernels that wake once given up $memory" env COX_FAULT_PLAN="$work/hang" \
            "$torn" "$2" "$HANGING" --wake --devices-at-least 2 --rounds 20 --later 100 --timeout 2000 $memory
    done
}

each() { # NAME NEEDS VENDORS DEVICES LATE
    able "$1" "$2" || return 0
    export OCL_ICD_VENDORS="$work/$3"
    beside "$1" "$4" "$5" 0 2 ${ALL:+8}
    hanging "$1" "$4" "$5"
}

each "two cores of PoCL" "pocl cores" pocl cpu:2x1 0.1
[ ! "$ALL" ] || each "two cores of PoCL, staged" "pocl cores" pocl cpu:2x1=staged 0.1
show_llvmpipe
each "PoCL and llvmpipe" "pocl rusticl" both cpu,gpu cpu
[ ! "$ALL" ] || each "PoCL and llvmpipe, staged" "pocl rusticl" both cpu=staged,gpu=staged cpu
finish_setups
