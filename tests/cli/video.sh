#!/bin/sh
# Tests of cox-tonemap with video. They cover kinds of output, selection of frames, each option, sizes and several
# inputs. Any split must give the same bits. Usage:
#   sh video.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/tonemap.sh"
need_device
make_clips
clip=$work/clip.y4m
python=$(command -v python3)

field() { head -n 1 "$1" | tr ' ' '\n' | grep "^$2"; } # FILE LETTER: a field of a y4m header

# peaks_used STATS: the line about scenes names the lowest and the highest peak that a frame was mapped with.
peaks_used() {
    used=$(grep -o '"curve_peak_nits": [0-9.]*' "$1" | awk '
        { p = $2 + 0; if (NR == 1 || p < least) least = p; if (p > most) most = p }
        END { printf "peak %.0f to %.0f cd/m2", least, most }')
    contains out "^scenes +$used, "
}

# --- What it writes ---

run 0 'y4m' "$clip" -o a.y4m --hash
contains out '^video .*: 64 x 48, y4m, 4:2:0, 10 bits; PQ \(assumed\), BT.2020, limited range, 25 frames/s, 12 frames' \
    '^light +hable, SDR white 203 cd/m2, peak from the frame$' \
    '^result +12 frames, [0-9.]+ frames/s' \
    '^waited +for input [0-9]+ %, for devices [0-9]+ %, for output [0-9]+ %.*: bound by (reading|devices|output)' \
    '^scenes +peak [0-9]+ to [0-9]+ cd/m2, 1 cut$' \
    '^written +a.y4m \(y4m, 64 x 48, 4:2:0, 12 frames, 8 bit\)'
automatic=$(hash_of)
equal "$(head -n 1 a.y4m | cut -d ' ' -f 1-6)" 'YUV4MPEG2 W64 H48 F25:1 Ip A1:1'
equal "$(field a.y4m C)" C420mpeg2
whole a.y4m $frame8 12

run 0 'ten bits' "$clip" -o b.y4m --depth 10
equal "$(field b.y4m C)" C420p10
whole b.y4m $frame10 12

run 0 'standard input' - -o c.y4m -q <"$clip"
same c.y4m a.y4m
# shellcheck disable=SC2002 # a pipe is meant
cat "$clip" | "$tonemap" - -o - --lookahead 1 2>"$work/err" | cat >p.y4m
what='from pipe to pipe'
same p.y4m a.y4m
contains err '^result +12 frames' # then the result is not on standard output
equal "$(sed -n 's/^video .* 25 frames.s\(.*\)$/\1/p' "$work/err")" '' 'a pipe does not know how many frames there are'

run 0 'NV12' "$clip" -o a.nv12 --hash
equal "$(bytes a.nv12)" $((12 * frame8))
head -c 3072 a.nv12 >"$work/luma"
tail -n +2 a.y4m | tail -c +7 | head -c 3072 >"$work/luma2"
same "$work/luma" "$work/luma2" 'the luma of NV12 is not that of y4m'
run 0 'P010' "$clip" -o a.p010
equal "$(bytes a.p010)" $((12 * frame10))
equal "$(od -An -v -tu2 --endian=little a.p010 | tr -s ' ' '\n' | awk '$1 % 64 { bad++ } END { print bad + 0 }')" 0 \
    'samples that do not lie in the upper bits'
run 0 'standard output as NV12' "$clip" -o - --to nv12
same "$work/out" a.nv12
run 0 'standard output as P010' "$clip" -o - --to p010 -q
same "$work/out" a.p010
run 0 'any name' "$clip" -o any.name --to y4m
same any.name a.y4m
hashes "$automatic" 'no output' "$clip" -o null:
run 0 'quiet' "$clip" -o null: -q
equal "$(cat "$work/out" "$work/err")" ''
run 0 'verbose' "$clip" -o null: -v
counts 12 out '^frame  *[0-9]* *\[#*\]'
printf 'old' >old.y4m
run 0 'a file that is there' "$clip" -o old.y4m
same old.y4m a.y4m

run 0 'odd sides' "$work/odd.y4m" -o odd.y4m
whole odd.y4m $((37 * 21 + 2 * 19 * 11)) 3
run 0 'odd sides, NV12' "$work/odd.y4m" -o odd.nv12
equal "$(bytes odd.nv12)" $((3 * (37 * 21 + 2 * 19 * 11)))

run 0 'a PNG' "$clip" -o a.png --frame 3 --hash
is_png a.png 64 48 8
contains out '^result +1 frame,' '^light .*peak from the frame$'
third=$(hash_of)
run 0 'the first frame' "$clip" -o first.png --hash
differ "$(hash_of)" "$third"
hashes "$(hash_of)" 'frame 0 is the default' "$clip" -o zero.png --frame 0
run 0 'a deep PNG' "$clip" -o deep.png --frame 3 --depth 16
is_png deep.png 64 48 16
run 0 'a PNG on standard output' "$clip" -o - --to png --frame 3
same "$work/out" a.png
run 0 'a PNG from standard input' - -o in.png --frame 3 -q <"$clip"
same in.png a.png

# --- Selection of frames ---

run 0 'fixed' "$clip" -o fixed.nv12 --peak 1000 --hash
fixed=$(hash_of)
prints '^result +3 frames' 'part' "$clip" -o part.nv12 --peak 1000 --start 5 --frames 3
tail -c +$((5 * frame8 + 1)) fixed.nv12 | head -c $((3 * frame8)) >"$work/part"
same part.nv12 "$work/part"
run 0 'part of a pipe' - -o part2.nv12 --peak 1000 --start 5 --frames 3 -q <"$clip"
same part2.nv12 "$work/part"
run 0 'more than there are' "$clip" -o part3.nv12 --peak 1000 --start 10 --frames 1000
equal "$(bytes part3.nv12)" $((2 * frame8))

what='the pipe stays open after the last frame'
hold "$work/pipe"
start "$tonemap" "$work/pipe" -o some.nv12 --peak 1000 --frames 12
ends $pid 120
equal $status 0 'status'
same some.nv12 fixed.nv12
stop $feeder
clean

# --- Each option has an effect ---

# Each of these options needs its own kernel, and with a sanitizer compiling takes ten times as long.
kernels="--operator reinhard
--operator mobius
--operator bt2390
--operator aces
--operator linear
--operator clip
--operator local
--operator local --detail 2
--desat 0
--dither none
--gamut clip
--gamut compress:0.5
--gamut hue
--operator spline
--operator bt2446a
--operator bt2446c
--transfer hlg"
if [ -n "${ASAN_OPTIONS:-}" ]; then
    leave_out 'all operators but one' 'a sanitizer is at work'
    kernels='--operator mobius'
fi
while read -r way <&3; do
    run 0 "$way" "$clip" -o a.nv12 --peak 1000 --hash $way
    differ "$(hash_of)" "$fixed"
done 3<<END
$kernels
--peak 400
--sdr-white 100
--exposure -1
--primaries bt709
--range full
END
for way in '--operator hable' '--sdr-white 203' '--desat 0.75' '--dither ordered' '--exposure 0' '--transfer pq' \
    '--primaries bt2020' '--range limited' '--depth 8' '--gamut compress' '--gamut compress:0.9'; do
    hashes "$fixed" "$way is the default" "$clip" -o a.nv12 --peak 1000 $way
done
run 0 'HLG' "$clip" -o null: --peak 1000 --transfer hlg --hash
hlg=$(hash_of)
hashes "$hlg" '--hlg-peak 1000 is the default' "$clip" -o null: --peak 1000 --transfer hlg --hlg-peak 1000
run 0 'HLG for a darker display' "$clip" -o null: --peak 1000 --transfer hlg --hlg-peak 600 --hash
differ "$(hash_of)" "$hlg"
run 0 'as many bits' "$clip" -o a.p010 --peak 1000 --hash
hashes "$(hash_of)" 'as many bits are not dithered' "$clip" -o a.p010 --peak 1000 --dither none
if [ -z "${ASAN_OPTIONS:-}" ]; then
    run 0 'local, look ahead' "$clip" -o null: --operator local --lookahead 1 --hash
    hashes "$(hash_of)" 'local, look ahead, on two devices' "$clip" -o null: --operator local --lookahead 1 --devices cpu:2x1
fi
run 0 'no look ahead' "$clip" -o null: --lookahead 0 --hash
behind=$(hash_of)
differ "$behind" "$automatic"
contains out '^scenes .*, 1 cut$'
hashes "$automatic" 'a look ahead is the default of files' "$clip" -o null: --lookahead 1
run 0 'exposure with --peak auto' "$clip" -o null: --hash --exposure -1
differ "$(hash_of)" "$automatic"
run 0 'a rate' "$clip" -o rate.y4m --rate 24000/1001
equal "$(field rate.y4m F)" F24000:1001
run 0 'a rate in decimals' "$clip" -o rate.y4m --rate 12.5
equal "$(field rate.y4m F)" F12500:1000
prints '^cox-tonemap [0-9]+\.[0-9]+' 'version' --version
run 0 'help' --help
for option in verify transfer primaries range peak sdr-white hlg-peak operator desat detail dither gamut frames start lookahead frame size format; do
    contains out "--$option "
done

# --- Raw frames ---

hashes "$fixed" 'raw by name' "$work/clip.yuv" --size 64x48 -o a.nv12 --peak 1000
hashes "$fixed" 'raw by format' "$work/clip.yuv" --size 64x48 --format yuv420p10 -o a.nv12 --peak 1000
run 0 'raw from standard input' - --size 64x48 --format yuv420p10 -o b.nv12 --peak 1000 -q <"$work/clip.yuv"
same b.nv12 a.nv12
run 0 'raw with a rate' "$work/clip.yuv" --size 64x48 --rate 50 -o r.y4m --peak 1000
equal "$(field r.y4m F)" F50:1
# Two outputs that are read again must be the same picture.
run 0 'ten bits again' "$clip" -o t.y4m --depth 10 --peak 1000
run 0 'P010 again' "$clip" -o t.p010 --peak 1000
run 0 'ten bits in' t.y4m -o null: --hash --peak 1000
hashes "$(hash_of)" 'P010 in is ten bits in' t.p010 --size 64x48 -o null: --peak 1000
run 0 'eight bits again' "$clip" -o t8.y4m --peak 1000
run 0 'eight bits in' t8.y4m --transfer pq -o null: --hash --peak 1000
hashes "$(hash_of)" 'NV12 in is eight bits in' a.nv12 --transfer pq --size 64x48 -o null: --peak 1000
head -c $((64 * 48 * 8)) /dev/zero >"$work/black.rgba16f"
prints 'RGBA, half; linear light' 'RGBA' "$work/black.rgba16f" --size 64x48 -o black.nv12
equal "$(od -An -v -tu1 -N 3072 black.nv12 | tr -s ' ' '\n' | sort -u | tr -d '\n')" 16 'black'
clean

# --- No transfer function given: 8 bits count as SDR, more bits may be PQ, and the program says so ---

run 0 'eight bits' "$clip" -o ../sdr.y4m -q
run 0 'NV12' "$clip" -o ../sdr.nv12 -q
refuses 1 'sdr.y4m: it names no transfer curve, and 8-bit video is usually SDR .*; use --transfer pq or hlg' 'y4m of 8 bits' \
    "$work/sdr.y4m" -o a.y4m
refuses 1 'sdr.nv12: it names no transfer curve, and 8-bit video is usually SDR .*; use --transfer pq or hlg' 'raw frames of 8 bits' \
    "$work/sdr.nv12" --size 64x48 -o a.y4m
refuses 1 'it names no transfer curve' 'a PNG from 8 bits' "$work/sdr.y4m" -o a.png
for transfer in pq:PQ hlg:HLG; do
    run 0 "eight bits taken for ${transfer#*:}" "$work/sdr.y4m" -o null: --transfer "${transfer%:*}"
    contains out "8 bits; ${transfer#*:}, BT.2020"
done
prints '10 bits; PQ \(assumed\), BT.2020' 'ten bits' "$clip" -o null:
prints '10 bits; PQ \(assumed\), BT.2020' 'ten raw bits' "$work/clip.yuv" --size 64x48 -o null:
prints '10 bits; PQ, BT.2020' 'ten bits, PQ by option' "$clip" -o null: --transfer pq

# --- The same bits for any split ---

for way in '--devices cpu:2x1' '--devices cpu:2x1 --split 0.3,0.7' '--devices cpu:2x1 --split 1,0' '--in-flight 1' \
    '--devices cpu:2x1 --verify 1' '--devices cpu:2x1 --verify=0.25' \
    '--in-flight 4' '--devices cpu:2x1 --policy chunks --in-flight 3' '--no-cache'; do
    hashes "$automatic" "$way" "$clip" -o null: $way
    hashes "$fixed" "$way, fixed peak" "$clip" -o a.nv12 --peak 1000 $way
    hashes "$behind" "$way, without looking ahead" "$clip" -o null: --lookahead 0 $way
done
clean

# --- Statistics and trace ---

run 0 'statistics' "$clip" -o a.y4m --devices cpu:2x1 --stats s.json --trace t.json
peaks_used s.json
contains out '^scenes +peak [0-9]+ to [0-9]+ cd/m2, 1 cut$'
run 0 'statistics, without looking ahead and darker' "$clip" -o a.y4m --lookahead 0 --exposure -1 --stats l.json
peaks_used l.json
run 0 'statistics of a fixed peak' "$clip" -o a.y4m --peak 1000 --stats f.json
if [ "$python" ]; then
    cat >"$work/stats.py" <<'END'
import json, sys
stats, fixed, trace = (json.load(open(name)) for name in sys.argv[1:])
assert list(stats) == ["arithmetic", "devices", "policy", "granule", "frames", "shadows", "summary", "film"], list(stats)
assert [frame["index"] for frame in stats["frames"]] == list(range(12))
for frame in stats["frames"]:
    assert list(frame) == ["index", "wall_us", "latency_us", "deadline_us", "reason", "predicted_us", "alternative_us",
                           "pool_rows", "bands", "scene"], list(frame)
    assert sum(band["rows"] for band in frame["bands"] if band["status"] == "COX_OK") == 48
    scene = frame["scene"]
    assert list(scene) == ["peak_nits", "average_nits", "cut", "curve_peak_nits", "curve_gain"], list(scene)
    assert 0 < scene["average_nits"] < scene["peak_nits"] <= 10000 and scene["curve_gain"] > 0, scene
first = stats["frames"][0]["scene"]
assert abs(first["curve_peak_nits"] / max(first["peak_nits"], 203) - 1) < 0.01, first
assert [frame["index"] for frame in stats["frames"] if frame["scene"]["cut"]][-1] == 6
dark, bright = stats["frames"][5]["scene"], stats["frames"][6]["scene"]
assert bright["average_nits"] > 2 * dark["average_nits"], (dark, bright)
film = stats["film"]
assert list(film) == ["frames_read", "frames_written", "start_us", "total_us", "fps", "waited_us", "bound", "cuts"], list(film)
assert film["frames_read"] == film["frames_written"] == 12 and film["cuts"] == 1, film
assert 0 < film["start_us"] < film["total_us"] and film["fps"] > 0, film
assert list(film["waited_us"]) == ["input", "devices", "output"] and film["bound"] in film["waited_us"], film
assert sum(film["waited_us"].values()) <= film["total_us"] - film["start_us"] + 1, film
assert "cuts" not in fixed["film"] and "scene" not in fixed["frames"][0], fixed["film"]
assert trace["traceEvents"]
END
    check 'the content of the statistics' python3 "$work/stats.py" s.json f.json t.json
else
    leave_out 'the content of the statistics' 'there is no python3'
fi
clean

# --- Another size ---

for size in '1/2 1/2 W32 H24 1/2' '44x 44x34 W44 H34 x60'; do
    set -- $size
    run 0 "the size $1" "$clip" -o a.y4m --scale "$1" --peak 1000 --hash
    equal "$(head -c 20 a.y4m)" "YUV4MPEG2 $3 $4 F2"
    hashes "$(hash_of)" "the size $2 on two devices" "$clip" -o null: --scale "$2" --peak 1000 --devices cpu:2x1
    run 0 "the size $5, peak from the frames" "$clip" -o null: --scale "$5" --lookahead 1
done
# A staged device copies a large band in parts. The bands of this frame are large enough.
head -c 24883200 /dev/urandom >"$work/large.yuv"
large="--size 3840x2160 --format yuv420p10 --transfer pq --peak 1000 --scale 1920x1080 --in-flight 1 -o null:"
run 0 'a large frame, mapped' "$work/large.yuv" $large --hash --devices cpu
hashes "$(hash_of)" 'a large frame, staged' "$work/large.yuv" $large --devices cpu=staged
rm "$work/large.yuv"
clean

# --- Several inputs ---

mkdir "$work/in" folder
cp "$clip" "$work/in/one.y4m"
cp "$clip" "$work/in/two.y4m"
echo nothing >"$work/in/bad.y4m"
printf 'Pf\n1 1\n-1.0\n\000\000\200\076' >"$work/small.pfm"
run 0 'two into a folder' "$work/in/one.y4m" "$work/in/two.y4m" -o folder --to y4m --peak 1000
run 0 'one alone' "$clip" -o a.y4m --peak 1000
same a.y4m folder/one.y4m
same a.y4m folder/two.y4m
run 0 'one into a folder' "$work/in/one.y4m" -o folder/ --to nv12 --peak 1000
check 'it is not there' [ -s folder/one.nv12 ]
run 0 'a picture into a folder' "$work/small.pfm" -o folder
check 'it is not there' [ -s folder/small.png ]
rm folder/*
run 1 'a bad one among several' "$work/in/bad.y4m" "$work/in/missing.y4m" "$work/in/two.y4m" -o folder --to y4m --peak 1000
contains err '2 of 3 inputs failed'
same a.y4m folder/two.y4m
clean
mkfifo "$work/in/pipe.y4m"
one=$work/in/one.y4m
refuses 2 'a.y4m: not a folder, which several inputs need' 'several into a file' "$one" "$work/in/two.y4m" -o a.y4m
refuses 2 'no such folder' 'a folder that is none' "$one" -o nowhere/
refuses 2 'have the same output' 'one name twice' "$one" "$clip" "$work/in/../clip.y4m" -o . --to nv12
refuses 2 'standard input cannot go to the folder' 'a folder for standard input' - "$one" -o . --to nv12
refuses 2 'pipe.y4m: a pipe or device must be the only input' 'a pipe among several' "$one" "$work/in/pipe.y4m" -o . --to nv12
refuses 2 'pipe.y4m: a pipe or device must be the only input' 'a pipe into a folder' "$work/in/pipe.y4m" -o . --to nv12
refuses 2 '--stats takes one input' 'statistics of several' "$one" "$work/in/two.y4m" -o . --to nv12 --stats s.json

# --- Containers, if they are built in and ffmpeg can make them ---

# coded NAME FILTERS OPTIONS...: the colours that the frames declare. Since FFmpeg 7 an encoder's colour options
# request a conversion instead.
coded() {
    name=$1 filters=$2
    shift 2
    ffmpeg -v error -y -i "$clip" -vf "$filters" "$@" -c:v ffv1 "$work/$name.mkv" 2>"$work/err"
}
# tagged FILE PEAK MAXCLL: the clip with a mastering display of PEAK/10000 cd/m2. A MAXCLL of 0 means none.
tagged() {
    ffmpeg -v quiet -y -i "$clip" -c:v libx265 -x265-params "log-level=-1:lossless=1:hdr10=1:colorprim=bt2020:\
transfer=smpte2084:colormatrix=bt2020nc:max-cll=$3,200:\
master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L($2,1)" "$work/$1"
}
need_containers() {
    coded hdr setparams=color_trc=smpte2084:color_primaries=bt2020:colorspace=bt2020nc &&
        coded sdr setparams=color_trc=bt709:color_primaries=bt709:colorspace=bt709 &&
        "$tonemap" "$work/hdr.mkv" -o null: -q 2>"$work/err"
}
if ! need_containers; then
    leave_out 'containers' 'ffmpeg or libavformat is missing'
    finish
fi
hashes "$automatic" 'a container holds the same frames' "$work/hdr.mkv" -o null:
contains out '; PQ, BT.2020' '^waited .*: bound by (the decoder \(ffv1\).*|devices|output)$'
run 0 'a part of a container' "$work/hdr.mkv" -o a.nv12 --peak 1000 --start 5 --frames 3
same a.nv12 "$work/part"
clean
refuses 1 'not HDR video .*bt709.*--transfer pq or hlg' 'a container of SDR' "$work/sdr.mkv" -o a.y4m
if coded varies 'setpts=N+4*gte(N\,6),settb=1/25' -fps_mode passthrough; then
    run 0 'a rate that varies' "$work/varies.mkv" -o a.y4m
    contains err '^cox-tonemap: warning: .*varies.mkv: its frame rate varies, but y4m has one rate: [0-9.]+ frames/s'
    counts 1 err 'rate varies'
    run 0 'a rate that varies, raw' "$work/varies.mkv" -o a.nv12
    contains err 'warning: .*varies.mkv: its frame rate varies, but the output has no time stamps'
    for way in '-o a.y4m --rate 25' '-o null:' '-o a.png' '-o a.y4m -q' '-o a.y4m --frames 6' '-o a.y4m --start 6'; do
        run 0 "a rate that varies, $way" "$work/varies.mkv" --transfer pq $way
        equal "$(grep -v 'missing by the frames. times' "$work/err")" '' 'nothing else to warn of'
    done
    clean
else
    leave_out 'a rate that varies' 'ffmpeg has no -fps_mode'
fi
coded bare null
prints '10 bits; PQ \(assumed\), BT.2020' 'a container without colours' "$work/bare.mkv" -o null:
coded bare8 null -pix_fmt yuv420p
refuses 1 'it names no transfer curve, and 8-bit video is usually SDR .*; use --transfer pq or hlg' 'a container of 8 bits' "$work/bare8.mkv" -o a.y4m
coded 709 setparams=color_primaries=bt709:colorspace=bt709
refuses 1 "it names no transfer curve, and video with BT.709 primaries is usually SDR .*; use --transfer pq or hlg" \
    'a container of BT.709' "$work/709.mkv" -o a.y4m
prints 'HLG, BT.709' 'SDR taken for HLG' "$work/sdr.mkv" -o null: --transfer hlg
if ! tagged m.mkv 4000000 600; then
    leave_out 'mastering metadata' 'ffmpeg has no libx265'
    finish
fi
# Light that the frames contain is kept, whatever peak the stream declares.
for tags in "4000000 600" "50 600" "50 0" "50 200" "90000000 0" "30000000 20000"; do
    tagged t.mkv $tags
    hashes "$automatic" "tagged $tags" "$work/t.mkv" -o null:
    case $tags in
    "4000000 600" | "30000000 20000") contains out 'names a peak of [34]00+ cd/m2, of the mastering.*; the peak is measured$' ;;
    "50 200") contains out "names a peak of 200 cd/m2, of the brightest pixel .MaxCLL.; the peak is measured" ;;
    "50 600") contains out "names a peak of 600 cd/m2, of the brightest pixel .MaxCLL.; the peak is measured" ;;
    esac
    case $tags in 50*) contains out 'names a peak of 0.005 cd/m2, which is invalid and ignored$' ;; esac
done
tagged t.mkv 50 200
run 0 'a film darker than SDR white' "$work/t.mkv" -o null: --trust-metadata
contains out '200 cd/m2, of the brightest pixel .MaxCLL.; the upper limit is SDR white, which is brighter$'
tagged t.mkv 50 0
hashes "$automatic" 'nonsense is not trusted' "$work/t.mkv" -o null: --trust-metadata
run 0 'mastering metadata bounds the peak' "$work/m.mkv" -o null: --stats m.json --hash --trust-metadata
contains out '^light .*, peak from the frame$' \
    "^ +the stream names a peak of 400 cd/m2, of the mastering display; used as the upper limit\$"
differ "$(hash_of)" "$automatic"
peaks=$(grep -o '"curve_peak_nits": [0-9]*' m.json | cut -d ' ' -f 2)
equal "$(echo "$peaks" | head -n 1)" 314 'the first frame is mapped for its own peak'
equal "$(echo "$peaks" | awk '$1 > 400' | wc -l)" 0 'frames that are mapped for more'
peaks_used m.json
finish
