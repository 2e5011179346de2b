#!/bin/sh
# The harness for tests with gst-launch-1.0, which source this instead of harness.sh. It makes $work/clip.raw, the
# frames of $clip.
#
#   $film, $hdr              elements: the clip's frames, and their HDR caps
#   $devices                 properties of coxtonemap
#   has_element NAME         whether GStreamer has this element
#   launch WHAT ELEMENT...   run a pipeline, which must succeed and leak no object
#   planes_of FILE           print the frames of a y4m file without headers
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
need gst-launch-1.0
clip=$data/stilllife_pq_480x270.y4m
film="filesrc location=$work/clip.raw blocksize=388800 ! rawvideoparse width=480 height=270 format=i420-10le framerate=24/1"
hdr='capssetter caps=video/x-raw,chroma-site=mpeg2,colorimetry=bt2100-pq'
devices='devices=cpu policy=static'

has_element() { gst-inspect-1.0 --exists "$1"; }
for element in rawvideoparse capssetter; do
    has_element $element || skip "the element $element is missing (Debian: gstreamer1.0-plugins-good, -bad)"
done

planes_of() {
    python3 - "$1" <<'END' 2>/dev/null || ffmpeg -v error -i "$1" -f rawvideo -
import sys
with open(sys.argv[1], "rb") as film:
    fields = dict((word[:1], word[1:]) for word in film.readline().split()[1:])
    pixels = int(fields[b"W"]) * int(fields[b"H"])
    while film.readline():
        sys.stdout.buffer.write(film.read(pixels * 3 // 2 * (2 if b"p10" in fields[b"C"] else 1)))
END
}
planes_of "$clip" >"$work/clip.raw"

traced=$work/traced
launch() {
    h_launched=$1
    shift
    export GST_TRACERS='leaks(check-refs=false)' GST_DEBUG='coxswain:6,GST_TRACER:7' GST_DEBUG_FILE="$traced"
    expect_status 0 "$h_launched" gst-launch-1.0 -q "$@"
    unset GST_TRACERS GST_DEBUG GST_DEBUG_FILE
    contains "$traced" 'object-alive'
    lacks "$traced" 'object-alive, type-name=\(string\)[^%]'
}
