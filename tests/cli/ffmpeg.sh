#!/bin/sh
# cox-tonemap against ffmpeg's chain of zscale and tonemap, on a natural picture whose light stays in range: there the two
# must agree to 50 dB in each plane. (Out of range that chain overflows into coloured specks.)
#
#   sh ffmpeg.sh BIN_DIR SOURCE_DIR
#
# SPDX-License-Identifier: Apache-2.0
set -u
tonemap=$(cd "$1" && pwd)/cox-tonemap
data=$(cd "$2" && pwd)/examples/data
skip() {
    echo "skipped, because $1"
    exit 77
}
[ -x "$tonemap" ] || skip "cox-tonemap is not built (libpng is missing)"
command -v ffmpeg >/dev/null || skip "ffmpeg is missing"
for filter in zscale tonemap psnr; do
    ffmpeg -hide_banner -filters 2>/dev/null | grep -q " $filter " || skip "this ffmpeg has no filter '$filter'"
done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE POCL_DEVICES
: "${XDG_CACHE_HOME:=$work/cache}"
export XDG_CACHE_HOME
passed=0
failed=0
pale=colorchannelmixer=.7:.2:.1:0:.1:.8:.1:0:.1:.2:.7:0,lutrgb=r=24+val*0.85:g=24+val*0.85:b=24+val*0.85
die() {
    echo "FAILED: $1"
    sed 's/^/    /' "$work/err"
    exit 1
}

# film NAME PICTURE SIZE: a PQ film of one frame, of an SDR rendition with white at 800 cd/m2. Paler and with lifted blacks: where
# rounding takes a dark colour out of the gamut, what ffmpeg makes of the negative light depends on the processor (5 codes of Y).
film() {
    "$tonemap" "$data/$2" -o "$work/sdr.png" -q 2>"$work/err" || {
        grep -q 'no OpenCL' "$work/err" && skip "this machine has no OpenCL device"
        die "$2 cannot be made a PNG"
    }
    ffmpeg -v error -y -i "$work/sdr.png" -strict -1 -vf "$pale,setparams=color_primaries=bt709:color_trc=iec61966-2-1:\
colorspace=gbr:range=pc,zscale=w=${3%x*}:h=${3#*x}:f=bicubic:pin=bt709:tin=iec61966-2-1:min=gbr:rin=full:t=smpte2084:\
p=bt2020:m=bt2020nc:r=limited:npl=800,format=yuv420p10le,setsar=1" "$work/$1.y4m" 2>"$work/err" ||
        die "$1 cannot be made"
}

# chain FILM OPERATOR: as people do it today, PQ to SDR with SDR white at 100 and the peak at 1000 cd/m2.
chain() {
    ffmpeg -v error -y -i "$work/$1.y4m" -vf "setparams=color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc:\
range=tv,zscale=t=linear:npl=100,format=gbrpf32le,zscale=p=bt709,tonemap=tonemap=$2:desat=0:peak=10,\
zscale=t=bt709:m=bt709:r=tv,format=yuv420p" "$work/theirs.y4m" 2>"$work/err" || die "ffmpeg's $2 on $1"
    "$tonemap" "$work/$1.y4m" -o "$work/ours.y4m" -q --transfer pq --operator "$2" --peak 1000 --sdr-white 100 --desat 0 --dither none --gamut clip \
        2>"$work/err" || die "cox-tonemap's $2 on $1"
}

# compare FILM OPERATOR LEAST: the planes' PSNR, each of which must be so much; "-" asks for nothing.
compare() {
    chain "$1" "$2"
    ffmpeg -hide_banner -i "$work/ours.y4m" -i "$work/theirs.y4m" -lavfi psnr -f null - 2>"$work/err" </dev/null
    line=$(sed -n 's/.*PSNR \(y:[^ ]* u:[^ ]* v:[^ ]*\) .*/\1/p' "$work/err")
    [ -n "$line" ] || die "no PSNR of $2 on $1"
    worst=$(echo "$line" | tr ' ' '\n' | sed 's/.*://; s/inf/999/' | sort -n | head -n 1)
    if [ "$3" = - ]; then
        verdict="for information"
    elif awk "BEGIN { exit !($worst >= $3) }"; then
        verdict="at least $3 dB"
        passed=$((passed + 1))
    else
        verdict="FAILED: less than $3 dB"
        failed=$((failed + 1))
    fi
    printf '%-12s %-9s %-32s %s\n' "$1" "$2" "$line" "$verdict"
}

film still-720 StillLife.exr 1280x720
film still-1080 StillLife.exr 1920x1080
film gate-odd GoldenGate.exr 1278x852
for clip in still-720 still-1080 gate-odd; do
    compare "$clip" hable 50
done
# The same formulas as ffmpeg's with its default parameters; "clip" limits another quantity there.
compare still-720 reinhard 50
compare still-720 mobius 50
compare still-720 linear 50
compare still-720 clip -
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
