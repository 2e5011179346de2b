#!/bin/sh
# What cox-bench prints and refuses; that the library allocates nothing per frame and computes the same bits. Its bars on
# time are for a quiet machine, not for a test.   sh bench.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
bench=$(cd "$1" && pwd)/cox-bench
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE POCL_DEVICES OCL_ICD_VENDORS
passed=0
failed=0

# run STATUS NAME ARGS...
run() {
    expected=$1
    what=$2
    shift 2
    "$bench" "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    if [ "$status" -eq "$expected" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what: status $status instead of $expected"
        sed 's/^/    err: /' "$work/err" | cut -c 1-300
    fi
}

# shows FILE PATTERN
shows() {
    if grep -q -- "$2" "$work/$1"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what: no '$2' in its $1:"
        sed 's/^/    /' "$work/$1" | cut -c 1-300
    fi
}

# count FILE PATTERN NUMBER
count() {
    found=$(grep -c -- "$2" "$work/$1")
    if [ "$found" -eq "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what: '$2' $found times instead of $3 in its $1:"
        sed 's/^/    /' "$work/$1" | cut -c 1-300
    fi
}

run 2 "no command"
shows err Usage
run 2 "unknown command" run
run 2 "two commands" split overhead
run 2 "unknown option" split --fast
run 0 "help" --help
shows out "overhead|split|stream|kernels"
run 2 "frames not a number" split --frames many
shows err "'many'"
run 2 "too few frames" overhead --frames 3
run 2 "ratio out of range" split --ratio 0
run 2 "a size without a height" kernels --size 640
run 2 "a size with something after it" kernels --size 640x360x2
shows err "'640x360x2'"
run 2 "too large a size" kernels --size 99999x360
run 2 "no frame in flight" stream --in-flight 0
run 2 "too many frames in flight" stream --in-flight 9
shows err "'9'"
run 2 "unknown kernel" stream --kernel films
shows err "video or pictures"
run 2 "unknown policy" split --policy fastest
shows err "mean10"
run 1 "unknown device" overhead --devices no-such-device
shows err no-such-device
run 1 "one device is not two" split --devices cpu:1x1
shows err "two are needed"

run 0 "overhead" overhead --devices cpu --frames 20 --json
count out '"same_output": 1' 3
count out '"hand_blocking_visible"' 3
if grep -q '"library_allocations_per_frame": null' "$work/out"; then
    echo "skipped, because this build cannot count allocations: that there are none"
else
    # None but where, on a busy machine, a driver's callback is so late that another record is needed for the next one.
    count out '"library_allocations_per_frame": 0[.]0' 3
fi
run 0 "overhead as text" overhead --devices cpu --frames 20 --calls
shows out "blocking, p50 over hand-written"
count out '^  noticed after its end' 3
count out '^  library, blocking: clEnqueueNDRangeKernel 1.00 x [0-9.]* us, ' 3
count out '^  hand-written, blocking: clEnqueueNDRangeKernel 1.00 x [0-9.]* us, ' 3

run 0 "finish" finish --devices cpu
shows out "a buffer that no frame uses, destroyed beside 3 frames"
shows out "16 frames of [0-9]* ms under way, cancelled, and the session destroyed"

run 0 "resize" resize --devices cpu --frames 10
shows out "with its predecessor"
shows out "bar: at most 2 frames, "
run 0 "start" start --devices cpu --size 320x180
shows out "^blocking  cox_session_create returned after "
shows out "^ready     cox_session_create returned after "
shows out "bar: with ready it returns within 5 ms, "
run 0 "frames" frames --devices cpu --frames 10 --size 320x180
run 0 "passes on one device" passes --devices cpu --size 320x200 --frames 10
shows out "an empty second pass, .* us ("
shows out "two sessions one after the other: [0-9.]* times"
count out "ms a frame" 1

if [ "$(getconf _NPROCESSORS_ONLN)" -lt 2 ]; then
    echo "skipped, because there is one processor: cox-bench split"
else
    run 0 "passes" passes --devices cpu:2x1 --size 320x200 --frames 10 --json
    count out '"ms": [0-9]*\.[0-9]*' 26
    shows out "each pass on a device, over the slower"
    run 0 "split" split --frames 10 --json
    count out '"same_output": 1' 1
    count out '"device_0_rows"' 17
    run 0 "split as text" split --frames 10 --policy last-frame --ratio 2
    shows out "policy last-frame"
    shows out "T / T_oracle"
fi

# valid_json: of the output, where there is a Python to read it.
valid_json() {
    command -v python3 >/dev/null || return 0
    if python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/out"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what: its JSON is none"
    fi
}

# What a row of cox-bench stream holds after its name: frames a second with their range, and five more figures.
row=' *[1-9][0-9.]* ( *[0-9.]* \.\. *[0-9.]*)\( *[0-9.]*\)\{5\}$'
small="--size 256x128 --frames 10"
# shellcheck disable=SC2086
run 0 "stream, one staged device" stream $small --devices cpu=staged
count out '^[1236] in flight ' 4
count out "^  hand-written, device 0 $row" 4
count out "^  library, single, device 0 $row" 4
count out "^  library, single, device 0, timed $row" 1
count out "^  library, adaptive, 1 device $row" 4
count out "^  library, ewma, 1 device $row" 4
count out 'for each staged band, 3 in flight: .*: \(met\|MISSED\)$' 2
count out '^library over hand-written, one staged device (0), 3 in flight: ' 1
count out '^copies \(in\|out\), device 0: ' 2
count out '^left out: one staged device: ' 1
count out '^output bits: equal$' 1
# shellcheck disable=SC2086
run 0 "stream of pictures as JSON" stream $small --devices cpu=staged --kernel pictures --in-flight 3 --json
valid_json
count out '"in_flight": 3' 5
count out '"clEnqueueNDRangeKernel": 1.000000' 5
count out '"same_output": true' 1
if [ "$(getconf _NPROCESSORS_ONLN)" -lt 2 ]; then
    echo "skipped, because there is one processor: cox-bench stream on two devices"
else
    # shellcheck disable=SC2086
    run 0 "stream, two staged devices" stream $small --devices cpu:2x1=staged --in-flight 3
    count out "^  hand-written, device [01] $row" 2
    count out "^  hand-written, 2 staged devices $row" 1
    count out "^  library, single, device [01] $row" 2
    count out "^  library, adaptive, 2 staged devices $row" 1
    count out "^  library, ewma, 2 devices $row" 1
    count out '^library over hand-written, all 2 staged devices, 3 in flight: ' 1
    count out '^their gain over the best one, library over hand-written, 3 in flight: ' 1
    count out '^output bits: equal$' 1
    # shellcheck disable=SC2086
    run 0 "stream, two staged devices of odd rows as JSON" stream --size 251x127 --frames 10 \
        --devices cpu:2x1=staged --in-flight 2 --policy last-frame --json
    valid_json
    count out '"name": "hand-written' 3
    count out '"name": "library, last-frame, 2 devices"' 1
    count out '"same_output": true' 1
    # shellcheck disable=SC2086
    run 0 "stream, no staged device" stream $small --devices cpu:2x1 --in-flight 3
    count out 'hand-written, ' 0
    count out "^  library, single, device [01] $row" 2
    count out "^  library, \(adaptive\|ewma\), 2 devices $row" 2
    count out 'mean interval over the best device.s, 3 in flight: ' 2
    count out 'p99 interval over the best device.s, 3 in flight: ' 2
    count out '^left out: no staged device: ' 1
    count out '^output bits: equal$' 1
fi

run 0 "kernels" kernels --devices cpu --frames 10 --size 640x360 --json
count out '"multiply_adds": ' 6
count out '"kernel": ' 11
count out '"binds": "\(memory\|arithmetic\|neither\)"' 8
count out '"fps": [1-9]' 17
count out '"gbs": 0\.000000' 0
valid_json
run 0 "kernels as text" kernels --devices cpu --frames 10 --size 640x360
for name in "copy" "copy + 24 multiply-adds" "picture, half to 8 bits" "picture, float to 8 bits" \
    "picture, half to 16 bits" "picture histogram, half" "video, PQ" "video, PQ, with analysis" \
    "video, PQ, analysis alone" "video, HLG" "blur of radius 15, separable" "Gaussian, recursive, in blocks" \
    "Gaussian, recursive, by lines"; do
    count out "^  $name  *[1-9][0-9.]* " 1
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
