#!/bin/sh
# Pipelines of gst-launch-1.0: sourced after support/tonemap.sh with `clip`, the clip of examples/data.
#
#   $source, $hdr   elements: the clip's frames, and what they are
#   $devices        properties of coxtonemap
# SPDX-License-Identifier: Apache-2.0
source="filesrc location=$work/clip.raw blocksize=388800 ! rawvideoparse width=480 height=270 format=i420-10le framerate=24/1"
hdr='capssetter caps=video/x-raw,chroma-site=mpeg2,colorimetry=bt2100-pq'
devices='devices=cpu policy=static'

has_element() { gst-inspect-1.0 --exists "$1"; }

# The planes of a y4m file's frames.
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

raw_clip() { planes_of "$clip" >"$work/clip.raw"; }

# launch NAME ELEMENT...: a pipeline that ends well, and leaves nothing behind.
launch() {
    about=$1
    shift
    GST_TRACERS="leaks(check-refs=false)" GST_DEBUG="${GST_DEBUG:+$GST_DEBUG,}GST_TRACER:7" GST_DEBUG_FILE="${GST_DEBUG_FILE:-$work/traced}" \
        gst-launch-1.0 -q "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    equal "$status" 0 "$about: status"
    if grep -q 'object-alive' "${GST_DEBUG_FILE:-$work/traced}"; then pass; else fail "$about: nothing was traced"; fi
    if grep -q 'object-alive, type-name=(string)[^%]' "${GST_DEBUG_FILE:-$work/traced}"; then
        grep 'object-alive, type-name=(string)[^%]' "${GST_DEBUG_FILE:-$work/traced}" >"$work/err"
        fail "$about: something is left"
    fi
}
