#!/bin/sh
# The program in docs/guide/api.md compiles without a warning and does what the text says, with the policy in it too.
# sh api_md.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/page.sh"
program_of api.md api.c
sed -e 's/^static cox_session \*open_session/extern const struct cox_policy guided;\n&/' \
    -e 's/\.in_flight = 3/.custom_policy = \&guided, &/' api.c >policy.c
counts 2 policy.c 'guided;$|&guided,'
compile api.c -lpthread
compile policy.c -lpthread

# The functions around an AVFrame, where FFmpeg's headers are.
if pkg-config --exists 'libavcodec >= 59.37' 2>/dev/null; then
    arguments='(cox_runtime **to, struct cox_av_map *map, AVCodecContext *decoder, AVFrame *frame, void (*show)(AVFrame *))'
    {
        awk '/^## / {on = $0 ~ /FFmpeg/} on && /^    / {print substr($0, 5)} on && /^$/' "$source/docs/guide/api.md"
        echo "int use$arguments;"
        echo "int use$arguments"
        echo '{ return begin(to, map, decoder) + map_one(map, frame, frame, show); }'
    } >avframe.c
    # shellcheck disable=SC2046 # options
    expect_status 0 'the functions around an AVFrame' "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -I"$source/include" \
        $(pkg-config --cflags libavcodec libavutil) -c avframe.c -o avframe.o
fi
need_device
for name in api policy; do
    expect_status 0 "$name.c" ./$name
    cat "$work/out" "$work/err" >said
    contains said '^9100000 dark pixels, as expected$'
    lacks said 'guided' # refused splits
done
finish
