#!/bin/sh
# cox-tonemap with devices that fail, hang and lie, under the fault layer. The film must be the same, bit for bit, and
# the statistics must name the fault.
#   sh tonemap_faults.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
. "$source/tests/support/setups.sh"
layer=${COX_TEST_LAYER_DIR:-$bin/../tests/layers}/layer_fault.so
[ -f "$layer" ] || skip "the fault layer is not built"
able 'faults' 'pocl cores' || skip "there are no two sub-devices"
export OCL_ICD_VENDORS="$work/pocl"
# A call that hangs never frees its memory, so leaks are not checked.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"

# Rows of this width need no padding. The layer could put wrong bits into padding.
{
    printf 'FRAME\n'
    awk 'BEGIN { for (i = 0; i < 256 * 48 * 3 / 2; i++) printf "%c%c", 33 + (i * 7 + i / 256) % 90, 1 + i % 3 }'
} >"$work/frame"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do cat "$work/frame" "$work/frame" "$work/frame" "$work/frame" "$work/frame"; done >"$work/frames"
# A pause in the middle, so that devices can come back.
film() {
    printf 'YUV4MPEG2 W256 H48 F25:1 Ip A1:1 C420p10\n'
    cat "$work/frames"
    sleep "${1:-0}"
    cat "$work/frames"
}

# under WHAT PLAN PAUSE ARGUMENTS...: the film under a plan, whose fault must occur. $work/stats gets its statistics
# without blanks.
under() {
    echo "$2" >"$work/plan"
    mkfifo "$work/pipe"
    film "$3" >"$work/pipe" &
    owned $!
    h_under=$1
    shift 3
    export OPENCL_LAYERS="$layer" COX_FAULT_PLAN="$work/plan" COX_FAULT_REPORT="$work/report"
    run 0 "$h_under" - -o a.nv12 --peak 1000 --hash --devices cpu:2x1 --policy static --no-cache --stats s.json "$@" <"$work/pipe"
    unset OPENCL_LAYERS COX_FAULT_PLAN COX_FAULT_REPORT
    contains "$work/report" 'struck [1-9]'
    tr -d ' ' <s.json >"$work/stats"
    rm "$work/pipe"
}
right_hash() { equal "$(hash_of)" "$right" 'hash'; }

film >"$work/film.y4m"
run 0 'no faults' "$work/film.y4m" -o a.nv12 --peak 1000 --hash --devices cpu:2x1 --policy static
right=$(hash_of)
cp a.nv12 "$work/right"
last_line '^written '

launch=clEnqueueNDRangeKernel
# The device comes back after a pause. On a busy machine it takes longer.
for pause in 3 10 30 90; do
    under 'a kernel that fails' "$launch device=0.1 at=20 status=CL_OUT_OF_RESOURCES" $pause
    ! grep -q 'came back once; active at the end' "$work/out" || break
done
right_hash
same a.nv12 "$work/right"
last_line '^faults +[#=] [01]  .*, lost once, came back once; active at the end$'
contains "$work/stats" '"lost":1,"returned":1' '"attempt":1,"status":"COX_OK"'

under 'a device that vanishes' "$launch device=0.1 at=20 vanish" 0
right_hash
last_line '^faults +[#=] [01]  .*, lost once; (quarantined|rebuilding) at the end$'

under 'a late kernel is waited for, and is no fault' "$launch device=0.1 at=20 late=400ms" 1
right_hash
last_line '^written '
contains "$work/stats" '"timeout_bands":0,.*"bands_again":0'

# The device's map command runs while the session is destroyed. The memory of another device's sub-buffer must still
# exist.
under 'a kernel that ends after its device was given up' "$launch device=0.1 at=60 late=2600ms" 0
right_hash
last_line '^faults +[#=] [01]  .*, lost once'

# These come after the first sixteen bands, because those get 20 s more for a compiler.
for call in "$launch device=0.1 at=60" 'clFlush device=0.1 at=60' 'clGetEventInfo device=0.1 at=120'; do
    under "a call that never returns: $call" "$call hang=forever" 0
    contains "$work/stats" '"attempt":0,"status":"COX_E_TIMEOUT"'
    right_hash
    contains out '^faults +[#=] [01]  .*, lost once'
done

under 'wrong bits' "$launch device=0.1 at=20 corrupt=9" 0
differ "$(hash_of)" "$right" 'hash'
under 'wrong bits, verified' "$launch device=0.1 at=20 corrupt=9" 0 --verify 1
right_hash
contains out '^faults +[#=] [01]  .*, lost once'
contains "$work/stats" '"status":"COX_E_MISMATCH"'
finish
