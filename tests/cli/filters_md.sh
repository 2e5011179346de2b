#!/bin/sh
# The program in docs/guide/filters.md compiles without a warning and prints what the text says.
# sh filters_md.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
lib=$1/../lib
source=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
awk '/^```c$/ {on = 1; next} /^```$/ {on = 0} on' "$source/docs/guide/filters.md" >"$work/filters.c"
# A library with a sanitizer in it wants its programs to have it too.
sanitizer=
if nm -D "$lib/libcoxswain.so" 2>/dev/null | grep -q ' U __asan_init'; then sanitizer=-fsanitize=address,undefined; fi
# shellcheck disable=SC2086 # no option is no argument
"${CC:-cc}" -std=c11 -Wall -Wextra -Werror $sanitizer -I"$source/include" "$work/filters.c" -o "$work/filters" \
    -L"$lib" -lcoxswain -Wl,-rpath,"$lib" || exit 1
"$work/filters" >"$work/out" 2>"$work/log"
status=$?
if [ $status -ne 0 ] && grep -q 'no OpenCL' "$work/log"; then
    echo "skipped running it, because this machine has no OpenCL device"
    exit 77
fi
cat "$work/log" "$work/out"
[ $status -eq 0 ] && [ "$(cat "$work/out")" = "9216 256" ]
