#!/bin/sh
# A film whose colours change: each part is mapped as it is alone, in every output and however its frames are reached.
#   sh colour_changes.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/tonemap.sh"
. "$(dirname "$0")/../support/film_parts.sh"

# --- Each property ---

part pq smpte2084
part hlg arib-std-b67
part full smpte2084 bt2020 bt2020nc full
part p3 smpte2084 smpte432
part narrow smpte2084 bt709
part matrix smpte2084 bt2020 bt709
part light smpte2084 bt2020 bt2020nc limited 'hdr10=1:max-cll="600,100"'

film b hlg pq hlg
follows b.hevc 2 --peak 1000 -- hlg.hevc pq.hevc hlg.hevc
film c pq full pq p3 pq narrow pq matrix pq light
follows c.hevc 8 --peak 1000 -- pq.hevc full.hevc pq.hevc p3.hevc pq.hevc narrow.hevc pq.hevc matrix.hevc pq.hevc \
    light.hevc

# --- The curve starts again ---

for options in '--lookahead 1' '--lookahead 0' '--trust-metadata'; do
    follows b.hevc 2 $options -- hlg.hevc pq.hevc hlg.hevc
done
film d light hlg pq
follows d.hevc 2 --trust-metadata -- light.hevc hlg.hevc pq.hevc

# --- Options are for all parts ---

film c hlg pq
run 0 'PQ by option' c.hevc -o null: --hash --transfer pq --peak 1000
lacks out '^colours'
film same pq pq
hashes "$(hash_of)" 'the same frames, tagged PQ' same.hevc -o null: --peak 1000
film c pq full
hashes "$(hash_of)" 'the range by option' c.hevc -o null: --range limited --peak 1000
film c pq p3
run 0 'the primaries by option' c.hevc -o null: --hash --primaries bt709 --peak 1000
hashes "$(hash_of)" 'the same frames with the option' same.hevc -o null: --primaries bt709 --peak 1000

# --- Other codecs and containers ---

packed b.mkv hlg.mkv pq.mkv hlg.mkv
follows b.mkv 2 --peak 1000 -- hlg.hevc pq.hevc hlg.hevc
if has_encoder libx264 yuv420p10le; then
    for transfer in arib-std-b67 smpte2084; do
        make -f lavfi -i "$pattern" -frames:v $FRAMES -c:v libx264 -qp 0 -preset ultrafast -x264-params \
            transfer=$transfer:colorprim=bt2020:colormatrix=bt2020nc $transfer.h264
    done
    cat arib-std-b67.h264 smpte2084.h264 >film.h264
    follows film.h264 1 --peak 1000 -- arib-std-b67.h264 smpte2084.h264
else
    leave_out 'H.264' 'ffmpeg cannot encode 10 bits with libx264'
fi
if has_encoder libaom-av1 yuv420p10le; then
    for transfer in arib-std-b67 smpte2084; do
        make -f lavfi -i "$pattern" -frames:v $FRAMES -c:v libaom-av1 -cpu-used 8 -color_trc $transfer \
            -color_primaries bt2020 -colorspace bt2020nc $transfer.obu
    done
    cat arib-std-b67.obu smpte2084.obu >film.obu
    follows film.obu 1 --peak 1000 -- arib-std-b67.obu smpte2084.obu
else
    leave_out 'AV1' 'ffmpeg cannot encode 10 bits with libaom'
fi

# Frames of ProRes name their colours, each one for itself.
for transfer in smpte2084 arib-std-b67; do
    make -f lavfi -i "testsrc2=s=160x96:r=24,format=yuv422p10le" -frames:v $FRAMES -c:v prores_ks -profile:v 3 \
        -bsf:v prores_metadata=color_primaries=bt2020:color_trc=$transfer:colorspace=bt2020nc $transfer.mov
done
packed film.mov smpte2084.mov arib-std-b67.mov
follows film.mov 1 --peak 1000 -- smpte2084.mov arib-std-b67.mov

# --- Every output ---

run 0 'the film' b.hevc -o b.y4m --peak 1000 --hash
hash=$(hash_of)
hashes "$hash" 'no output' b.hevc -o null: --peak 1000
hashes "$hash" 'the halves of a device' b.hevc -o null: --peak 1000 --devices cpu:1x1,cpu:1x1
make -i b.y4m -f rawvideo film.yuv
for to in mkv mp4; do
    run 0 "a finished file" b.hevc -o finished.$to --peak 1000 --encoder libx264 --crf 0
    make -i finished.$to -f rawvideo finished.yuv
    same finished.yuv film.yuv "the frames of $to"
    equal "$(ffprobe -v error -of csv=p=0 -show_entries stream=color_range,color_space,color_transfer,color_primaries \
        finished.$to)" tv,bt709,bt709,bt709 'its colours'
done

# --- A part alone, reached in other ways ---

run 0 'the second part' b.mkv -o seek.y4m --peak 1000 --start $FRAMES --frames $FRAMES
run 0 'the part alone' pq.hevc -o pq.y4m --peak 1000
samples pq.y4m >pq
samples seek.y4m | cmp -s - pq || fail 'the second part differs'
run 0 'from the middle of a part' b.mkv -o seek.y4m --peak 1000 --start $((FRAMES - 1)) --frames 3
run 0 'all frames' b.mkv -o all.y4m --peak 1000
samples all.y4m | tail -c +$(((FRAMES - 1) * FRAME + 1)) | head -c $((3 * FRAME)) >middle
samples seek.y4m | cmp -s - middle || fail 'frames around a change differ'
run 0 'stills' b.mkv -o still-%d.png --frame 0,$((FRAMES + 2)),$((2 * FRAMES)) --peak 1000
run 0 'a still of the first part' hlg.hevc -o hlg.png --frame 0 --peak 1000
run 0 'a still of the second part' pq.hevc -o pq.png --frame 2 --peak 1000
same still-1.png hlg.png
same still-2.png pq.png
same still-3.png hlg.png

# The chroma location of the output is the first part's, so only stills can be compared.
part corner smpte2084 bt2020 bt2020nc limited chromaloc=2
film c pq corner
run 0 'a still of another chroma location' c.hevc -o still.png --frame $((FRAMES + 1)) --peak 1000
run 0 'the still of the part' corner.hevc -o corner.png --frame 1 --peak 1000
same still.png corner.png
run 0 'without the location' pq.hevc -o pq.png --frame 1 --peak 1000
refute 'a location that does not count' cmp -s corner.png pq.png

# --- Pieces ---

pieces b.mkv --lookahead 1
pieces b.mkv --lookahead 0
pieces b.mkv --transfer pq --peak 1000
packed d.mkv light.mkv hlg.mkv pq.mkv
pieces d.mkv --trust-metadata

# --- Colours that cannot be mapped ---

# stops NAME FRAME PATTERN PART...: the film ends before that frame with this message. The frames before it are there.
stops() {
    s_name=$1 s_frame=$2 s_pattern=$3
    shift 3
    film $s_name "$@"
    denies 1 "^cox-tonemap: $s_name.hevc: frame $s_frame \\(the first is 0\\)$s_pattern" "$s_name" \
        $s_name.hevc -o kept.y4m --peak 1000
    whole kept.y4m $((FRAME - 6)) $s_frame
    run 1 "$s_name as a file" $s_name.hevc -o kept.mkv --peak 1000
    refute 'a file of damaged input' [ -e kept.mkv ]
    denies 1 "frame $s_frame " "a still behind the frame" $s_name.hevc -o kept.png --frame $s_frame --peak 1000
    refute 'a still of damaged input' [ -e kept.png ]
}
part log log100 bt709 bt709
part untagged none bt709 bt709
part film smpte2084 film
part size smpte2084
make -f lavfi -i "testsrc2=s=176x96:r=24,format=yuv420p10le" -frames:v 2 -c:v libx265 -preset ultrafast -x265-params \
    log-level=none:colorprim=bt2020:colormatrix=bt2020nc:transfer=smpte2084 size.hevc
stops insert $FRAMES ': not HDR video \(transfer log100\); end before it with --frames' pq log pq
stops silent $FRAMES ': it names no transfer curve, and video with BT.709 primaries is usually SDR' hlg untagged
stops unknown $FRAMES ': its primaries \(film\) are not supported' pq film
stops larger $((2 * FRAMES)) ', at or after byte .*: the picture.s size changes from 160 x 96 to 176 x 96' pq hlg size
run 0 'a log curve as HDR by option' insert.hevc -o null: --transfer pq --primaries bt2020 --peak 1000
denies 1 "frame $FRAMES .*not HDR video" 'analyse' analyse insert.hevc -o insert.part
refute 'a part of damaged input' [ -e insert.part ]

# What comes behind such a part can be chosen.
run 0 'the part behind it' insert.hevc -o kept.y4m --peak 1000 --start $((2 * FRAMES))
samples kept.y4m | cmp -s - pq || fail 'the part behind the log curve differs'

# A part that names no transfer curve is PQ, as it is alone.
part wide none
film c hlg wide
run 0 'a curve that is not named' c.hevc -o c.y4m --peak 1000
contains err "^cox-tonemap: warning: c.hevc: from frame $FRAMES on it names no transfer curve and is taken for PQ"
counts 1 err .
samples c.y4m | tail -c $((FRAMES * FRAME)) | cmp -s - pq || fail 'a curve that is not named: not PQ'
finish
