#!/bin/sh
# Programs in the pages of docs/guide, under the harness: sourced in its place.
#
#   program_of PAGE FILE      the C in that page
#   compile FILE OPTIONS...   with the library, without a warning; the program has the name without .c
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
lib=$bin/../lib
# A library with a sanitizer in it wants its programs to have it too.
sanitizer=
if nm -D "$lib/libcoxswain.so" 2>/dev/null | grep -q ' U __asan_init'; then sanitizer=-fsanitize=address,undefined; fi

program_of() { awk '/^```c$/ {on = 1; next} /^```$/ {on = 0} on' "$source/docs/guide/$1" >"$2"; }

compile() {
    h_program=$1
    shift
    # shellcheck disable=SC2086 # no option is no argument
    expect_status 0 "compiling $h_program" "${CC:-cc}" -std=c11 -Wall -Wextra -Werror $sanitizer -I"$source/include" "$h_program" \
        -o "${h_program%.c}" -L"$lib" -lcoxswain -Wl,-rpath,"$lib" "$@"
}
