#!/bin/sh
# What cox-bench prints and refuses. Also that the library allocates nothing per frame and computes the same bits. The
# limits for times apply to a quiet machine, so this test does not check them.
#   sh bench.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/harness.sh"
unset OCL_ICD_VENDORS

program() { "$bin/cox-bench" "$@"; }

denies 2 Usage "no command"
run 2 "unknown command" run
run 2 "two commands" split overhead
run 2 "unknown option" split --fast
prints "^overhead  " "help" --help
denies 2 "'many'" "frames not a number" split --frames many
run 2 "too few frames" overhead --frames 3
run 2 "ratio out of range" split --ratio 0
run 2 "a size without a height" kernels --size 640
denies 2 "'640x360x2'" "a size with something after it" kernels --size 640x360x2
run 2 "too large a size" kernels --size 99999x360
run 2 "no frame in flight" stream --in-flight 0
denies 2 "'9'" "too many frames in flight" stream --in-flight 9
denies 2 "video or pictures" "unknown kernel" stream --kernel films
denies 2 "mean10" "unknown policy" split --policy fastest
denies 1 no-such-device "unknown device" overhead --devices no-such-device
denies 1 "two devices are needed" "one device is not two" split --devices cpu:1x1

run 0 "overhead" overhead --devices cpu --frames 20 --json
counts 3 out '"same_output": 1'
counts 3 out '"hand_blocking_visible"'
if grep -q '"library_allocations_per_frame": null' "$work/out"; then
    leave_out "that there are no allocations" "this build cannot count them"
else
    # On a busy machine a driver's callback may be so late that the next band needs another record. Otherwise there are
    # none.
    counts 3 out '"library_allocations_per_frame": 0[.]0'
fi
prints "blocking, p50 over hand-written" "overhead as text" overhead --devices cpu --frames 20 --calls
counts 3 out '^  noticed after its end'
counts 3 out '^  library, blocking: clEnqueueNDRangeKernel 1.00 x [0-9.]* us, '
counts 3 out '^  hand-written, blocking: clEnqueueNDRangeKernel 1.00 x [0-9.]* us, '

prints "destroying an unused buffer during 3 frames" "finish" finish --devices cpu
contains out "cancelling 16 frames of [0-9]* ms and destroying the session"

run 0 "resize" resize --devices cpu --frames 10
contains out "with its predecessor" "bar: at most 2 frames, "
run 0 "start" start --devices cpu --size 320x180
contains out "^blocking   cox_session_create returned after " "^background cox_session_create returned after "
contains out "bar: in the background, return within 5 ms, "
run 0 "frames" frames --devices cpu --frames 10 --size 320x180
layer=${COX_TEST_LAYER_DIR:-$bin/../tests/layers}/layer_fault.so
if [ -f "$layer" ]; then
    export OPENCL_LAYERS="$layer" COX_FAULT_PLAN="plan: clEnqueueNDRangeKernel at=40 error=CL_OUT_OF_RESOURCES"
    denies 1 "a device failed" "a device that fails" frames --devices cpu --frames 10 --size 320x180
    unset OPENCL_LAYERS COX_FAULT_PLAN
fi
run 0 "passes on one device" passes --devices cpu --size 320x200 --frames 10
contains out "an empty second pass, .* us \(" "two sessions one after the other: [0-9.]* times"
counts 1 out "ms per frame"

if [ "$(getconf _NPROCESSORS_ONLN)" -lt 2 ]; then
    leave_out "cox-bench split" "there is one processor"
else
    run 0 "passes" passes --devices cpu:2x1 --size 320x200 --frames 10 --json
    counts 26 out '"ms": [0-9]*\.[0-9]*'
    contains out "each pass on a device, over the slower"
    run 0 "split" split --frames 10 --json
    counts 1 out '"same_output": 1'
    counts 17 out '"device_0_rows"'
    run 0 "split as text" split --frames 10 --policy last-frame --ratio 2
    contains out "policy last-frame" "T / T_oracle"
fi

# valid_json: the output is valid JSON; needs Python, otherwise nothing is checked.
valid_json() { ! command -v python3 >/dev/null || check "its JSON is invalid" python3 -m json.tool "$work/out"; }

# A row of cox-bench stream after its name: frames per second with their range, then five more figures.
row=' *[1-9][0-9.]* \( *[0-9.]* \.\. *[0-9.]*\)( *[0-9.]*){5}$'
small="--size 256x128 --frames 10"
run 0 "stream, one staged device" stream $small --devices cpu=staged
counts 4 out '^[1236] in flight '
counts 4 out "^  hand-written, device 0 $row"
counts 4 out "^  library, single, device 0 $row"
counts 1 out "^  library, single, device 0, timed $row"
counts 4 out "^  library, adaptive, 1 device $row"
counts 4 out "^  library, ewma, 1 device $row"
counts 2 out 'for each staged band, 3 in flight: .*: (met|MISSED)$'
counts 1 out '^library over hand-written, one staged device \(0\), 3 in flight: '
counts 2 out '^copies (in|out), device 0: '
counts 1 out '^not measured: one staged device: '
counts 1 out '^output bits: equal$'
run 0 "stream of pictures as JSON" stream $small --devices cpu=staged --kernel pictures --in-flight 3 --json
valid_json
counts 5 out '"in_flight": 3'
counts 5 out '"clEnqueueNDRangeKernel": 1.000000'
counts 1 out '"same_output": true'
if [ "$(getconf _NPROCESSORS_ONLN)" -lt 2 ]; then
    leave_out "cox-bench stream on two devices" "there is one processor"
else
    run 0 "stream, two staged devices" stream $small --devices cpu:2x1=staged --in-flight 3
    counts 2 out "^  hand-written, device [01] $row"
    counts 1 out "^  hand-written, 2 staged devices $row"
    counts 2 out "^  library, single, device [01] $row"
    counts 1 out "^  library, adaptive, 2 staged devices $row"
    counts 1 out "^  library, ewma, 2 devices $row"
    counts 1 out '^library over hand-written, all 2 staged devices, 3 in flight: '
    counts 1 out '^their gain over the best one, library over hand-written, 3 in flight: '
    counts 1 out '^output bits: equal$'
    run 0 "stream, two staged devices of odd rows as JSON" stream --size 251x127 --frames 10 \
        --devices cpu:2x1=staged --in-flight 2 --policy last-frame --json
    valid_json
    counts 3 out '"name": "hand-written'
    counts 1 out '"name": "library, last-frame, 2 devices"'
    counts 1 out '"same_output": true'
    run 0 "stream, no staged device" stream $small --devices cpu:2x1 --in-flight 3
    counts 0 out 'hand-written, '
    counts 2 out "^  library, single, device [01] $row"
    counts 2 out "^  library, (adaptive|ewma), 2 devices $row"
    counts 2 out 'mean interval over the best device.s, 3 in flight: '
    counts 2 out 'p99 interval over the best device.s, 3 in flight: '
    counts 1 out '^not measured: no staged device: '
    counts 1 out '^output bits: equal$'
fi

run 0 "kernels" kernels --devices cpu --frames 10 --size 640x360 --json
counts 6 out '"multiply_adds": '
counts 11 out '"kernel": '
counts 8 out '"binds": "(memory|arithmetic|neither)"'
counts 17 out '"fps": [1-9]'
counts 4 out '"ratio": [0-9]'
counts 0 out '"gbs": 0\.000000'
valid_json
run 0 "kernels as text" kernels --devices cpu --frames 10 --size 640x360
for name in "copy" "copy \+ 24 multiply-adds" "picture, half to 8 bits" "picture, float to 8 bits" \
    "picture, half to 16 bits" "picture histogram, half" "video, PQ" "video, PQ, with analysis" \
    "video, PQ, analysis alone" "video, HLG" "blur of radius 15, separable" "Gaussian, recursive, in blocks" \
    "Gaussian, recursive, by lines"; do
    counts 1 out "^  $name  *[1-9][0-9.]* "
done
for format in "half to 8 bits" "float to 8 bits" "half to 16 bits" "float to 16 bits"; do
    counts 1 out "^  vectors over scalars, $format .* times as fast, at least 1.50: (met|MISSED)$"
done

finish
