#!/bin/sh
# What cox-tonemap makes of devices that fail, hang and lie, under the fault layer: the same film to the bit, and a word about it.
#   sh tonemap_faults.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
tonemap=$(cd "$1" && pwd)/cox-tonemap
layer=$(cd "${COX_TEST_LAYER_DIR:-$1/../tests/layers}" 2>/dev/null && pwd)/layer_fault.so
if [ ! -x "$tonemap" ] || [ ! -f "$layer" ]; then
    echo "skipped, because cox-tonemap or the fault layer is not built"
    exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/../support/setups.sh"
. "$(dirname "$0")/../support/tonemap.sh"
able 'faults' 'pocl cores' || exit 77
export OCL_ICD_VENDORS="$work/pocl"
# What hangs for ever is left with what it holds.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"

# As wide as rows need no padding, where the layer would put wrong bits, too.
{
    printf 'FRAME\n'
    LC_ALL=C awk 'BEGIN { for (i = 0; i < 256 * 48 * 3 / 2; i++) printf "%c%c", 33 + (i * 7 + i / 256) % 90, 1 + i % 3 }'
} >"$work/frame"
frames() { # COUNT
    n=0
    while [ $n -lt "$1" ]; do
        cat "$work/frame" "$work/frame" "$work/frame" "$work/frame" "$work/frame"
        n=$((n + 5))
    done
}
# A pause in the middle, for devices that are to come back.
film() {
    printf 'YUV4MPEG2 W256 H48 F25:1 Ip A1:1 C420p10\n'
    frames 60
    sleep "${1:-0}"
    frames 60
}

# under NAME PLAN PAUSE ARGUMENTS...: the film under a plan; sets `status`.
under() {
    what=$1
    printf '%s\n' "$2" >"$work/plan"
    pause=$3
    shift 3
    film "$pause" | (
        cd "$work/d" && OPENCL_LAYERS=$layer COX_FAULT_PLAN=$work/plan COX_FAULT_REPORT=$work/report \
            "$tonemap" - -o a.nv12 --peak 1000 --hash --devices cpu:2x1 --policy static --no-cache "$@"
    ) >"$work/out" 2>"$work/err"
    status=$?
    equal "$status" 0 "$what: status"
    if grep -q 'struck [1-9]' "$work/report"; then pass; else fail "$what: the fault never struck"; fi
}
last() { tail -n 1 "$work/out" >"$work/last"; if grep -Eq -- "$1" "$work/last"; then pass; else fail "$2: the last line is '$(cat "$work/last")'"; fi; }

film >"$work/film.y4m"
run 0 'no faults' "$work/film.y4m" -o a.nv12 --peak 1000 --hash --devices cpu:2x1 --policy static
right=$(hash_of)
cp "$work/d/a.nv12" "$work/right"
last '^written ' 'no faults'

under 'a kernel that fails' 'clEnqueueNDRangeKernel device=0.1 at=20 status=CL_OUT_OF_RESOURCES' 3 --stats s.json
equal "$(hash_of)" "$right" 'a kernel that fails'
if cmp -s "$work/d/a.nv12" "$work/right"; then pass; else fail 'a kernel that fails: the file'; fi
last '^faults +[#=] [01]  .*, lost once, came back once; active at the end$' 'a kernel that fails'
if tr -d ' ' <"$work/d/s.json" | grep -q '"lost":1,"returned":1'; then pass; else fail 'a kernel that fails: statistics'; fi
if tr -d ' ' <"$work/d/s.json" | grep -q '"attempt":1,"status":"COX_OK"'; then pass; else fail 'a kernel that fails: the band again'; fi

under 'a device that vanishes' 'clEnqueueNDRangeKernel device=0.1 at=20 vanish' 0
equal "$(hash_of)" "$right" 'a device that vanishes'
last '^faults +[#=] [01]  .*, lost once; (quarantined|rebuilding) at the end$' 'a device that vanishes'

under 'a late kernel' 'clEnqueueNDRangeKernel device=0.1 at=20 late=400ms' 1 --stats s.json
equal "$(hash_of)" "$right" 'a late kernel'
last '^written ' 'a late kernel: waited for, and no fault'
if tr -d ' ' <"$work/d/s.json" | grep -q '"timeout_bands":0,.*"bands_again":0'; then pass; else fail 'a late kernel: statistics'; fi

# Its map command runs while the session is destroyed, and must find what another device's sub-buffer did not free.
under 'a kernel that ends after its device was given up' 'clEnqueueNDRangeKernel device=0.1 at=60 late=2600ms' 0
equal "$(hash_of)" "$right" 'a kernel that ends after its device was given up'
last '^faults +[#=] [01]  .*, lost once' 'a kernel that ends after its device was given up'

# After the first sixteen bands, which are given 20 s more: they may meet a compiler.
for call in 'clEnqueueNDRangeKernel device=0.1 at=60' 'clFlush device=0.1 at=60' 'clGetEventInfo device=0.1 at=120'; do
    under "a call that never returns: $call" "$call hang=forever" 0 --stats s.json
    if tr -d ' ' <"$work/d/s.json" | grep -q '"attempt":0,"status":"COX_E_TIMEOUT"'; then pass; else fail "$call: statistics"; fi
    equal "$(hash_of)" "$right" "$call hang=forever"
    has out '^faults +[#=] [01]  .*, lost once' "$call hang=forever"
done

under 'wrong bits' 'clEnqueueNDRangeKernel device=0.1 at=20 corrupt=9' 0
if [ "$(hash_of)" != "$right" ]; then pass; else fail 'wrong bits: they make no difference'; fi
under 'wrong bits, verified' 'clEnqueueNDRangeKernel device=0.1 at=20 corrupt=9' 0 --verify 1 --stats s.json
equal "$(hash_of)" "$right" 'wrong bits, verified'
has out '^faults +[#=] [01]  .*, lost once' 'wrong bits, verified'
if tr -d ' ' <"$work/d/s.json" | grep -q '"status":"COX_E_MISMATCH"'; then pass; else fail 'wrong bits, verified: statistics'; fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
