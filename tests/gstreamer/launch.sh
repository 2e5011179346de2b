#!/bin/sh
# coxtonemap in pipelines of gst-launch-1.0: the frames of cox-tonemap to the bit, decoders and encoders beside it, no object of
# GStreamer's left behind.   sh launch.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
tonemap=$(cd "$1" && pwd)/cox-tonemap
source_dir=$(cd "$2" && pwd)
clip=$source_dir/examples/data/stilllife_pq_480x270.y4m
for needed in "$tonemap" "$(command -v gst-launch-1.0)"; do
    if [ ! -x "$needed" ]; then
        echo "skipped, because cox-tonemap or gst-launch-1.0 is missing (Debian: gstreamer1.0-tools)"
        exit 77
    fi
done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
. "$source_dir/tests/support/tonemap.sh"
. "$source_dir/tests/gstreamer/launch_lib.sh"
for needed in rawvideoparse capssetter; do
    has_element $needed || { echo "skipped, because the element $needed is missing (Debian: gstreamer1.0-plugins-good, -bad)"; exit 77; }
done

# same NAME FORMAT LIKE PROPERTIES OPTIONS...: a pipeline's frames of that format, and cox-tonemap's of that kind and options.
same() {
    what=$1
    format=$2
    kind=$3
    properties=$4
    shift 4
    # shellcheck disable=SC2086
    launch "$what" $source ! $hdr ! coxtonemap $devices $properties ! "video/x-raw,format=$format" ! filesink location="$work/d/gst"
    run 0 "$what" "$clip" -o ref --to "$kind" --devices cpu --policy static "$@"
    [ "$kind" = y4m ] && planes_of "$work/d/ref" >"$work/d/raw" && mv "$work/d/raw" "$work/d/ref"
    if cmp -s "$work/d/gst" "$work/d/ref"; then pass; else fail "$what: the frames differ"; fi
    clean
}

raw_clip
same 'planar' I420 y4m ''
same 'semi-planar' NV12 nv12 ''
same '10 bits' P010_10LE p010 ''
same 'a look ahead' NV12 nv12 'lookahead=true' --lookahead 1
same 'a given peak, frames in flight' NV12 nv12 'peak=800 in-flight=4' --peak 800 --in-flight 4
same 'another look' NV12 nv12 \
    'operator=bt2390 exposure=0.5 sdr-white=150 desaturate=0.3 dither=none gamut=clip' \
    --operator bt2390 --exposure 0.5 --sdr-white 150 --desat 0.3 --dither none --gamut clip
same 'detail' NV12 nv12 'operator=local detail=1.5' --operator local --detail 1.5
same 'another transfer and other primaries' NV12 nv12 'transfer=hlg primaries=bt709' --transfer hlg --primaries bt709
same 'a bounded peak' NV12 nv12 'trust-metadata=true gamut=compress gamut-knee=0.5' --trust-metadata --gamut compress:0.5
same 'another size' 'NV12,width=320,height=180' nv12 '' --scale 320x180

# An encoder and a decoder of HDR; the decoder writes to the library's memory.
if has_element x265enc && has_element avdec_h265 && has_element h265parse && has_element matroskamux; then
    # shellcheck disable=SC2086
    launch 'HDR is encoded' $source ! $hdr ! x265enc option-string=lossless=1 ! h265parse ! matroskamux ! filesink location="$work/film.mkv"
    GST_DEBUG=coxswain:6 GST_DEBUG_FILE="$work/log" launch 'decoded and mapped' filesrc location="$work/film.mkv" ! matroskademux ! \
        h265parse ! avdec_h265 ! coxtonemap $devices ! video/x-raw,format=NV12 ! filesink location="$work/d/gst"
    run 0 'the same with cox-tonemap' "$clip" -o ref.nv12 --devices cpu --policy static
    if cmp -s "$work/d/gst" "$work/d/ref.nv12"; then pass; else fail 'decoded: the frames differ'; fi
    equal "$(grep -c "in the library's memory, to the library's" "$work/log")" 3 'decoded: the memory of each frame'
    clean
else
    echo "a decoder: skipped, because x265enc or avdec_h265 is missing (Debian: gstreamer1.0-plugins-bad, gstreamer1.0-libav)"
fi
for encoder in 'x264enc' 'x265enc'; do
    if has_element $encoder; then
        # shellcheck disable=SC2086
        launch "$encoder" $source ! $hdr ! coxtonemap $devices ! $encoder ! filesink location="$work/d/gst"
        if [ -s "$work/d/gst" ]; then pass; else fail "$encoder: nothing came out"; fi
        clean
    else
        echo "$encoder: skipped, because it is missing"
    fi
done

launch 'SDR passes' videotestsrc num-buffers=3 ! video/x-raw,format=YUY2 ! coxtonemap $devices ! video/x-raw,format=YUY2 ! fakesink
launch 'coxconvolve' videotestsrc num-buffers=3 ! coxconvolve weights='0 -1 0 -1 5 -1 0 -1 0' shift=0 ! fakesink
launch 'both, on one runtime' videotestsrc num-buffers=3 ! video/x-raw,format=P010_10LE,colorimetry=bt2100-hlg ! \
    coxtonemap cache-dir='""' ! video/x-raw,format=I420 ! coxconvolve ! fakesink

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
