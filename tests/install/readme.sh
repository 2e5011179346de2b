#!/bin/sh
# The program in README.md is short, builds without a warning and does what the page says.
#   readme.sh CC LIBRARY SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
sed -n '/^```c$/,/^```$/p' "$source/README.md" | sed '/^```/d' >api.c
statements=$(sed -n '/^int main/,$p' api.c | grep -c ';$')
check "README.md holds no program" [ "$statements" -ge 4 ]
check "main has $statements statements, more than 12" [ "$statements" -le 12 ]
words=$(wc -w <"$source/README.md")
check "README.md has $words words, more than 600" [ "$words" -le 600 ]
expect_status 0 'it compiles' "$1" -std=c11 -Wall -Wextra -Werror -I "$source/include" api.c -o api "$2" -Wl,-rpath,"$(dirname "$2")"
expect_status 0 'it runs' ./api
contains out '^success; out\[0\] = 0xffffffff$'
finish
