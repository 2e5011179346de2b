#!/bin/sh
# Tests of the Matroska and MP4 files that cox-tonemap writes. They check what is encoded and what is copied. A file
# must be complete or not exist. Usage:
#   sh muxed.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
need_device

printf 'YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420p10\nFRAME\n' >"$work/black.y4m"
head -c 9216 /dev/zero >>"$work/black.y4m"
"$tonemap" "$work/black.y4m" -o a.mkv -q >"$work/out" 2>"$work/err"
if grep -q 'was built without libavformat' "$work/err"; then
    clean
    refuses 1 'a.mp4: this program was built without libavformat' 'a build without libavformat' "$work/black.y4m" -o a.mp4
    skip "this build has no libavformat"
fi
clean
need ffmpeg ffprobe
for encoder in libx264 ffv1 ac3 aac srt mpeg4; do
    ffmpeg -hide_banner -encoders 2>/dev/null | grep -q " $encoder " || skip "this ffmpeg has no encoder '$encoder'"
done

# --- Clips ---

make() {
    ffmpeg -v error -y "$@" 2>"$work/err" || {
        sed 's/^/    /' "$work/err"
        skip "this ffmpeg cannot make the clips"
    }
}
tags=setparams=color_trc=smpte2084:color_primaries=bt2020:colorspace=bt2020nc:range=tv
printf '1\n00:00:00,100 --> 00:00:00,600\nhello\n\n2\n00:00:01,000 --> 00:00:01,500\nworld\n' >"$work/words.srt"
cat >"$work/about.txt" <<'EOF'
;FFMETADATA1
title=A film
[CHAPTER]
TIMEBASE=1/1000
START=0
END=1000
title=one
[CHAPTER]
TIMEBASE=1/1000
START=1000
END=2000
title=two
EOF
make -f lavfi -i testsrc2=s=192x108:r=24000/1001:d=2 -f lavfi -i sine=d=2 -i "$work/words.srt" -i "$work/about.txt" \
    -map 0:v -map 1:a -map 1:a -map 2:s -map_metadata 3 -map_chapters 3 -vf "format=yuv420p10le,$tags,setsar=4/3" \
    -c:v ffv1 -c:a:0 ac3 -c:a:1 aac -c:s srt -metadata:s:a:0 language=nor -metadata:s:v title=picture \
    -attach "$work/about.txt" -metadata:s:t mimetype=text/plain "$work/film.mkv"
make -f lavfi -i testsrc2=s=192x108:r=25:d=2 -vf "format=yuv420p10le,$tags,setpts=N+4*gte(N\\,16)+7*gte(N\\,30),settb=1/25" \
    -fps_mode passthrough -c:v ffv1 "$work/varies.mkv"
make -f lavfi -i testsrc2=s=192x108:r=24000/1001:d=2 -f lavfi -i sine=d=2 -vf "format=yuv420p10le,$tags" \
    -c:v libx264 -c:a aac -output_ts_offset 1000 -f mpegts "$work/broadcast.ts"
make -i "$work/film.mkv" -map 0:v -fps_mode passthrough -strict -1 "$work/film.y4m"

# --- Contents of a file ---

probe() { ffprobe -v error -of csv=p=0 "$@"; }
# shown FILE: when its frames are shown, in ms, in order.
shown() { probe -select_streams v:0 -show_entries packet=pts_time "$1" | sed 's/,.*//' | sort -n | awk '{ printf "%.0f\n", $1 * 1000 }'; }
# copied FILE STREAMS: a hash of the packets.
copied() { ffmpeg -v error -i "$1" -map "$2" -c copy -f md5 -; }
video() { probe -select_streams v:0 -show_entries "stream=$2" "$1"; }
chapters() { probe -show_chapters "$1" | cut -d , -f 4,6,7 | sed 's/00*,/,/g'; }

# finished FILE SOURCE FRAMES: checks that apply to each file.
finished() {
    colours=color_range,color_space,color_transfer,color_primaries
    equal "$(video "$1" codec_name)" h264 'codec'
    equal "$(video "$1" $colours)" tv,bt709,bt709,bt709 'colours of the stream'
    ffmpeg -v error -i "$1" -map 0:v:0 -c copy -f h264 "$work/bare.h264" -y
    equal "$(video "$work/bare.h264" $colours)" tv,bt709,bt709,bt709 'colours of the bits'
    equal "$(probe -count_frames -select_streams v:0 -show_entries stream=nb_read_frames "$1")" "$3" 'frames'
    equal "$(shown "$1")" "$(shown "$2")" 'times'
    probe -show_frames -show_streams -select_streams v:0 "$1" >"$work/frames"
    lacks "$work/frames" '[Mm]astering|[Ll]ight level|[Dd][Oo][Vv][Ii]|[Hh][Dd][Rr]10\+|2094'
}

run 0 'Matroska' "$work/film.mkv" -o a.mkv
contains out '^written +a.mkv \(Matroska, 192 x 108, 4:2:0, 48 frames, 8 bit, libx264, 4 streams copied\)'
equal "$(cat "$work/err")" '' 'nothing is left out'
finished a.mkv "$work/film.mkv" 48
equal "$(copied a.mkv 0:a)" "$(copied "$work/film.mkv" 0:a)" 'sound'
equal "$(copied a.mkv 0:s)" "$(copied "$work/film.mkv" 0:s)" 'subtitles'
equal "$(chapters a.mkv)" "$(chapters "$work/film.mkv")" 'chapters'
equal "$(probe -select_streams t -show_entries stream_tags=filename,mimetype a.mkv)" about.txt,text/plain 'attachment'
equal "$(probe -show_entries format_tags=title a.mkv)" 'A film' 'title'
equal "$(video a.mkv sample_aspect_ratio)" 4:3 "the samples' shape"
equal "$(probe -select_streams v:0 -show_entries stream_tags=title a.mkv)" picture "the video's title"
equal "$(probe -select_streams a:0 -show_entries stream_tags=language a.mkv)" nor 'language'

run 0 'MP4' "$work/film.mkv" -o a.mp4
contains err '^cox-tonemap: warning: a.mp4: stream 3 of the source \(subtitle, subrip.*\) is not supported by mp4 and is left out$'
contains err '^cox-tonemap: warning: a.mp4: stream 4 of the source \(attachment, .*about.txt\) is not supported by mp4 and is left out$'
equal "$(wc -l <"$work/err")" 2 'a line each'
finished a.mp4 "$work/film.mkv" 48
equal "$(copied a.mp4 0:a)" "$(copied "$work/film.mkv" 0:a)" 'sound'
equal "$(chapters a.mp4)" "$(chapters "$work/film.mkv")" 'chapters'
equal "$(video a.mp4 sample_aspect_ratio)" 4:3 "the samples' shape"

for end in mkv mp4; do
    run 0 "a rate that varies, $end" "$work/varies.mkv" -o v.$end
    contains err '^cox-tonemap: warning: .*varies.mkv: 11 frames are missing by the frames. times, in 2 gaps; .* frame 16 '
    counts 1 err .
    finished "v.$end" "$work/varies.mkv" 50
done

# Times in MP4 are finer than in Matroska, so nothing is rounded between MP4 files.
run 0 'MP4 from MP4' a.mp4 -o b.mp4 --transfer pq
equal "$(probe -select_streams v:0 -show_entries packet=pts_time b.mp4 | sort -n)" \
    "$(probe -select_streams v:0 -show_entries packet=pts_time a.mp4 | sort -n)" 'MP4 from MP4: times'
equal "$(copied b.mp4 0:a)" "$(copied a.mp4 0:a)" 'sound'

# A cover, which is an attachment in Matroska and a separate stream in MP4.
if ffmpeg -v error -y -f lavfi -i color=red:s=64x64 -frames:v 1 "$work/cover.jpg" &&
    ffmpeg -v error -y -i "$work/film.mkv" -map 0:v -map 0:a:1 -c copy -attach "$work/cover.jpg" \
        -metadata:s:t mimetype=image/jpeg -metadata:s:t filename=front.jpg "$work/covered.mkv"; then
    for end in mkv mp4; do
        run 0 "a cover, $end" "$work/covered.mkv" -o c.$end
        equal "$(cat "$work/err")" '' "nothing is left out"
        equal "$(copied "c.$end" 0:v:1)" "$(copied "$work/covered.mkv" 0:v:1)"
    done
    equal "$(probe -select_streams v:1 -show_entries stream_tags=filename c.mkv)" front.jpg "a cover's name"
else
    leave_out 'a cover' 'this ffmpeg cannot attach one'
fi

# MP4 can begin before time 0, Matroska cannot. Sound and picture are shifted by the same amount.
run 0 'Matroska from MP4' a.mp4 -o f.mkv --transfer pq
equal "$(copied f.mkv 0:a)" "$(copied a.mp4 0:a)" 'sound'
gaps() { awk 'NR > 1 { even = ($1 - last >= 41 && $1 - last <= 43); print even } { last = $1 }' | sort -u; }
equal "$(shown f.mkv | gaps)" 1 'even times'

# What an edit list cuts off is not played again: the sound before the picture's first frame.
make -i "$work/film.mkv" -map 0:v -map 0:a:0 -vf format=yuv420p10le -c:v libx264 -bf 0 -g 48 -c:a copy "$work/whole.mp4"
make -ss 1 -i "$work/whole.mp4" -map 0 -c copy "$work/cut.mp4"
for end in mkv mp4; do
    run 0 "an edit list, $end" "$work/cut.mp4" -o e.$end --transfer pq
    equal "$(probe -count_packets -select_streams v -show_entries stream=nb_read_packets e.$end)" 25 'frames'
    for stream in v a; do
        first=$(probe -select_streams $stream -show_entries packet=pts_time e.$end | sed 's/,.*//' | sort -n | head -n 1)
        check "$stream begins at $first s" awk -v t="$first" 'BEGIN { exit !(t > -0.1 && t < 0.1) }'
    done
done

# The mastering display of an HDR10 stream describes the input picture, not the output.
if ffmpeg -v quiet -y -i "$work/film.mkv" -map 0:v -c:v libx265 -x265-params "log-level=-1:hdr10=1:colorprim=bt2020:\
transfer=smpte2084:colormatrix=bt2020nc:max-cll=1000,400:\
master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,1)" "$work/hdr10.mkv"; then
    for end in mkv mp4; do
        run 0 "HDR10 to $end" "$work/hdr10.mkv" -o h.$end
        finished "h.$end" "$work/hdr10.mkv" 48
    done
else
    leave_out 'HDR10' 'this ffmpeg has no libx265'
fi
if ffmpeg -v quiet -y -i a.mp4 -map 0:v -c copy -metadata:s:v rotate=90 "$work/turned.mp4" &&
    probe -show_entries stream_side_data=rotation "$work/turned.mp4" | grep -q 90; then
    run 0 'a picture to be turned' "$work/turned.mp4" -o t.mp4 --transfer pq
    equal "$(probe -show_entries stream_side_data=rotation t.mp4)" \
        "$(probe -show_entries stream_side_data=rotation "$work/turned.mp4")" 'a picture to be turned'
else
    leave_out 'a picture to be turned' 'this ffmpeg does not say so of one'
fi
clean

# --- The picture ---

run 0 'without loss, y4m' "$work/film.mkv" -o a.y4m
run 0 'without loss' "$work/film.mkv" -o a.mkv --encoder libx264:qp=0 --preset ultrafast
ffmpeg -v error -i a.mkv -map 0:v -f md5 - >"$work/ours"
ffmpeg -v error -i a.y4m -map 0:v -f md5 - >"$work/theirs"
equal "$(cat "$work/ours")" "$(cat "$work/theirs")" 'the same samples as in y4m'
run 0 'ten bits' "$work/film.mkv" -o b.mkv --depth 10 --crf 20
equal "$(video b.mkv pix_fmt)" yuv420p10le
run 0 'less quality' "$work/film.mkv" -o c.mkv --crf 45 --preset veryfast
check 'not smaller' [ "$(bytes c.mkv)" -lt "$(bytes a.mkv)" ]
run 0 'another encoder' "$work/film.mkv" -o d.mkv --encoder mpeg4:b=500000,g=10
equal "$(video d.mkv codec_name)" mpeg4
clean

# --- Inputs without times, and outputs that are not files ---

prints '8 bit, libx264, 0 streams copied\)' 'from y4m' "$work/film.y4m" -o a.mp4
equal "$(shown a.mp4)" "$(awk 'BEGIN { for (n = 0; n < 48; n++) printf "%.0f\n", n * 1001 / 24 }')" 'times'
run 0 'from a pipe, with a rate' - -o b.mkv --rate 50 -q <"$work/film.y4m"
equal "$(video b.mkv r_frame_rate)" 50/1
"$tonemap" "$work/film.mkv" -o - --to mkv 2>"$work/err" | cat >c.mkv
equal "$(shown c.mkv)" "$(shown "$work/film.mkv")" 'to a pipe'
# The clock of a broadcast began long before its first frame.
run 0 'a broadcast' "$work/broadcast.ts" -o e.mp4 --transfer pq
equal "$(shown e.mp4 | awk 'NR == 1 && $1 < 100 { print "at once" }')" 'at once' 'begins at once'
equal "$(shown e.mp4 | wc -l)" 48 'frames'
clean

# --- A part ---

run 0 'a part' "$work/film.mkv" -o a.mkv --start 12 --frames 24
equal "$(shown a.mkv)" "$(shown "$work/film.mkv" | tail -n +13 | head -n 24)" 'times'
from=$(shown a.mkv | head -n 1)
to=$(shown "$work/film.mkv" | sed -n 37p)
# sound FILE: the times of its packets.
sound() { probe -select_streams a:0 -show_entries packet=pts_time "$1" | awk '{ printf "%.0f\n", $1 * 1000 }'; }
equal "$(sound a.mkv)" "$(sound "$work/film.mkv" | awk "\$1 >= $from && \$1 < $to")" 'sound'
equal "$(probe -show_chapters a.mkv | wc -l)" 2 'chapters'
run 0 'the last part' "$work/film.mkv" -o b.mp4 --start 40
equal "$(shown b.mp4)" "$(shown "$work/film.mkv" | tail -n +41)" 'times'
clean

# --- For programs ---

run 0 'progress' "$work/film.mkv" -o a.mkv -q --progress json
contains err '^\{"frames": 48, "total": [0-9]+, "seconds": [0-9.]+, "fps": [0-9.]+, "left_s": [0-9.]+, "bytes": [0-9]+, "bound": .*, "ended": true\}$'
# The place of the index is written twice, so it counts twice.
wrote=$(sed -n 's/.*"bytes": \([0-9]*\).*"ended": true.*/\1/p' "$work/err")
check "all bytes, not $wrote" [ "${wrote:-0}" -ge "$(stat -c %s a.mkv)" ]
if python3 -c 'import json' 2>/dev/null; then
    check 'JSON' python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' "$work/err"
fi
clean
refuses 2 '--progress .much.: expected live or json' 'a progress that is none' "$work/film.mkv" -o a.y4m --progress much

# --- Complete or not at all ---

echo keep >a.mkv
denies 1 '^cox-tonemap: a.mkv: exists already; use --overwrite to replace it$' 'a file that exists' "$work/film.mkv" -o a.mkv
equal "$(cat a.mkv)" keep 'kept'
run 1 'to be replaced, in vain' "$work/film.mkv" -o a.mkv --overwrite --encoder nosuch
equal "$(cat a.mkv)" keep 'kept'
run 0 'to be replaced' "$work/film.mkv" -o a.mkv --overwrite
equal "$(shown a.mkv | wc -l)" 48
clean

# Another program makes the file while the film is mapped: the input ends only after that.
cp "$work/black.y4m" "$work/clip.y4m"
appears_meanwhile() { # STATUS WHAT ARGS...
    h_expected=$1
    what=$2
    shift 2
    hold "$work/held"
    start "$tonemap" "$work/held" -o a.mkv --encoder ffv1 "$@"
    wait_until 120 'the file that it writes' writes $pid
    echo keep >a.mkv
    stop $feeder
    ends $pid 120
    equal $status "$h_expected" status
}
appears_meanwhile 1 'a file that appears meanwhile'
contains err '^cox-tonemap: a.mkv: cannot be put there: File exists; the finished file is named a.mkv.kept-1$'
equal "$(cat a.mkv)" keep
equal "$(shown a.mkv.kept-1 | wc -l)" 1 'frames of the file that is kept'
equal "$(ls -A)" "$(printf 'a.mkv\na.mkv.kept-1')" files
clean
appears_meanwhile 0 'a file that appears meanwhile, to be replaced' --overwrite
equal "$(shown a.mkv | wc -l)" 1 frames
equal "$(ls -A)" a.mkv files
clean

refuses 1 "unknown video encoder 'nosuch'" 'an unknown encoder' "$work/film.mkv" -o a.mkv --encoder nosuch
refuses 1 "unknown video encoder 'aac'" 'an encoder of sound' "$work/film.mkv" -o a.mkv --encoder aac
refuses 1 "encoder libx264 has no option 'colour'" 'an unknown option' "$work/film.mkv" -o a.mkv --encoder libx264:g=9,colour=red
refuses 1 "libx264 does not accept the value 'red' for option 'crf'" 'a value that is none' "$work/film.mkv" -o a.mkv --crf red
refuses 1 "invalid encoder option 'g'; expected key=value" 'an option without a value' "$work/film.mkv" -o a.mkv --encoder libx264:g
refuses 1 "encoder mpeg4 has no option 'crf'" 'quality for an encoder that has none' "$work/film.mkv" -o a.mkv --encoder mpeg4 --crf 20
refuses 1 "encoder mpeg4 has no option 'preset'" 'a preset for an encoder that has none' "$work/film.mkv" -o a.mkv \
    --encoder mpeg4 --preset slow
run 1 'an unknown preset' "$work/film.mkv" -o a.mkv --preset quick # x264 prints its own line, too
contains err '^cox-tonemap: a.mkv: encoder libx264 does not accept these frames or options.*quick'
nothing_left
refuses 1 'mp4 cannot hold ffv1 of encoder ffv1' 'an encoder for another container' "$work/film.mkv" -o a.mp4 --encoder ffv1
refuses 1 '--rate is for inputs without time stamps' 'a rate for what has times' "$work/film.mkv" -o a.mkv --rate 25
refuses 1 'mp4 must be written to a regular file' 'MP4 to a pipe' "$work/film.mkv" -o /dev/null --to mp4
refuses 2 '--crf is for finished files' 'quality of y4m' "$work/film.mkv" -o a.y4m --crf 20
refuses 2 '--overwrite is for finished files' 'y4m to be replaced' "$work/film.mkv" -o a.y4m --overwrite
refuses 2 'expected NAME or NAME:KEY=VALUE' 'an encoder without a name' "$work/film.mkv" -o a.mkv --encoder :crf=3
refuses 1 'width not divisible by 2' 'a size that x264 refuses' "$work/film.mkv" -o a.mkv --size 9x9 --format yuv420p --transfer pq

head -c $(($(wc -c <"$work/film.mkv") / 2)) "$work/film.mkv" >"$work/cut.mkv"
refuses 1 'cut.mkv: frame [0-9]+ .*the file is truncated' 'an input that breaks off' "$work/cut.mkv" -o a.mkv -q --strict
echo keep >a.mkv
run 1 'an input that breaks off, over a file' "$work/cut.mkv" -o a.mkv --overwrite -q --strict
equal "$(head -c 5 a.mkv)$(ls -A "$work/d")" keepa.mkv 'kept'
clean

# interrupt SIGNAL STATUS OUTPUT: interrupt a film without an end.
interrupt() {
    what="interrupted by $1"
    {
        cat "$work/film.y4m"
        while tail -n +2 "$work/film.y4m"; do :; done
    } >"$work/pipe" 2>/dev/null &
    feeder=$!
    owned $feeder
    start "$tonemap" "$work/pipe" -o "$3"
    wait_until 120 'a handler for SIGTERM' catches_term "$pid"
    wait_until 120 'an output that is begun' writes "$pid"
    kill -"$1" "$pid"
    ends "$pid" 120
    equal "$status" "$2" 'status'
    stop $feeder
    contains err '^cox-tonemap: interrupted after [0-9]+ frames?; no file was written$'
    nothing_left
    clean
}
mkfifo "$work/pipe"
interrupt TERM 143 a.mkv
interrupt HUP 129 a.mp4
finish
