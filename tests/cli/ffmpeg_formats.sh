#!/bin/sh
# One picture in several sample formats, each made by ffmpeg. The same codes in another order must give the same frame,
# bit for bit. R'G'B' must give the same frame as Y'CbCr, except for rounding.
#
#   sh ffmpeg_formats.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/tonemap.sh"
need ffmpeg
need_device
for format in p210le gbrp10le; do
    ffmpeg -hide_banner -pix_fmts 2>/dev/null | grep -q " $format " || skip "this ffmpeg has no $format"
done
pq='--transfer pq --primaries bt2020'

make() { expect_status 0 "$*" ffmpeg -nostdin -v error -y "$@"; } # OPTIONS...: OUTPUT is the last one

# film NAME SIZE FORMAT [FILTER]: frames with every kind of edge.
film() { make -f lavfi -i "testsrc2=s=$2,format=$3${4:-}" -frames:v 2 -f rawvideo "$1"; }

# convert NAME FORMAT SIZE TO OPTIONS...: the same frames in another format.
convert() {
    from=$1 format=$2 size=$3 to=$4
    shift 4
    make -f rawvideo -pix_fmt "$format" -s "$size" -i "$from" -sws_flags accurate_rnd -f rawvideo "$@" "$to"
}

# hash NAME FORMAT SIZE OPTIONS...: the hash of the result.
hash() {
    name=$1 format=$2 size=$3
    shift 3
    "$tonemap" "$name" --format "$format" --size "$size" $pq -o null: --hash "$@" >hash.txt 2>&1 || echo "of $name: $(cat hash.txt)"
    sed -n 's/^hash *\([0-9a-f]*\).*/\1/p' hash.txt
}
# equally ONE OTHER WHAT: both hashes exist and are equal.
equally() {
    check "$3: there is no hash, but '$1'" expr "$1" : '[0-9a-f]*$'
    equal "$1" "$2" "$3"
}

# Even widths, as ffmpeg requires: with each even remainder modulo six. Some are narrower than the 48 pixels of a
# padded row, some are wider. ffmpeg writes no v210 code below 4 or above 1019.
inside=,limiter=min=64:max=960
films() { # SIZE
    film planes $1 yuv422p10le $inside
    convert planes yuv422p10le $1 two -pix_fmt p210le
    convert planes yuv422p10le $1 words -c:v v210
}
for size in 48x32 46x30 322x70 320x35 318x66 1280x36; do
    films $size
    want=$(hash planes yuv422p10 $size)
    equally "$want" "$(hash two p210 $size)" "$size p210"
    equally "$want" "$(hash words v210 $size)" "$size v210"
done
size=322x70
films $size
for option in '--scale 1/2' '--scale 200x40' '--operator local' '--lookahead 1' '--transfer hlg' '--range full' '-o frame.png'; do
    want=$(hash planes yuv422p10 $size $option)
    equally "$want" "$(hash two p210 $size $option)" "p210 $option"
    equally "$want" "$(hash words v210 $size $option)" "v210 $option"
done
film planes $size gbrp16le
convert planes gbrp16le $size pixels -pix_fmt rgba64le
convert planes gbrp16le $size turned -pix_fmt bgra64le
want=$(hash planes gbrp16 $size)
equally "$want" "$(hash pixels rgba64 $size)" "rgba64"
equally "$want" "$(hash turned bgra64 $size)" "bgra64"
film planes $size gbrp
convert planes gbrp $size pixels -pix_fmt bgra
equally "$(hash planes gbrp $size)" "$(hash pixels bgra $size)" "bgra"

film colours $size gbrp10le
convert colours gbrp10le $size colours.mkv -f matroska -c:v ffv1
if "$tonemap" colours.mkv $pq -o null: --hash >"$work/out" 2>"$work/err"; then
    equally "$(hash colours gbrp10 $size)" "$(hash_of)" "gbrp10 in a container"
else
    contains err 'without libavformat'
fi
make -f rawvideo -pix_fmt gbrp10le -s $size -i colours -vf "setparams=colorspace=gbr:range=pc,\
scale=out_color_matrix=bt2020:out_range=tv:flags=accurate_rnd+full_chroma_int,format=yuv444p10le" -f rawvideo difference
# map NAME FORMAT TO: map to 4:2:0.
map() {
    run 0 "$1" "$1" --format "$2" --size $size $pq -o p010 --to p010 -q
    make -f rawvideo -pix_fmt p010le -s $size -i p010 -pix_fmt yuv420p10le -strict -1 "$3"
}
map colours gbrp10 a.y4m
map difference yuv444p10 b.y4m
alike a.y4m b.y4m 45
finish
