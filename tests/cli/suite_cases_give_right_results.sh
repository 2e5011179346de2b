#!/bin/sh
# Every case of cox-bench suite has the results of its reference in plain C. Hand-written OpenCL and the library give them,
# on one device and on two that share the rows. The library's two results have equal bits. No time is measured.
#   sh suite_cases_give_right_results.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
unset OCL_ICD_VENDORS
. "$source/tests/support/setups.sh"

program() { "$bin/cox-bench" suite "$@"; }

denies 1 "cases:" "an unknown case" --case fft
cases=$(grep -cE '^  [a-z0-9_]+ +[A-Za-z]+: ' "$work/err") # the message lists them
check "there are cases" [ "$cases" -ge 8 ]
denies 1 "tiny, small or large" "a size of frames" --size 640x360
expect_status 2 "a size of the suite for another command" "$bin/cox-bench" stream --size tiny

right() { # WHAT DEVICES
    run 0 "$1" --devices "$2" --size tiny --check
    counts "$cases" out '^  [a-z0-9_]+ +equal +[0-9.e+-]+$'
    contains out '^output bits: equal$' '^results: right$'
}

if able "two processors" "pocl cores"; then
    right "two processors" cpu:2x1
    right "two devices with their own memory" cpu:2x1=staged
    run 0 "one case as JSON" --devices cpu:2x1 --size tiny --case gemm --json
    counts 1 out '"case": "gemm"'
    counts 1 out '"same_output": true'
fi

if able "a processor and a device with its own memory" "pocl rusticl"; then
    show_llvmpipe
    right "a processor and a device with its own memory" cpu:1x1,llvmpipe=staged
fi

finish
