#!/bin/sh
# What cox-bench guides writes and refuses. Each cell holds a figure or a reason, each output is right, and the page
# shows each experiment. The figures are not checked, because they depend on the load of the machine.
#   sh bench_guides.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
unset OCL_ICD_VENDORS

program() { "$bin/cox-bench" guides "$@"; }

prints "Usage: cox-bench guides" "help" --help
denies 2 "cox-bench guides --help" "an unknown option" --fast
denies 2 "'all'" "a word too much" --quick all
denies 2 "'music'" "an unknown experiment" --only scan,music
contains err "transpose"
denies 2 "'ever'" "quiet for ever" --quiet ever
run 2 "page and JSON in one file" -o same --json same
run 1 "an unknown device" --devices no-such-device
denies 1 "no/such/page.html" "a page where no folder is" --quick --devices cpu --only pointers -o no/such/page.html
refute "a page although the command failed" [ -e cox-guides.html ]

prints "^  ceilings  *A copy reaches" "every experiment" --quick --devices cpu -o page.html --json figures.json
for key in ceilings vectors unroll functions pointers blur edges shapes images transpose scan sizes global_memory \
    local_memory local_fill transfers clocks cold; do
    contains page.html "<section id=\"$key\">"
    contains figures.json "\"key\": \"$key\""
done
lacks page.html '(src|href)="[^#]' # links to other pages

# Each cell is one line: measured, with figures, or not offered, with a reason.
grep '"status":' figures.json >cells
check "fewer than 100 cells" [ "$(wc -l <cells)" -ge 100 ]
figure='[0-9.]*[1-9][0-9.]*'
quartiles='\{"median": '$figure', "q1": '$figure', "q3": '$figure'\}'
measured='"status": "measured", "value": '$quartiles', "speed_over_first": '$quartiles', "rounds": 5, '
not_offered='"status": "not offered", "why": "[^"]'
equal "$(grep -Ev "$measured|$not_offered" cells)" "" "cells that are neither"
contains cells "$measured"

if command -v python3 >/dev/null; then
    check "JSON or page cannot be parsed" python3 -c 'import json, sys, xml.dom.minidom
json.load(open(sys.argv[1])), xml.dom.minidom.parse(sys.argv[2])' figures.json page.html
fi

# PoCL 3.1 crashes when an image of a sub-device is written.
if [ "$(nproc)" -ge 2 ]; then
    run 0 "a sub-device" --quick --devices cpu:1x1 --only images,transfers,cold --json part.json
    contains part.json '"key": "buffer_copy".*"status": "measured"'
else
    leave_out "a sub-device" "there is one processor"
fi

run 0 "one experiment, the page on standard output" --quick --devices cpu --only pointers -o -
contains out "</html>" "<section id=\"pointers\">"

# The fault layer makes three bits of a kernel's output wrong. The page must say so and leave out the figure.
layer=${COX_TEST_LAYER_DIR:-$bin/../tests/layers}/layer_fault.so
if [ -f "$layer" ]; then
    export OPENCL_LAYERS="$layer" COX_FAULT_PLAN='plan: kernel from=6 corrupt=3'
    denies 1 "transpose, reading_rows: wrong: wrong from value" "wrong bits" --quick --devices cpu --only transpose \
        -o wrong.html --json wrong.json
    contains wrong.json '"status": "wrong", "why": "wrong from value'
    contains wrong.html "<b>WRONG</b>"
    export COX_FAULT_PLAN='plan: kernel from=6 count=1 error=CL_OUT_OF_RESOURCES'
    run 1 "a launch that fails" --quick --devices cpu --only transpose -o failed.html --json failed.json
    contains failed.json '"status": "failed", "why": "clEnqueueNDRangeKernel: out of resources \(-5\)"' "$measured"
else
    leave_out "wrong bits" "the fault layer is not built"
fi
finish
