#!/bin/sh
# What cox-bench guides writes and refuses: every cell a figure or why there is none, every output right, a page with each
# experiment. No figure is looked at: it would depend on what else the machine does.
# sh bench_guides.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
bench=$(cd "$1" && pwd)/cox-bench
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE POCL_DEVICES OCL_ICD_VENDORS
passed=0
failed=0

# verdict NAME: of the last command
verdict() {
    if [ $? -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1"
        sed 's/^/    err: /' "$work/err" | cut -c 1-300
    fi
}

# run STATUS NAME ARGS...
run() {
    expected=$1
    what=$2
    shift 2
    (cd "$work" && "$bench" guides "$@") >"$work/out" 2>"$work/err" </dev/null
    [ $? -eq "$expected" ]
    verdict "$what: another exit status than $expected"
}

# shows FILE PATTERN
shows() {
    grep -q -- "$2" "$work/$1"
    verdict "$what: no '$2' in its $1"
}

run 0 "help" --help
shows out "Usage: cox-bench guides"
run 2 "an unknown option" --fast
shows err "cox-bench guides --help"
run 2 "a word too much" --quick all
shows err "'all'"
run 2 "an unknown experiment" --only scan,music
shows err "'music'"
shows err "transpose"
run 2 "quiet for ever" --quiet ever
shows err "'ever'"
run 2 "page and JSON in one file" -o same --json same
run 1 "an unknown device" --devices no-such-device
run 1 "a page where no folder is" --quick --devices cpu --only pointers -o no/such/page.html
shows err "no/such/page.html"
[ ! -e "$work/cox-guides.html" ]
verdict "a page although the command failed"

run 0 "every experiment" --quick --devices cpu -o page.html --json figures.json
shows out "^  ceilings  *A copy does"
for key in ceilings vectors unroll functions pointers blur edges shapes images transpose scan sizes global_memory \
    local_memory local_fill transfers clocks cold; do
    what="the page"
    shows page.html "<section id=\"$key\">"
    what="the JSON"
    shows figures.json "\"key\": \"$key\""
done
! grep -Eq '(src|href)="[^#]' "$work/page.html"
verdict "the page refers to something elsewhere"

# Each cell is one line: measured with figures, or not offered with a reason.
grep '"status":' "$work/figures.json" >"$work/cells"
[ "$(wc -l <"$work/cells")" -ge 100 ]
verdict "fewer than 100 cells"
figure='[0-9.]*[1-9][0-9.]*'
quartiles='{"median": '$figure', "q1": '$figure', "q3": '$figure'}'
measured='"status": "measured", "value": '$quartiles', "speed_over_first": '$quartiles', "rounds": 5, '
not_offered='"status": "not offered", "why": "[^"]'
grep -Ev "$measured|$not_offered" "$work/cells" >"$work/err"
[ ! -s "$work/err" ]
verdict "cells that are neither"
grep -q "$measured" "$work/cells"
verdict "nothing was measured"

if command -v python3 >/dev/null; then
    python3 -c 'import json, sys, xml.dom.minidom
json.load(open(sys.argv[1])), xml.dom.minidom.parse(sys.argv[2])' "$work/figures.json" "$work/page.html" 2>"$work/err"
    verdict "JSON or page cannot be parsed"
fi

# PoCL 3.1 ends a process that writes an image of a sub-device.
if [ "$(nproc)" -ge 2 ]; then
    run 0 "a sub-device" --quick --devices cpu:1x1 --only images,transfers,cold --json part.json
    shows part.json '"key": "buffer_copy".*"status": "measured"'
else
    echo "skipped, because there is one processor: a sub-device"
fi

run 0 "one experiment, the page on standard output" --quick --devices cpu --only pointers -o -
shows out "</html>"
shows out "<section id=\"pointers\">"

# Three bits of what a kernel writes are wrong: it is said, the figure is left out.
layer=$(cd "${COX_TEST_LAYER_DIR:-$1/../tests/layers}" 2>/dev/null && pwd)/layer_fault.so
if [ -f "$layer" ]; then
    export OPENCL_LAYERS="$layer" COX_FAULT_PLAN='plan: kernel from=6 corrupt=3'
    run 1 "wrong bits" --quick --devices cpu --only transpose -o wrong.html --json wrong.json
    shows err "transpose, reading_rows: wrong: wrong from value"
    shows wrong.json '"status": "wrong", "why": "wrong from value'
    shows wrong.html "<b>WRONG</b>"
    export COX_FAULT_PLAN='plan: kernel from=6 count=1 error=CL_OUT_OF_RESOURCES'
    run 1 "a launch that fails" --quick --devices cpu --only transpose -o failed.html --json failed.json
    shows failed.json '"status": "failed", "why": "clEnqueueNDRangeKernel: out of resources (-5)"'
    shows failed.json "$measured"
    unset OPENCL_LAYERS COX_FAULT_PLAN
else
    echo "skipped, because the fault layer is not built: wrong bits"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
