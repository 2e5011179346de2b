#!/bin/sh
# A pipeline with coxtonemap on devices that fail, under the fault layer. If another device is left, the film is the
# same and there is a warning. If none is left, there is an error and no hang.
#
#   sh faults.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/launch_lib.sh"
. "$source/tests/support/setups.sh"
layer=${COX_TEST_LAYER_DIR:-$bin/../tests/layers}/layer_fault.so
[ -f "$layer" ] || skip "the fault layer is not built"
able 'faults' 'pocl cores' || skip "there are no two sub-devices"
export OCL_ICD_VENDORS="$work/pocl"

mv "$work/clip.raw" "$work/frames"
for _ in $(seq 20); do cat "$work/frames"; done >"$work/clip.raw"

# through DEVICES PLAN: run the film on these devices under a plan; sets `status`.
through() {
    what=$2
    printf '%s\n' "$2" >"$work/plan"
    # shellcheck disable=SC2086 # elements are words
    OPENCL_LAYERS=$layer COX_FAULT_PLAN=$work/plan COX_FAULT_REPORT=$work/report timeout 600 \
        gst-launch-1.0 $film ! $hdr ! coxtonemap devices="$1" policy=static cache-dir='""' peak=1000 in-flight=3 ! \
        video/x-raw,format=NV12 ! filesink location=out >"$work/out" 2>"$work/err"
    status=$?
    cat "$work/out" "$work/err" >"$work/said"
}

through cpu:2x1 '# nothing'
equal "$status" 0 'status'
mv out "$work/right"

for plan in 'clEnqueueNDRangeKernel device=0.1 at=20 status=CL_OUT_OF_RESOURCES' 'clEnqueueNDRangeKernel device=0.1 at=20 vanish'; do
    through cpu:2x1 "$plan"
    equal "$status" 0 'status'
    contains "$work/report" 'struck [1-9]'
    same out "$work/right"
    counts 1 "$work/said" 'WARNING.* failed; other devices take over its rows'
done

through cpu 'clEnqueueNDRangeKernel from=10 error=CL_OUT_OF_RESOURCES'
contains "$work/report" 'struck [1-9]'
differ "$status" 0 'status'
differ "$status" 124 'status'
contains "$work/said" '^ERROR: from element .*coxtonemap.*: (A frame failed|Cannot map a frame): '
finish
