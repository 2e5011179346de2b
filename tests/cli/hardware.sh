#!/bin/sh
# Decoding and encoding by devices, on a machine with or without them. Whatever a device refuses, software does, and the
# frames are the same.
#   sh hardware.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
need ffmpeg
need_device
need_libavformat
film=$work/film.mkv
ffmpeg -v error -stream_loop 3 -i "$data/stilllife_pq_480x270.y4m" -c:v libx265 -x265-params log-level=none \
    -color_trc smpte2084 -color_primaries bt2020 -colorspace bt2020nc "$work/film.mkv" 2>"$work/err" ||
    skip "ffmpeg has no libx265"

run 0 'software' "$film" -o null: --hash
software=$(hash_of)
run 0 'hwdec none' "$film" -o null: --hash --hwdec none
equal "$(hash_of)" "$software" 'hash of --hwdec none'
nothing_left

# A device that decodes says so on the line "video"; else one line says why it does not.
for device in cuda vaapi drm auto vaapi:/dev/dri/none; do
    run 0 "hwdec $device" "$film" -o null: --hash --hwdec "$device"
    equal "$(hash_of)" "$software" "hash of --hwdec $device"
    if ! grep -Eq '^video .* hevc \([a-z]*\) in matroska' "$work/out"; then
        contains "$work/err" '^cox-tonemap: warning: .*film.mkv: decoded in software \('
        equal "$(wc -l <"$work/err")" 1 "lines about --hwdec $device"
    fi
done

refuses 2 "--hwdec 'nonsense': unknown device 'nonsense'; expected none, auto or one of .*cuda" 'an unknown device' \
    "$film" -o x.y4m --hwdec nonsense
refuses 1 '--hwdec is for containers' 'a file that is not encoded' "$data/stilllife_pq_480x270.y4m" -o x.y4m --hwdec auto
refuses 2 'hwdec' 'a film in pieces' analyse "$film" -o x.part --hwdec auto

run 0 'list' --list-hw
contains "$work/out" '^device    cuda '
contains "$work/out" '^device    .* decodes .*hevc'

# Encoders of devices that do not open here.
for encoder in h264_nvenc hevc_vaapi; do
    "$tonemap" --list-hw | grep "^encoder   $encoder " >"$work/encoder" || continue
    grep -q ' opens$' "$work/encoder" && continue
    refuses 1 "x.mkv: encoder $encoder (cannot be opened on this machine|needs a device of the kind vaapi): " \
        "encoder $encoder" "$film" -o x.mkv --encoder "$encoder"
done
finish
