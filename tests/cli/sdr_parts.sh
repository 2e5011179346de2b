#!/bin/sh
# SDR parts of HDR films come out as they went in, while the parts around them are mapped as they are alone.
#   sh sdr_parts.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/tonemap.sh"
. "$(dirname "$0")/../support/film_parts.sh"
need python3

part pq smpte2084
part hlg arib-std-b67
part sdr bt709 bt709 bt709

# decoded PART...: add the frames as they are decoded to the file "alone", in y4m of 10 bits.
decoded() {
    for d_part; do
        make -i $d_part -strict -1 -f yuv4mpegpipe -y decoded.y4m
        samples decoded.y4m >>alone
    done
}

# near FILM FRAME COUNT: frames of film.y4m, of 8 bits, are within a code of a quarter of the film's codes.
near() {
    make -i $1 -f rawvideo -y codes.yuv
    make -i film.y4m -f rawvideo -y film.yuv
    python3 - $2 $3 <<'END' || fail "$1: SDR codes differ"
import array, sys
first, count = (160 * 96 * 3 // 2 * int(n) for n in sys.argv[1:])
codes = array.array("H", open("codes.yuv", "rb").read())[first:first + count]
film = open("film.yuv", "rb").read()[first:first + count]
assert count and len(codes) == len(film) == count, (len(codes), len(film))
sys.exit(any(abs(code / 4 - got) >= 1 for code, got in zip(codes, film)))
END
    pass
}

# --- Each part for itself ---

film a pq sdr hlg
film b hlg sdr
film c sdr pq sdr
for options in '--lookahead 1' '--lookahead 0' '--operator local --gamut clip --exposure 1' '--scale 80x48'; do
    follows a.hevc 2 $options -- pq.hevc sdr.hevc hlg.hevc
done
follows a.hevc 2 --peak 1000 -- pq.hevc sdr.hevc hlg.hevc
near a.hevc $FRAMES $FRAMES
follows b.hevc 1 --lookahead 1 -- hlg.hevc sdr.hevc
near b.hevc $FRAMES $FRAMES

# With the input's depth every code stays, whatever the look is.
: >alone
alone pq.hevc --depth 10 --operator mobius --desat 1
decoded sdr.hevc
alone hlg.hevc --depth 10 --operator mobius --desat 1
run 0 '10 bits' a.hevc -o film.y4m --depth 10 --operator mobius --desat 1
samples film.y4m | cmp -s - alone || fail 'a.hevc: SDR codes change'
contains err "a.hevc: frame $FRAMES is SDR; such frames pass unchanged"

# A change at any frame: parts of one frame.
whole_part=$FRAMES
FRAMES=1
for name in pq hlg; do
    make -i $name.mkv -c copy -frames:v 1 $name-1.mkv
    make -i $name-1.mkv -c copy $name-1.hevc
done
make -i sdr.mkv -c copy -frames:v 1 sdr-1.mkv
make -i sdr-1.mkv -c copy sdr-1.hevc
film d hlg-1 sdr-1 pq-1 sdr hlg-1
follows d.hevc 4 --lookahead 1 -- hlg-1.hevc sdr-1.hevc pq-1.hevc sdr.hevc hlg-1.hevc
FRAMES=$whole_part

# --- Colours of SDR ---

part sdr625 bt470bg bt470bg bt470bg
part sdr525 smpte170m smpte170m smpte170m
part sdrwide bt2020-10
part sdrfull bt709 bt709 bt709 full
part sdrpictures iec61966-2-1 bt709 bt709
part sdrmatrix bt709 bt709 smpte170m
part sdrnone bt709 unknown unknown
film e pq sdr625 sdr525 sdrwide sdrfull sdrpictures sdrmatrix sdrnone hlg
follows e.hevc 8 --peak 1000 -- pq.hevc sdr625.hevc sdr525.hevc sdrwide.hevc sdrfull.hevc sdrpictures.hevc \
    sdrmatrix.hevc sdrnone.hevc hlg.hevc
: >alone
decoded sdr.hevc
for name in sdrpictures sdrnone; do
    run 0 "$name, 10 bits" $name.hevc -o film.y4m --depth 10 --transfer auto
    samples film.y4m | cmp -s - alone || fail "$name: SDR codes change"
done
run 0 'SDR of BT.2020 in BT.2020' sdrwide.hevc -o film.y4m --depth 10 --transfer auto --wide
samples film.y4m | cmp -s - alone || fail 'SDR of BT.2020: codes change'

# --- Other outputs ---

packed a.mkv pq.mkv sdr.mkv hlg.mkv
follows a.mkv 2 --peak 1000 -- pq.hevc sdr.hevc hlg.hevc
run 0 'a film' a.mkv -o film.y4m --peak 1000
make -i film.y4m -f rawvideo -y film.yuv
run 0 'a finished file' a.mkv -o finished.mkv --peak 1000 --encoder libx264 --crf 0
make -i finished.mkv -f rawvideo finished.yuv
same finished.yuv film.yuv 'the frames of a finished file'
equal "$(ffprobe -v error -of csv=p=0 -show_entries stream=color_range,color_space,color_transfer,color_primaries \
    finished.mkv)" tv,bt709,bt709,bt709 'its colours'
run 0 'the SDR part' a.mkv -o part.y4m --peak 1000 --start $((FRAMES + 1)) --frames 2
samples film.y4m | tail -c +$(((FRAMES + 1) * FRAME + 1)) | head -c $((2 * FRAME)) >middle
samples part.y4m | cmp -s - middle || fail 'frames within the SDR part differ'
run 0 'stills' a.mkv -o still-%d.png --frame 0,$((FRAMES + 1)) --peak 1000
run 0 'a still of SDR alone' sdr.hevc -o sdr.png --frame 1 --transfer auto
same still-2.png sdr.png
run 0 'a sheet' a.mkv -o sheet.png --sheet 3
run 0 'figures, and the film against itself' a.mkv -o null: --stats stats.json --judge finished.mkv --peak 1000
contains out '^judged    12 frames: dE ITP 0.00 .mean., .* 0.00 at most'
pieces a.mkv --lookahead 1
pieces a.mkv --lookahead 0
packed c.mkv sdr.mkv pq.mkv sdr.mkv
pieces c.mkv --lookahead 1 --transfer auto

# SDR white becomes 203 cd/m2 of PQ, code 573 of 10 bits (Report ITU-R BT.2408), or the peak of a darker display.
pattern=color=white:s=160x96:r=24,format=yuv420p10le
part sdrwhite bt709 bt709 bt709
film white pq sdrwhite
for display in 1000:573 150:545; do
    run 0 'for an HDR display' white.hevc -o film.y4m --hdr ${display%:*}
    samples film.y4m | tail -c $((FRAMES * (2 * (FRAME - 6) + 6))) | tail -c +7 | head -c 2 >code
    equal "$(od -An -tu2 code | tr -d ' ')" ${display#*:} "SDR white on a display of ${display%:*} cd/m2"
done
equal "$(ffprobe -v error -of csv=p=0 -show_entries stream=pix_fmt film.y4m)" yuv420p10le 'its format'

# --- SDR first, and SDR alone ---

denies 1 'sdr.hevc: not HDR video \(.*, transfer bt709\); use --transfer pq or hlg to treat it as HDR, or auto to pass SDR' \
    'SDR alone' sdr.hevc -o null:
denies 1 'c.hevc: not HDR video .*or auto to pass SDR unchanged$' 'SDR first' c.hevc -o null:
denies 1 'c.hevc: frame 1 .*: not HDR video \(transfer bt709\); use --transfer auto to pass SDR unchanged$' 'a later frame' \
    c.hevc -o null: --start 1
run 0 'the parts behind SDR' c.hevc -o kept.y4m --peak 1000 --start $FRAMES
: >alone
alone pq.hevc --peak 1000
alone sdr.hevc --peak 1000
samples kept.y4m | cmp -s - alone || fail 'the parts behind SDR differ'
follows c.hevc 2 --peak 1000 --transfer auto -- sdr.hevc pq.hevc sdr.hevc
follows a.hevc 2 --transfer auto -- pq.hevc sdr.hevc hlg.hevc
run 0 'SDR by option' c.hevc -o film.y4m --depth 10 --transfer sdr --primaries bt709
lacks out '^colours'
contains out 'SDR, BT.709'
contains out '^light     SDR, unchanged$'
: >alone
decoded c.hevc
samples film.y4m | cmp -s - alone || fail 'SDR by option: codes change'
make -i sdr.hevc -strict -1 -f yuv4mpegpipe -y sdr.y4m
run 0 'y4m' sdr.y4m -o film.y4m --depth 10 --transfer sdr
contains out 'SDR, BT.709'
samples sdr.y4m >sdr
samples film.y4m | cmp -s - sdr || fail 'y4m of SDR: codes change'
run 0 'HDR by option' a.hevc -o null: --transfer pq --primaries bt2020 --peak 1000
lacks out '^colours'
denies 2 '--exposure is for HDR; with --transfer sdr no light changes' 'exposure of SDR' sdr.y4m -o null: \
    --transfer sdr --exposure 1
finish
