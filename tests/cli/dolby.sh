#!/bin/sh
# Films with Dolby Vision: frames become what the computation in double precision gives, in every container and
# however they are reached. Also HDR10+.
#   sh dolby.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/tonemap.sh"
need ffmpeg python3
need_device
need_libavformat

FRAMES=4
ff() { ffmpeg -nostdin -v error -y "$@"; }
make() { expect_status 0 "$*" ff "$@"; } # OPTIONS...: OUTPUT is the last one
has_encoder() { ff -f lavfi -i "color=gray:s=320x180,format=yuv420p10le" -frames:v 1 -c:v $1 -f null - 2>/dev/null; }
dolby() { python3 "$source/tests/support/dolby.py" "$@"; }
has_encoder libx265 || skip 'ffmpeg cannot encode 10 bits with libx265'

# hevc NAME X265_PARAMS: the film of flat blocks, lossless.
hevc() {
    make -f rawvideo -s 128x96 -r 24 -pix_fmt yuv420p10le -i film.yuv -c:v libx265 -preset ultrafast \
        -x265-params log-level=none:lossless=1:repeat-headers=1:$2 $1.hevc
}

# becomes CASE FILE [OPTIONS]: frames are right to one code of 8 bits; 0.5 of it are rounding.
becomes() {
    case=$1 file=$2
    shift 2
    run 0 "$file $*" $file -o out.y4m --operator clip --gamut clip --dither none --desat 0 --peak 1000 "$@"
    worst=$(dolby judge $case film.yuv out.y4m 128 96)
    awk "BEGIN { exit !($worst <= 1) }" || fail "$file: $worst codes off"
    pass
}

expect_status 0 'a film' dolby codes film.yuv 128 96 $FRAMES
hevc only bframes=0:range=full
hevc tagged bframes=0:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc
hevc hlg bframes=0:colorprim=bt2020:transfer=arib-std-b67:colormatrix=bt2020nc

# --- Every kind of metadata ---

for case in $(dolby cases); do
    base=only
    case $case in
    wrong-sum | no-colours) continue ;;
    *-8 | pieces-2 | mmr-3 | limits | mel | fel) base=tagged ;;
    esac
    expect_status 0 "metadata of $case" dolby put $case $base.hevc $case.hevc
    becomes $case $case.hevc
done
becomes fel fel.hevc
contains err 'the enhancement layer of Dolby Vision \(FEL\) is not applied'
contains out 'Dolby Vision profile 7 \(base layer\)'
becomes changing changing.hevc
contains out 'PQ, BT.2020, full range, Dolby Vision profile 5,'

# A look-up table is for R, G and B.
run 0 'a table' -o look.cube --points 3
denies 1 'whose reshaped signal no --lut is for; use --transfer pq' 'a table' mmr-3.hevc --lut look.cube -o a.y4m
run 0 'a table on the base layer' mmr-3.hevc --lut look.cube -o a.y4m --transfer pq

# A base layer of HLG, as phones have it.
expect_status 0 'metadata' dolby put mmr-3 hlg.hevc phone.hevc
becomes mmr-3 phone.hevc
contains out '; PQ, BT.2020, limited range, Dolby Vision profile 8,'

# --- Containers, order of frames, AV1 ---

for container in mkv mp4 ts; do
    make -i changing.hevc -c copy changing.$container
    becomes changing changing.$container
done
hevc reordered bframes=2:b-adapt=0:range=full
expect_status 0 'metadata' dolby put mmr-2 reordered.hevc reordered-mmr-2.hevc
becomes mmr-2 reordered-mmr-2.hevc

if has_encoder libaom-av1; then
    make -f rawvideo -s 128x96 -r 24 -pix_fmt yuv420p10le -i film.yuv -c:v libaom-av1 -cpu-used 8 -crf 0 \
        -aom-params lossless=1 only.ivf
    for case in identity-5 mmr-3 changing repeating no-sum; do
        expect_status 0 "metadata of $case" dolby put $case only.ivf $case.ivf
        becomes $case $case.ivf
    done
    make -i changing.ivf -c copy av1.mkv
    becomes changing av1.mkv
    make -i changing.ivf -c copy av1.mp4
    becomes changing av1.mp4
fi

# --- However frames are reached ---

run 0 'the whole film' changing.mkv -o whole.y4m
for n in 0 3; do
    run 0 "from frame $n" changing.mkv -o part.y4m --start $n --frames 1 --peak 1000
    run 0 'the same of the whole' changing.mkv -o whole.y4m --peak 1000
    tail -c 18432 part.y4m >part
    tail -c +$(($(head -n 1 whole.y4m | wc -c) + n * 18438 + 7)) whole.y4m | head -c 18432 | cmp -s - part ||
        fail "frame $n differs"
    pass
done
run 0 'analysis' analyse changing.mkv -o part.cox
run 0 'steering' steer part.cox -o scene.cox
run 0 'mapping' map changing.mkv --scene scene.cox -o piece.y4m
run 0 'in one run' changing.mkv -o one.y4m
tail -n +2 one.y4m >one
tail -n +2 piece.y4m | cmp -s - one || fail 'a film in pieces differs from one run'
pass
# Level 1 names the peak of the scene.
run 0 'the peak of the scene' scene.hevc -o null: --trust-metadata
contains out 'scenes    peak 426 to 426 cd/m2'
expect_status 0 'HDR10+' python3 "$source/tests/support/hdr10plus.py" tagged.hevc plus.hevc 600
run 0 'the peak of the scene by HDR10+' plus.hevc -o null: --trust-metadata
contains out 'scenes    peak .* to 600 cd/m2'
run 0 'three devices' changing.mkv -o three.y4m --devices cpu:2x1 --policy chunks
tail -n +2 three.y4m | cmp -s - one || fail 'devices differ'
pass
for options in '--scale 1/2' '--scale 96x72' '--operator local' '--operator bt2390 --depth 10'; do
    run 0 "$options" changing.mkv -o null: $options
done

# --- Options for the colours are for the base layer ---

run 0 'the base layer' pieces-2.hevc -o null: --hash --transfer pq --peak 1000
contains out '\(base layer\)'
expected=$(hash_of)
run 0 'without metadata' tagged.hevc -o null: --hash --peak 1000
hashes "$expected" 'the base layer is the film without metadata' pieces-2.hevc -o null: --transfer pq --peak 1000

# --- Refused ---

for case in wrong-sum no-colours; do
    expect_status 0 "metadata of $case" dolby put $case only.hevc $case.hevc
done
denies 1 'wrong-sum.hevc: its Dolby Vision metadata are damaged or not supported' 'a wrong checksum' \
    wrong-sum.hevc -o out.y4m
denies 1 'no-colours.hevc: Dolby Vision of profile 5 without the matrices' 'no matrices' no-colours.hevc -o out.y4m

finish
