#!/bin/sh
# Compares the speed of a gst-launch pipeline with coxtonemap and of cox-tonemap on the same film. It runs both one
# after the other, several times. It prints the medians in frames per second, and the pipeline's divided by
# cox-tonemap's.
#
#   GST_PLUGIN_PATH=BUILD/lib/gstreamer-1.0 [ENCODE=1] sh speed.sh BIN_DIR FILM [ROUNDS [NAME=VALUE...]]
#
# NAME=VALUE is a property of coxtonemap and an option of cox-tonemap, for example devices=gpu. Both decode with
# libavcodec and write NV12 to a file in TMPDIR, which is best in memory. With ENCODE=1 both encode by x264 to
# Matroska.
#
# The start-up time is excluded: cox-tonemap prints its own time, and GStreamer's clock starts with the first frame.
# SPDX-License-Identifier: Apache-2.0
set -eu
tonemap=$1/cox-tonemap
film=$2
rounds=${3:-5}
shift 2
[ $# -eq 0 ] || shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
options=
for pair in "$@"; do
    options="$options --${pair%%=*} ${pair#*=}"
done

if [ -n "${ENCODE:-}" ]; then
    out=out.mkv
    options="$options --overwrite --preset ultrafast --encoder libx264:qp=23"
    encode='video/x-raw,format=I420 ! x264enc speed-preset=ultrafast pass=quant quantizer=23 ! h264parse ! matroskamux'
else
    out=out.nv12
    encode='video/x-raw,format=NV12'
fi

# median FILE: the median of the numbers in it
median() {
    sort -n "$1" | awk '{ a[NR] = $1 } END { print NR % 2 ? a[(NR + 1) / 2] : (a[NR / 2] + a[NR / 2 + 1]) / 2 }'
}

round=0
while [ $round -le "$rounds" ]; do
    # shellcheck disable=SC2086
    "$tonemap" "$film" -o "$work/$out" $options >"$work/told" 2>&1 || { cat "$work/told"; exit 1; }
    frames=$(sed -n 's/^result  *\([0-9]*\) frames.*/\1/p' "$work/told")
    one=$(sed -n 's/^result .* \([0-9.]*\) frames\/s.*/\1/p' "$work/told")
    # shellcheck disable=SC2086
    gst-launch-1.0 filesrc location="$film" ! decodebin ! coxtonemap "$@" ! $encode ! \
        filesink location="$work/gst" sync=false >"$work/told" 2>&1 || { cat "$work/told"; exit 1; }
    other=$(sed -n 's/^Execution ended after \([0-9]*\):\([0-9]*\):\([0-9.]*\)$/\1 \2 \3/p' "$work/told" |
        awk -v frames="$frames" '{ print (frames - 1) / ($1 * 3600 + $2 * 60 + $3) }')
    [ -n "${ENCODE:-}" ] || cmp -s "$work/out.nv12" "$work/gst" || { echo "the frames differ"; exit 1; }
    # The first round compiles kernels and does not count.
    if [ $round -gt 0 ]; then
        echo "$one" >>"$work/ones"
        echo "$other" >>"$work/others"
        echo "$one $other" | awk -v n=$round '{ printf "round %d  cox-tonemap %.1f/s  coxtonemap %.1f/s  %.3f\n", n, $1, $2, $2 / $1 }'
    fi
    round=$((round + 1))
done
echo "$(median "$work/ones") $(median "$work/others")" |
    awk '{ printf "median   cox-tonemap %.1f/s  coxtonemap %.1f/s  %.3f\n", $1, $2, $2 / $1 }'
