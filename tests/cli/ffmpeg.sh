#!/bin/sh
# Compare cox-tonemap with ffmpeg's filters zscale and tonemap. On a natural picture whose light stays in range, each
# plane must agree to 50 dB. Out of range those filters overflow into coloured specks.
#
#   sh ffmpeg.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
need ffmpeg
need_device
for filter in zscale tonemap psnr; do
    ffmpeg -hide_banner -filters 2>/dev/null | grep -q " $filter " || skip "this ffmpeg has no filter '$filter'"
done
pale='colorchannelmixer=.7:.2:.1:0:.1:.8:.1:0:.1:.2:.7:0,lutrgb=r=24+val*0.85:g=24+val*0.85:b=24+val*0.85'

# film NAME PICTURE SIZE: a PQ film of one frame, from an SDR rendition with white at 800 cd/m2. It is paler, with
# lifted blacks. If rounding takes a dark colour out of the gamut, ffmpeg's result for the negative light depends on
# the processor (5 codes of Y).
film() {
    run 0 "$2" "$data/$2" -o sdr.png -q
    expect_status 0 "$1" ffmpeg -v error -y -i sdr.png -strict -1 -vf "$pale,setparams=color_primaries=bt709:color_trc=iec61966-2-1:\
colorspace=gbr:range=pc,zscale=w=${3%x*}:h=${3#*x}:f=bicubic:pin=bt709:tin=iec61966-2-1:min=gbr:rin=full:t=smpte2084:\
p=bt2020:m=bt2020nc:r=limited:npl=800,format=yuv420p10le,setsar=1" "$1.y4m"
}

# compare FILM OPERATOR LEAST: map the film both ways with common settings, PQ to SDR, SDR white at 100 and the peak at
# 1000 cd/m2. LEAST is the lowest PSNR of a plane in dB, or "-" for no limit.
compare() {
    expect_status 0 "ffmpeg's $2 on $1" ffmpeg -v error -y -i "$1.y4m" -vf "setparams=color_primaries=bt2020:color_trc=smpte2084:\
colorspace=bt2020nc:range=tv,zscale=t=linear:npl=100,format=gbrpf32le,zscale=p=bt709,tonemap=tonemap=$2:desat=0:peak=10,\
zscale=t=bt709:m=bt709:r=tv,format=yuv420p" theirs.y4m
    run 0 "$2 on $1" "$1.y4m" -o ours.y4m -q --transfer pq --operator "$2" --peak 1000 --sdr-white 100 --desat 0 --dither none --gamut clip
    alike ours.y4m theirs.y4m "$3"
    printf '%-12s %-9s %s\n' "$1" "$2" "$psnr"
}

film still-720 StillLife.exr 1280x720
film still-1080 StillLife.exr 1920x1080
film gate-odd GoldenGate.exr 1278x852
for clip in still-720 still-1080 gate-odd; do compare "$clip" hable 50; done
# These have the same formulas as ffmpeg with its default parameters. ffmpeg's "clip" limits another quantity.
compare still-720 reinhard 50
compare still-720 mobius 50
compare still-720 linear 50
compare still-720 clip -
finish
