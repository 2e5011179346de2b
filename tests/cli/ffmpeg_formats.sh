#!/bin/sh
# One picture in several sample formats, each made by ffmpeg: what is the same codes in another order must become the same
# frame to the bit, and R'G'B' what Y'CbCr becomes, but for the rounding on the way.
#
#   sh ffmpeg_formats.sh BIN_DIR SOURCE_DIR
#
# SPDX-License-Identifier: Apache-2.0
set -u
tonemap=$(cd "$1" && pwd)/cox-tonemap
skip() {
    echo "skipped, because $1"
    exit 77
}
[ -x "$tonemap" ] || skip "cox-tonemap is not built (libpng is missing)"
command -v ffmpeg >/dev/null || skip "ffmpeg is missing"
for format in p210le gbrp10le; do
    ffmpeg -hide_banner -pix_fmts 2>/dev/null | grep -q " $format " || skip "this ffmpeg has no $format"
done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE POCL_DEVICES
: "${XDG_CACHE_HOME:=$work/cache}"
export XDG_CACHE_HOME
passed=0
failed=0
frames=2
die() {
    echo "FAILED: $1"
    sed 's/^/    /' "$work/err"
    exit 1
}

# film NAME SIZE FORMAT [FILTER]: frames with every kind of edge.
film() {
    ffmpeg -nostdin -v error -y -f lavfi -i "testsrc2=s=$2,format=$3${4:-}" -frames:v $frames -f rawvideo "$work/$1" 2>"$work/err" ||
        die "$1 cannot be made"
}

# convert NAME FORMAT SIZE TO OPTIONS...: the same frames in another format.
convert() {
    from=$1 format=$2 size=$3 to=$4
    shift 4
    ffmpeg -nostdin -v error -y -f rawvideo -pix_fmt "$format" -s "$size" -i "$work/$from" -sws_flags accurate_rnd -f rawvideo "$@" \
        "$work/$to" 2>"$work/err" || die "$from cannot be converted to $to"
}

# hash NAME FORMAT SIZE OPTIONS...: of what it becomes.
hash() {
    name=$1 format=$2 size=$3
    shift 3
    "$tonemap" "$work/$name" --format "$format" --size "$size" --transfer pq --primaries bt2020 -o null: --hash "$@" >"$work/out" 2>"$work/err" || {
        grep -q 'no OpenCL' "$work/err" && skip "this machine has no OpenCL device"
        die "cox-tonemap on $name $*"
    }
    sed -n 's/^hash *\([0-9a-f]*\).*/\1/p' "$work/out" "$work/err"
}

# same A B WHAT: both hashes, which there are.
same() {
    if [ -n "$1" ] && [ "$1" = "$2" ]; then
        passed=$((passed + 1))
        verdict=equal
    else
        failed=$((failed + 1))
        verdict="FAILED: $1 $2"
    fi
    printf '%-48s %s\n' "$3" "$verdict"
}

# Even widths, as ffmpeg wants them, with each rest of six pixels, and narrower and wider than a padded row's 48. ffmpeg
# writes no code into v210 below 4 or above 1019.
inside=,limiter=min=64:max=960
for size in 48x32 46x30 322x70 320x35 318x66 1280x36; do
    film planes $size yuv422p10le $inside
    convert planes yuv422p10le $size two -pix_fmt p210le
    convert planes yuv422p10le $size words -c:v v210
    want=$(hash planes yuv422p10 $size)
    same "$want" "$(hash two p210 $size)" "$size p210"
    same "$want" "$(hash words v210 $size)" "$size v210"
done
size=322x70
for option in '--scale 1/2' '--scale 200x40' '--operator local' '--lookahead 1' '--transfer hlg' '--range full' '--to png'; do
    film planes $size yuv422p10le $inside
    convert planes yuv422p10le $size two -pix_fmt p210le
    convert planes yuv422p10le $size words -c:v v210
    what=$option
    case $option in
    *png) option="-o $work/frame.png" ;;
    esac
    # shellcheck disable=SC2086
    want=$(hash planes yuv422p10 $size $option)
    # shellcheck disable=SC2086
    same "$want" "$(hash two p210 $size $option)" "p210 $what"
    # shellcheck disable=SC2086
    same "$want" "$(hash words v210 $size $option)" "v210 $what"
done
film planes $size gbrp16le
convert planes gbrp16le $size pixels -pix_fmt rgba64le
convert planes gbrp16le $size turned -pix_fmt bgra64le
want=$(hash planes gbrp16 $size)
same "$want" "$(hash pixels rgba64 $size)" "rgba64"
same "$want" "$(hash turned bgra64 $size)" "bgra64"
film planes $size gbrp
convert planes gbrp $size pixels -pix_fmt bgra
same "$(hash planes gbrp $size)" "$(hash pixels bgra $size)" "bgra"

# like A B WHAT: the frames are alike to 45 dB in each plane.
like() {
    ffmpeg -nostdin -hide_banner -i "$work/$1" -i "$work/$2" -lavfi psnr -f null - 2>"$work/err"
    line=$(sed -n 's/.*PSNR \(y:[^ ]* u:[^ ]* v:[^ ]*\) .*/\1/p' "$work/err")
    worst=$(echo "$line" | tr ' ' '\n' | sed 's/.*://; s/inf/999/' | sort -n | head -n 1)
    if [ -n "$worst" ] && awk "BEGIN { exit !($worst >= 45) }"; then
        passed=$((passed + 1))
        verdict="at least 45 dB"
    else
        failed=$((failed + 1))
        verdict="FAILED: less than 45 dB"
    fi
    printf '%-48s %s  %s\n' "$3" "$line" "$verdict"
}

# map NAME FORMAT TO: to 4:2:0.
map() {
    "$tonemap" "$work/$1" --format "$2" --size $size --transfer pq --primaries bt2020 -o "$work/p010" --to p010 -q 2>"$work/err" ||
        die "cox-tonemap on $1"
    ffmpeg -nostdin -v error -y -f rawvideo -pix_fmt p010le -s $size -i "$work/p010" -pix_fmt yuv420p10le -strict -1 "$work/$3" \
        2>"$work/err" || die "$3 cannot be made"
}
film colours $size gbrp10le
convert colours gbrp10le $size colours.mkv -f matroska -c:v ffv1
if "$tonemap" "$work/colours.mkv" --transfer pq --primaries bt2020 -o null: --hash >"$work/out" 2>"$work/err"; then
    same "$(hash colours gbrp10 $size)" "$(sed -n 's/^hash *\([0-9a-f]*\).*/\1/p' "$work/out" "$work/err")" "gbrp10 in a container"
elif ! grep -q 'without libavformat' "$work/err"; then
    die "cox-tonemap on colours.mkv"
fi
ffmpeg -nostdin -v error -y -f rawvideo -pix_fmt gbrp10le -s $size -i "$work/colours" -vf "setparams=colorspace=gbr:range=pc,\
scale=out_color_matrix=bt2020:out_range=tv:flags=accurate_rnd+full_chroma_int,format=yuv444p10le" -f rawvideo "$work/difference" \
    2>"$work/err" || die "colours cannot be made Y'CbCr"
map colours gbrp10 a.y4m
map difference yuv444p10 b.y4m
like a.y4m b.y4m "gbrp10 and yuv444p10"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
