#!/bin/sh
# The program in README.md is 30-odd lines, builds without a warning and does what it says.
# readme.sh CC LIBRARY SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sed -n '/^```c$/,/^```$/p' "$3/README.md" | sed '/^```/d' >"$dir/api.c"
lines=$(sed -n '/^int main/,$p' "$dir/api.c" | wc -l)
[ "$lines" -gt 10 ] || { echo "README.md holds no program"; exit 1; }
[ "$lines" -le 30 ] || { echo "main has $lines lines, README.md says 30"; exit 1; }
"$1" -std=c11 -Wall -Wextra -Werror -I "$3/include" "$dir/api.c" -o "$dir/api" "$2" -Wl,-rpath,"$(dirname "$2")"
"$dir/api" | tee "$dir/out"
grep -qx 'success; out\[0\] = 0xffffffff' "$dir/out"
