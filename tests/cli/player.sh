#!/bin/sh
# The example player gives the frames that cox-tonemap gives, shows them too, and says what is wrong with a file.
# sh player.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
bin=$1
clip=$2/examples/data/stilllife_pq_480x270.y4m
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0
fail() {
    echo "FAILED: $1"
    cat "$work/log"
    echo "$passed passed, 1 failed"
    exit 1
}
ffmpeg -v error -stream_loop 5 -i "$clip" -c:v ffv1 -color_trc smpte2084 -color_primaries bt2020 -colorspace bt2020nc \
    "$work/film.mkv" >"$work/log" 2>&1 || { echo "skipped, because ffmpeg cannot make a film"; exit 77; }
"$bin/player" "$work/film.mkv" "$work/player.yuv" >"$work/log" 2>&1
status=$?
if [ $status -ne 0 ] && ! "$bin/hello" >/dev/null 2>&1; then
    echo "skipped, because this machine has no OpenCL device"
    exit 77
fi
[ $status -eq 0 ] || fail "the player does not play"
"$bin/cox-tonemap" -q "$work/film.mkv" -o "$work/film.y4m" >"$work/log" 2>&1 || fail "cox-tonemap does not map the film"
ffmpeg -v error -i "$work/film.y4m" -f rawvideo "$work/tonemap.yuv" >"$work/log" 2>&1 || fail "ffmpeg does not read the y4m"
[ -s "$work/player.yuv" ] && cmp "$work/player.yuv" "$work/tonemap.yuv" >"$work/log" 2>&1 || fail "other frames than cox-tonemap's"
passed=$((passed + 1))
SDL_VIDEODRIVER=dummy timeout 300 "$bin/player" "$work/film.mkv" >"$work/log" 2>&1 || fail "the player does not show the film"
passed=$((passed + 1))
"$bin/player" "$clip.missing" 2>"$work/log" && fail "a file that is not there plays"
grep -q 'No such file' "$work/log" || fail "it does not say what is wrong"
passed=$((passed + 1))
echo "$passed passed, 0 failed"
