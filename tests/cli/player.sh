#!/bin/sh
# The example player gives the same frames as cox-tonemap, shows them, and reports what is wrong with a file.
#   sh player.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
need ffmpeg
need_device
clip=$data/stilllife_pq_480x270.y4m
ffmpeg -v error -stream_loop 5 -i "$clip" -c:v ffv1 -color_trc smpte2084 -color_primaries bt2020 -colorspace bt2020nc \
    film.mkv 2>"$work/err" || skip "ffmpeg cannot make a film"
expect_status 0 'the player' "$bin/player" film.mkv player.yuv
run 0 'cox-tonemap' -q film.mkv -o film.y4m
expect_status 0 'its frames' ffmpeg -v error -i film.y4m -f rawvideo tonemap.yuv
check 'no frames' [ -s player.yuv ]
same player.yuv tonemap.yuv
expect_status 0 'the player shows the film' env SDL_VIDEODRIVER=dummy timeout 600 "$bin/player" film.mkv
what='a file that is not there'
refute 'it plays' "$bin/player" "$clip.missing"
contains "$work/log" 'No such file'
finish
