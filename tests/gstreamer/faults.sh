#!/bin/sh
# What a pipeline with coxtonemap makes of devices that fail, under the fault layer: the same film and a warning where another device
# is left; an error, and no hang, where none is.   sh faults.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
tonemap=$(cd "$1" && pwd)/cox-tonemap
layer=$(cd "${COX_TEST_LAYER_DIR:-$1/../tests/layers}" 2>/dev/null && pwd)/layer_fault.so
source_dir=$(cd "$2" && pwd)
clip=$source_dir/examples/data/stilllife_pq_480x270.y4m
if [ ! -f "$layer" ] || ! command -v gst-launch-1.0 >/dev/null; then
    echo "skipped, because the fault layer or gst-launch-1.0 is missing (Debian: gstreamer1.0-tools)"
    exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
. "$source_dir/tests/support/setups.sh"
. "$source_dir/tests/support/tonemap.sh"
. "$source_dir/tests/gstreamer/launch_lib.sh"
able 'faults' 'pocl cores' || exit 77
for needed in rawvideoparse capssetter; do
    has_element $needed || { echo "skipped, because the element $needed is missing (Debian: gstreamer1.0-plugins-good, -bad)"; exit 77; }
done
export OCL_ICD_VENDORS="$work/pocl"

raw_clip
n=0
while [ $n -lt 5 ]; do
    cat "$work/clip.raw" "$work/clip.raw" "$work/clip.raw" "$work/clip.raw"
    n=$((n + 1))
done >"$work/film"
mv "$work/film" "$work/clip.raw"

# film DEVICES PLAN: the film through these devices under a plan; sets `status`.
film() {
    printf '%s\n' "$2" >"$work/plan"
    # shellcheck disable=SC2086
    OPENCL_LAYERS=$layer COX_FAULT_PLAN=$work/plan COX_FAULT_REPORT=$work/report timeout 300 \
        gst-launch-1.0 $source ! $hdr ! coxtonemap devices="$1" policy=static cache-dir='""' peak=1000 in-flight=3 ! \
        video/x-raw,format=NV12 ! filesink location="$work/d/out" >"$work/out" 2>"$work/err" </dev/null
    status=$?
}

film cpu:2x1 '# nothing'
equal "$status" 0 'no fault'
mv "$work/d/out" "$work/right"

for plan in 'clEnqueueNDRangeKernel device=0.1 at=20 status=CL_OUT_OF_RESOURCES' 'clEnqueueNDRangeKernel device=0.1 at=20 vanish'; do
    film cpu:2x1 "$plan"
    equal "$status" 0 "$plan: status"
    if grep -q 'struck [1-9]' "$work/report"; then pass; else fail "$plan: the fault never struck"; fi
    if cmp -s "$work/d/out" "$work/right"; then pass; else fail "$plan: the frames differ"; fi
    equal "$(cat "$work/out" "$work/err" | grep -c 'WARNING.* failed; its part of the frames is done by other devices')" 1 "$plan: warnings"
done

film cpu 'clEnqueueNDRangeKernel from=10 error=CL_OUT_OF_RESOURCES'
if grep -q 'struck [1-9]' "$work/report"; then pass; else fail 'no device left: the fault never struck'; fi
if [ "$status" -ne 0 ] && [ "$status" -ne 124 ]; then pass; else fail "no device left: status $status"; fi
if cat "$work/out" "$work/err" | grep -Eq '^ERROR: from element .*coxtonemap.*: A frame (failed|cannot be mapped): '; then pass; else fail 'no device left: no error'; fi

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
