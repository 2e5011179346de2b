#!/bin/sh
# The program in README.md is 30-odd lines, builds without a warning and does what it says.
# readme.sh CC LIBRARY SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
sed -n '/^```c$/,/^```$/p' "$source/README.md" | sed '/^```/d' >api.c
lines=$(sed -n '/^int main/,$p' api.c | wc -l)
check "README.md holds no program" [ "$lines" -gt 10 ]
check "main has $lines lines, README.md says 30" [ "$lines" -le 30 ]
expect_status 0 'it compiles' "$1" -std=c11 -Wall -Wextra -Werror -I "$source/include" api.c -o api "$2" -Wl,-rpath,"$(dirname "$2")"
expect_status 0 'it runs' ./api
contains out '^success; out\[0\] = 0xffffffff$'
finish
