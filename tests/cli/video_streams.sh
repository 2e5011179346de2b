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
clean

# --- Crop ---

# crop FROM TO LEFT RIGHT TOP BOTTOM [WIDTH HEIGHT]: the same film with a crop of Matroska, and a display size. The bytes
# come from the filler in front of the tracks.
crop() {
    python3 - "$work/$1" "$work/$2" "$3" "$4" "$5" "$6" "${7:-0}" "${8:-0}" <<'END'
import sys
data = open(sys.argv[1], "rb").read()
def number(at, mask):
    more = 8 - data[at].bit_length()
    value = data[at] & (0x7f >> more) if mask else data[at]
    return int.from_bytes(bytes([value]) + data[at + 1:at + 1 + more], "big"), at + 1 + more
def elements(at, end):
    while at < end:
        begin, (id, at) = at, number(at, False)
        length, at = number(at, True)
        yield id, begin, at, min(at + length, end)
        at += length
def element(id, content):
    return bytes.fromhex(id) + (len(content) | 1 << 56).to_bytes(8, "big") + content
def find(id, at, end):
    return next(e for e in elements(at, end) if e[0] == id)
segment = find(0x18538067, 0, len(data))
void, tracks = find(0xec, *segment[2:]), find(0x1654ae6b, *segment[2:])
track = find(0xae, *tracks[2:])
video = find(0xe0, *track[2:])
values = dict(zip(("54cc", "54dd", "54bb", "54aa", "54b0", "54ba"), map(int, sys.argv[3:])))
kept = b"".join(data[e[1]:e[3]] for e in elements(*video[2:]) if e[0] not in (0x54b0, 0x54ba, 0x54b2))
kept += b"".join(element(id, value.to_bytes(2, "big")) for id, value in values.items() if value)
made = data[track[2]:video[1]] + element("e0", kept) + data[video[3]:track[3]]
made = element("1654ae6b", element("ae", made) + data[track[3]:tracks[3]])
filler = void[3] - void[1] - 9 - (len(made) - (tracks[3] - tracks[1]))
open(sys.argv[2], "wb").write(data[:void[1]] + element("ec", bytes(filler)) + data[void[3]:tracks[1]] + made + data[tracks[3]:])
END
}
size() { ffprobe -v error -select_streams v -show_entries stream=width,height,sample_aspect_ratio -of csv=p=0 "$1"; }
make $(picture 96x64) -c:v ffv1 $hdr -reserve_index_space 400 "$work/whole.mkv"
make $(picture 96x64) -vf crop=76:36:8:16 -c:v ffv1 $hdr "$work/cropped.mkv"
run 0 'cropped before' "$work/cropped.mkv" -o null: --hash
expected=$(hash_of)
crop whole.mkv crop.mkv 8 12 16 12
hashes "$expected" 'a crop' "$work/crop.mkv" -o null:
contains out '^video .*: 76 x 36'
hashes "$expected" 'a crop, copied for the devices' "$work/crop.mkv" -o null: --devices cpu=staged
run 0 'a crop of a finished file' "$work/crop.mkv" -o a.mkv
equal "$(size a.mkv)" 76,36,1:1 'size and shape'
crop whole.mkv crop.mkv 8 12 16 12 152 36
run 0 'a crop of wide samples' "$work/crop.mkv" -o b.mkv
equal "$(size b.mkv)" 76,36,2:1 'size and shape of wide samples'
crop whole.mkv crop.mkv 60 60 0 0
run 0 'a crop that leaves nothing' "$work/crop.mkv" -o null:
contains out '^video .*: 96 x 64'
clean

# --- Odd sizes ---

printf 'YUV4MPEG2 W37 H21 F25:1 Ip A1:1 C420p10\nFRAME\n%2390s' '' >"$work/odd.y4m"
refuses 1 'encoder libx264 does not accept frames of 37 x 21 pixels.*; use --scale 38x22' 'an odd size' \
    "$work/odd.y4m" -o a.mkv
run 0 'the size that it names' "$work/odd.y4m" -o a.mkv --scale 38x22
clean

# --- Titles ---

titles() { ffprobe -v error -show_entries stream_tags=$2 -of csv=p=0 "$1" | tr '\n' ' '; }
make $(picture 64x48) -f lavfi -i sine=d=0.5 -map 0 -map 1 -c:v libx264 -c:a aac $hdr -metadata:s:v title=Picture \
    -metadata:s:a title=Commentary "$work/titles.mkv"
make -i "$work/titles.mkv" -c copy "$work/titles.mp4"
for from in mkv mp4; do
    run 0 "titles of $from in Matroska" "$work/titles.$from" -o a.mkv
    equal "$(titles a.mkv title)" 'Picture Commentary ' "titles of $from"
    run 0 "titles of $from in MP4" "$work/titles.$from" -o a.mp4
    equal "$(titles a.mp4 handler_name)" 'Picture Commentary ' "names of handlers, $from"
    run 0 "titles of $from by way of MP4" a.mp4 -o b.mkv --transfer pq
    equal "$(titles b.mkv title)" 'Picture Commentary ' "titles of $from by way of MP4"
    clean
done
finish
