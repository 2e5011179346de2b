#!/bin/sh
# coxtonemap in pipelines of gst-launch-1.0:
#   Frames are equal to those of cox-tonemap, bit for bit.
#   Decoders and encoders work together with it.
#   No GStreamer object is leaked.
#
#   sh launch.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # elements are words
. "$(dirname "$0")/launch_lib.sh"

# equally WHAT FORMAT KIND PROPERTIES OPTIONS...: a pipeline with this format gives the frames of cox-tonemap with
# this kind and these options.
equally() {
    about=$1 format=$2 kind=$3 properties=$4
    shift 4
    case "$*" in
    *--peak* | *--lookahead*) ;;
    *) set -- "$@" --lookahead 0 ;; # which the element has
    esac
    launch "$about" $film ! $hdr ! coxtonemap $devices $properties ! "video/x-raw,format=$format" ! filesink location=gst
    run 0 "$about" "$clip" -o ref --to "$kind" --devices cpu --policy static "$@"
    [ "$kind" = y4m ] && planes_of ref >raw && mv raw ref
    same gst ref
    clean
}
equally 'planar' I420 y4m ''
equally 'semi-planar' NV12 nv12 ''
equally '10 bits' P010_10LE p010 ''
equally 'a look ahead' NV12 nv12 'lookahead=true' --lookahead 1
equally 'a given peak, frames in flight' NV12 nv12 'peak=800 in-flight=4' --peak 800 --in-flight 4
equally 'another look' NV12 nv12 \
    'operator=bt2390 exposure=0.5 sdr-white=150 desaturate=0.3 dither=none gamut=clip' \
    --operator bt2390 --exposure 0.5 --sdr-white 150 --desat 0.3 --dither none --gamut clip
equally 'detail' NV12 nv12 'operator=local detail=1.5' --operator local --detail 1.5
equally 'another transfer and other primaries' NV12 nv12 'transfer=hlg primaries=bt709' --transfer hlg --primaries bt709
equally 'a bounded peak' NV12 nv12 'trust-metadata=true gamut=compress gamut-knee=0.5' --trust-metadata --gamut compress:0.5
equally 'another size' 'NV12,width=320,height=180' nv12 '' --scale 320x180

# An encoder and a decoder of HDR. The decoder writes to the library's memory.
if has_element x265enc && has_element avdec_h265 && has_element h265parse && has_element matroskamux; then
    launch 'HDR is encoded' $film ! $hdr ! x265enc option-string=lossless=1 ! h265parse ! matroskamux ! filesink location="$work/film.mkv"
    launch 'decoded and mapped' filesrc location="$work/film.mkv" ! matroskademux ! h265parse ! avdec_h265 ! \
        coxtonemap $devices ! video/x-raw,format=NV12 ! filesink location=gst
    counts 3 "$traced" "in the library's memory, to the library's"
    run 0 'the same with cox-tonemap' "$clip" -o ref.nv12 --devices cpu --policy static --lookahead 0
    same gst ref.nv12
    clean
else
    leave_out 'a decoder' 'x265enc or avdec_h265 is missing (Debian: gstreamer1.0-plugins-bad, gstreamer1.0-libav)'
fi
for encoder in x264enc x265enc; do
    if has_element $encoder; then
        launch "$encoder" $film ! $hdr ! coxtonemap $devices ! $encoder ! filesink location=gst
        check 'nothing came out' [ -s gst ]
        clean
    else
        leave_out "$encoder" 'it is missing'
    fi
done

launch 'SDR passes' videotestsrc num-buffers=3 ! video/x-raw,format=YUY2 ! coxtonemap $devices ! video/x-raw,format=YUY2 ! fakesink
launch 'coxconvolve' videotestsrc num-buffers=3 ! coxconvolve weights='0 -1 0 -1 5 -1 0 -1 0' shift=0 ! fakesink
launch 'both, on one runtime' videotestsrc num-buffers=3 ! video/x-raw,format=P010_10LE,colorimetry=bt2100-hlg ! \
    coxtonemap cache-dir='""' ! video/x-raw,format=I420 ! coxconvolve ! fakesink
finish
