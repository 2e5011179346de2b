#!/bin/sh
# Whether a delivered frame changes afterwards (torn.c). It runs on two cores of one device and on two platforms,
# while busy loops use the cores. It tests submit and run, late kernels, and devices that are given up (with the
# fault layer).
#
#   sh torn.sh BIN_DIR SOURCE_DIR
#
# Environment:
#   FRAMES   frames of each combination (60)
#   CHAINED  frames whose output is the next one's input (FRAMES)
#   HANGING  frames on devices that hang (FRAMES)
#   ALL=1    every combination, also staged devices, and up to 8 busy loops
#
# Outputs are checked in the callback, and again after 50 ms or after late kernels have ended.
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
