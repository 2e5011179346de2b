#!/bin/sh
# Video input that cox-tonemap refuses: invalid or truncated files, and invalid arguments.
#   sh video_refusals.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # an option and its value
. "$(dirname "$0")/../support/tonemap.sh"
need_device
make_clips
clip=$work/clip.y4m
size=$(bytes "$clip")
head -c $((64 * 48 * 8)) /dev/zero >"$work/black.rgba16f"
printf 'Pf\n1 1\n-1.0\n\000\000\200\076' >"$work/small.pfm"

# --- Bad input ---

head -c $((size - 100)) "$clip" >"$work/short.y4m"
denies 1 '^cox-tonemap: .*short.y4m: frame 11 .*byte [0-9]+.*100 bytes are missing' 'a truncated file' "$work/short.y4m" -o a.y4m
equal "$(wc -l <"$work/err")" 1 'lines'
whole a.y4m $frame8 11
run 1 'a truncated pipe' - -o b.y4m <"$work/short.y4m"
same b.y4m a.y4m
head -c $((5 * frame10 + 7)) "$work/clip.yuv" >"$work/short.yuv"
denies 1 'frame 5 .*byte 46080' 'truncated raw frames' "$work/short.yuv" --size 64x48 -o a.nv12
equal "$(bytes a.nv12)" $((5 * frame8)) 'bytes that are kept'
{
    head -c $((size / 2)) "$clip"
    printf 'NOISE'
    tail -c $((size / 2)) "$clip"
} >"$work/noise.y4m"
denies 1 'noise.y4m: .*byte [0-9]+' 'noise between frames' "$work/noise.y4m" -o a.y4m
whole a.y4m $frame8
cat "$clip" "$work/odd.y4m" >"$work/two.y4m"
run 1 'another size in mid-stream' "$work/two.y4m" -o a.y4m
contains err "^cox-tonemap: .*two.y4m: frame 12 \(the first is 0\), byte $size: the picture's size changes from 64 x 48 to 37 x 21\$"
whole a.y4m $frame8 12
clean

head -c 5000 "$clip" >"$work/none.y4m"
refuses 1 'frame 0 .*is incomplete' 'not one whole frame' "$work/none.y4m" -o a.y4m
head -n 1 "$clip" >"$work/head.y4m"
refuses 1 'has no frames' 'no frames' "$work/head.y4m" -o a.y4m
refuses 1 'has no frame 12; the last frame is 11' 'a frame past the end' "$clip" -o a.png --frame 12
refuses 1 'has no frame 12; the last frame is 11' 'a start past the end' "$clip" -o a.y4m --start 12
for head in 'YUV4MPEG2' 'YUV4MPEG2 W0 H48 C420p10' 'YUV4MPEG2 W64 H48 C411' 'YUV4MPEG2 W99999999999 H48 C420p10' \
    'YUV4MPEG2 W-64 H48 C420p10' 'YUV4MPEG2 H48 C420p10' 'YUV4MPEG2 W65536 H65536 C444p16' 'YUV4MPEG2 W64 H48 It C420p10' \
    'YUV4MPEG2 W64 H48 Cx C420p10 F1:0'; do
    {
        printf '%s\n' "$head"
        tail -n +2 "$clip"
    } >"$work/bad.y4m"
    refuses 1 'bad.y4m: ' "the header '$head'" "$work/bad.y4m" -o a.y4m
done
refuses 1 'nothing.y4m: cannot be opened: No such file' 'a missing file' nothing.y4m -o a.y4m
refuses 1 'nothing.yuv: cannot be opened: No such file' 'a missing raw file' nothing.yuv --size 64x48 -o a.y4m
# If a file does not exist, the error says so. Options are not checked against the kind of file that its name suggests.
for missing in y4m mkv exr yuv; do
    for option in '--frame 3' '--start 2 --frames 4' '--repeat 3' '--depth 10' --verify; do
        refuses 1 "nothing.$missing: cannot be opened: No such file" "a missing $missing with $option" nothing.$missing $option -o a.png
    done
done
refuses 1 'the size of raw frames is unknown' 'raw frames without a size' "$work/clip.yuv" -o a.y4m
echo 'this is no video' >"$work/text.y4m"
refuses 1 'not y4m or a known container' 'a text' "$work/text.y4m" -o a.y4m
refuses 1 'it is a picture, not a video' 'a picture' "$work/small.pfm" -o a.y4m
refuses 1 "there is no device|no device matches" 'an unknown device' "$clip" -o a.y4m --devices voodoo2

# --- Invalid arguments ---

wrong() { # PATTERN ARGS...
    pattern=$1
    shift
    refuses 2 "$pattern" "$*" "$clip" -o a.y4m "$@"
}
# The arguments in the second column are separated by blanks, so '' cannot be one of them.
while IFS='|' read -r pattern words <&3; do
    wrong "$pattern" $words
done 3<<'END'
--transfer 'srgb': expected pq, hlg, linear, sdr or auto|--transfer srgb
--primaries 'p3': expected bt2020, bt709, p3-d65, p3-dci, bt601-525 or bt601-625|--primaries p3
--range 'tv': expected limited, full|--range tv
expected auto or a luminance|--peak bright
expected a luminance from 1 to 10000|--sdr-white 0
expected a luminance from 1 to 10000|--sdr-white nan
expected a luminance from 100 to 10000|--hlg-peak 99
unknown operator 'filmic'; operators: hable, .*bt2390|--operator filmic
--operator exposure is for pictures|--operator exposure
expected none or ordered|--dither yes
expected hue\[:KNEE\], compress\[:KNEE\] or clip|--gamut soft
expected hue\[:KNEE\], compress\[:KNEE\] or clip|--gamut compressed
expected a knee from 0.25 to 0.95|--gamut compress:1
expected a knee from 0.25 to 0.95|--gamut hue:0.2
expected hue\[:KNEE\], compress\[:KNEE\] or clip|--gamut clip:0.5
expected a knee from 0.25 to 0.95|--gamut compress:
expected a number from 0 to 1|--desat 2
expected a number from 0.25 to 4|--operator local --detail 0
--detail needs --operator local|--detail 2
y4m has 8 or 10 bits|--depth 16
expected 8, 10 or 16|--depth 12
expected a number of frames|--frames 0
expected 0 or 1|--lookahead 2
--lookahead needs --peak auto|--lookahead 1 --peak 1000
frame as a PNG|--frame 3
unknown format 'yuv'; formats: .*yuv420p10|--size 64x48 --format yuv
needs --size too|--format p010
needs --format too.*yuv420p10|--size 64x48
--to 'avi': expected mkv, mp4, y4m, nv12, p010, png or null|--to avi
--alpha is for pictures|--alpha
--repeat is for pictures|--repeat 3
--verify without a share is for pictures|--verify
expected a share of the bands from 0 to 1|--verify 2
expected a share of the bands from 0 to 1|--verify=
unknown option '--frobnicate'; see cox-tonemap --help$|--frobnicate
option --transfer needs a value|--transfer
option --hash=3 takes no value|--hash=3
the second input is 'more.y4m'|more.y4m
cannot be combined with --operator local|--scale 1/2 --operator local
END
for count in -1 x 99999999999 ''; do
    wrong 'expected a frame number' --start "$count"
    wrong 'expected a frame number' --frame "$count"
    wrong 'expected a number of frames' --frames "$count"
done
for shape in 64 64x 64x48x2 0x48 -1x48 99999x48 64x48y ax; do
    wrong 'expected a size such as' --size "$shape" --format p010
done
for rate in 0 -1 x 25/0 25/ 1/2/3 99999999999/1; do
    wrong 'expected frames per second' --rate "$rate"
done
for share in -0.1 1.5 nan 1e999; do
    wrong 'expected a share of the bands from 0 to 1' "--verify=$share"
done
for scale in 1/3 0x4 x 12 12x34x5 ' 3x4' -3x4 99999x 12x-1; do
    wrong 'expected 1/2 or a size' --scale "$scale"
done
refuses 2 'a PNG holds one frame' '--frames with a PNG' "$clip" -o a.png --frames 2
refuses 2 'a PNG holds one frame' '--start with a PNG' "$clip" -o a.png --start 2
refuses 2 'a PNG has 8 or 16 bits' 'a PNG of ten bits' "$clip" -o a.png --depth 10
refuses 2 'NV12 has 8 bits' 'NV12 of ten bits' "$clip" -o a.nv12 --depth 10
refuses 2 'P010 has 10 bits' 'P010 of eight bits' "$clip" -o a.p010 --depth 8
refuses 2 'only one of' 'two outputs on standard output' "$clip" -o - --stats -
refuses 1 '--transfer linear is for half-float RGBA' 'linear light in codes' "$clip" -o a.y4m --transfer linear
half="$work/black.rgba16f --size 64x48 -o a.y4m"
refuses 1 '--transfer pq, hlg and sdr are for integer samples' 'codes in linear light' $half --transfer pq
refuses 1 '--range is for' 'a range of RGBA' $half --range full
refuses 1 'is not supported for half-float RGBA' 'another size of half floats' $half --scale 32x
refuses 1 'must be from 1/8 to 8 times that' 'a size too small' "$clip" -o a.y4m --scale 7x48
for option in '--transfer pq' '--primaries bt709' '--range full' '--sdr-white 100' '--hlg-peak 600' '--dither none' '--gamut clip' '--scale 1/2' \
    '--frames 1' '--start 0' '--frame 0' '--lookahead 0' '--rate 25' '--to png'; do
    refuses 2 "${option%% *} is for video" "$option for a picture" "$work/small.pfm" -o a.png $option
done
finish
