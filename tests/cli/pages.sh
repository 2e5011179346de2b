#!/bin/sh
# The programs in docs/guide/api.md and docs/guide/filters.md compile without a warning and do what the pages say. The
# functions in docs/guide/video.md compile as well.
#   sh pages.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
lib=$bin/../lib
# If the library was built with a sanitizer, its programs need the same one.
sanitizer=
if nm -D "$lib/libcoxswain.so" 2>/dev/null | grep -q ' U __asan_init'; then sanitizer=-fsanitize=address,undefined; fi

# program_of PAGE FILE: the C code in that page.
program_of() { awk '/^```c$/ {on = 1; next} /^```$/ {on = 0} on' "$source/docs/guide/$1" >"$2"; }

# compile FILE OPTIONS...: compile with the library, without a warning. The program gets the name without .c
compile() {
    h_program=$1
    shift
    # shellcheck disable=SC2086 # no option is no argument
    expect_status 0 "compiling $h_program" "${CC:-cc}" -std=c11 -Wall -Wextra -Werror $sanitizer -I"$source/include" "$h_program" \
        -o "${h_program%.c}" -L"$lib" -lcoxswain -Wl,-rpath,"$lib" "$@"
}

# --- filters.md ---

program_of filters.md filters.c
compile filters.c

# --- api.md: unchanged, and with a pass that is not fused ---

program_of api.md api.c
sed -e 's/, \.done = use_peak//' -e 's/\.fused = true,/.done = use_peak,/' api.c >exchange.c
counts 1 exchange.c 'done = use_peak'
lacks exchange.c 'fused'
for name in api exchange; do
    compile $name.c -lpthread
done

# The functions around an AVFrame, if FFmpeg's headers are there.
if pkg-config --exists 'libavcodec >= 59.37' 2>/dev/null; then
    arguments='(cox_runtime **to, struct cox_av_map *map, AVCodecContext *decoder, AVFrame *frame, void (*show)(AVFrame *))'
    {
        awk '/^## / {on = $0 ~ /FFmpeg/} on && /^    / {print substr($0, 5)} on && /^$/' "$source/docs/guide/video.md"
        echo "int use$arguments;"
        echo "int use$arguments"
        echo '{ return begin(to, map, decoder) + map_one(map, frame, frame, show); }'
    } >avframe.c
    # shellcheck disable=SC2046 # options
    expect_status 0 'the functions around an AVFrame' "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -I"$source/include" \
        $(pkg-config --cflags libavcodec libavutil) -c avframe.c -o avframe.o
fi

# --- What the programs print ---

need_device
for name in api exchange; do
    expect_status 0 "$name.c" ./$name
    contains out '^peaks add up to 3480, 0 frames wrong$'
done
expect_status 0 'the program' ./filters
equal "$(cat "$work/out")" '9216 256'
finish
