#!/bin/sh
# Which stream of a container is the film, and what a container says about it. Usage:
#   sh video_streams.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/tonemap.sh"
need_device
need ffmpeg ffprobe python3
need_libavformat
make() { ffmpeg -v error -y "$@" 2>"$work/err" || skip "this ffmpeg cannot make the clips"; }
# picture SIZE: options for half a second of this size; hdr: its colours.
picture() { echo "-f lavfi -i testsrc2=s=$1:r=24:d=0.5,format=yuv420p10le"; }
hdr='-color_trc smpte2084 -color_primaries bt2020 -colorspace bt2020nc'

# --- Several streams ---

make $(picture 64x48) $(picture 96x64) -f lavfi -i sine=d=0.5 -map 2 -map 0 -map 1 -c:v ffv1 -c:a aac $hdr "$work/two.mkv"
run 0 'a film of two' "$work/two.mkv" -o a.mkv
contains err 'stream 2 of the source is another video stream'
contains out '^video .*: 64 x 48'
clean
for stream in 1 2; do
    run 0 "stream $stream" "$work/two.mkv" -o a.mkv --stream $stream
    contains err "stream $((3 - stream)) of the source is another video stream"
    contains out "^video .*: $((32 + 32 * stream)) x $((32 + 16 * stream))" '1 stream copied'
    clean
done
for stream in 0 9; do
    refuses 1 "stream $stream is not video .* are 1 \(ffv1, 64 x 48, bt2020, smpte2084\); 2 \(ffv1, 96 x 64, " \
        "stream $stream" "$work/two.mkv" -o a.mkv --stream $stream
done
refuses 2 "--stream 'first': expected the number" 'a word' "$work/two.mkv" -o a.mkv --stream first
refuses 2 '--stream cannot be combined with --scene' 'a scene file' "$work/two.mkv" -o a.mkv --stream 1 --scene a
refuses 2 '--stream is not an option of cox-tonemap map' 'a piece' map "$work/two.mkv" -o a.mkv --scene a --stream 1
make -i "$work/two.mkv" -map 0:1 -strict -1 "$work/film.y4m"
refuses 1 '--stream is for containers, but .* is y4m' 'y4m' "$work/film.y4m" -o a.mkv --stream 0

# Thumbnails and covers are not the film, even if they come first and are large.
make -f lavfi -i testsrc2=s=640x480:r=24:d=0.5 -i "$work/two.mkv" -map 0 -map 1:1 -c:v:0 mjpeg -q:v 1 -c:v:1 copy \
    "$work/thumbnails.mkv"
run 0 'thumbnails' "$work/thumbnails.mkv" -o null:
contains out '^video .*: 64 x 48, ffv1'
make -f lavfi -i color=red:s=640x480 -frames:v 1 "$work/cover.jpg"
make -i "$work/two.mkv" -map 0:1 -c:v libx264 "$work/film.mp4"
make -i "$work/cover.jpg" -i "$work/film.mp4" -map 0 -map 1 -c copy -disposition:v:0 attached_pic "$work/cover.mp4"
run 0 'a cover' "$work/cover.mp4" -o null:
contains out '^video .*: 64 x 48, h264'
finish
