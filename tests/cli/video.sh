#!/bin/sh
# What cox-tonemap does with video: what it writes, what it refuses, how it ends.   sh video.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
tonemap=$(cd "$1" && pwd)/cox-tonemap
if [ ! -x "$tonemap" ]; then
    echo "skipped, because cox-tonemap is not built (libpng is missing)"
    exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/../support/tonemap.sh"

differ() { if [ "$1" != "$2" ] && [ -n "$1" ]; then pass; else fail "$3: both are '$1'"; fi; }
same() { if cmp -s "$1" "$2"; then pass; else fail "$3: the files differ"; fi; }
bytes() { wc -c <"$1" | tr -d ' '; }

# whole FILE FRAME_BYTES NAME: a y4m file that ends with a whole frame; sets `frames`.
whole() {
    head_bytes=$(head -n 1 "$1" | wc -c)
    rest=$(($(bytes "$1") - head_bytes))
    frames=$((rest / ($2 + 6)))
    if [ $((rest % ($2 + 6))) -eq 0 ]; then pass; else fail "$3: $rest bytes are no whole frames"; fi
}

# ends PID SECONDS NAME: the program comes to its end in time; sets `status`.
ends() {
    tries=$(($2 * 10))
    while kill -0 "$1" 2>/dev/null && [ $tries -gt 0 ]; do
        sleep 0.1
        tries=$((tries - 1))
    done
    if [ $tries -gt 0 ]; then pass; else
        fail "$3: it hangs"
        kill -KILL "$1"
    fi
    wait "$1" 2>/dev/null
    status=$?
}

# The shell has what runs in its background ignore SIGINT; this undoes that.
defaults=
env --default-signal=INT true 2>/dev/null && defaults='env --default-signal=INT'

have_python=
python3 -c 'import json' 2>/dev/null && have_python=1

# peaks_used STATS NAME: the line of scenes has the least and the greatest peak that a frame was mapped with.
peaks_used() {
    used=$(grep -o '"curve_peak_nits": [0-9.]*' "$work/d/$1" | awk '
        { p = $2 + 0; if (NR == 1 || p < least) least = p; if (p > most) most = p }
        END { printf "peak %.0f to %.0f cd/m2", least, most }')
    has out "^scenes +$used, " "$2: the peaks that were used"
}

# --- Clips ---

# samples WIDTH HEIGHT FRAME: 4:2:0, 10 bits; brighter from frame 6 on.
samples() {
    # shellcheck disable=SC2059
    printf "$(LC_ALL=C awk -v w="$1" -v h="$2" -v n="$3" '
        function put(v) { printf "\\%03o\\%03o", v % 256, int(v / 256) }
        BEGIN {
            for (y = 0; y < h; y++)
                for (x = 0; x < w; x++)
                    put(n < 6 ? 64 + (x * 13 + y * 7 + n * 29) % 437 : 300 + (x * 5 + y * 3 + n * 11) % 600)
            for (c = 0; c < 2; c++)
                for (y = 0; y < int((h + 1) / 2); y++)
                    for (x = 0; x < int((w + 1) / 2); x++)
                        put(512 + (c ? x - y : y - x) * 3 + n % 5)
        }')"
}

# clip WIDTH HEIGHT FRAMES
clip() {
    printf 'YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C420p10\n' "$1" "$2"
    n=0
    while [ $n -lt "$3" ]; do
        printf 'FRAME\n'
        samples "$1" "$2" $n
        n=$((n + 1))
    done
}

clip 64 48 12 >"$work/clip.y4m"
n=0
while [ $n -lt 12 ]; do
    samples 64 48 $n
    n=$((n + 1))
done >"$work/clip.yuv"
clip 37 21 3 >"$work/odd.y4m"
frame8=4608   # bytes of a frame of 64 x 48, 4:2:0, 8 bits
frame10=9216
{
    printf 'FRAME\n'
    samples 64 48 0
} >"$work/frame"

# endless FILE: a film without an end into a pipe with that name, until nobody reads it.
endless() {
    {
        head -n 1 "$work/clip.y4m"
        while cat "$work/frame" "$work/frame" "$work/frame" "$work/frame"; do :; done
    } >"$1" 2>/dev/null &
    feeder=$!
}

# --- What it writes ---

run 0 'y4m' "$work/clip.y4m" -o a.y4m --hash
has out '^video .*: 64 x 48, y4m, 4:2:0, 10 bits; PQ \(assumed\), BT.2020, limited range, 25 frames/s, 12 frames' 'says what it read'
has out '^light +hable, SDR white 203 cd/m2, peak from the frame before' 'says how it maps'
has out '^result +12 frames, [0-9.]+ frames/s' 'says how fast it was'
has out '^waited +for input [0-9]+ %, for devices [0-9]+ %, for output [0-9]+ %.*: bound by (reading|devices|output)' 'says what bound it'
has out '^scenes +peak [0-9]+ to [0-9]+ cd/m2, 1 cut$' 'says what it saw'
has out '^written +a.y4m \(y4m, 64 x 48, 4:2:0, 12 frames, 8 bit\)' 'says what it wrote'
automatic=$(hash_of)
equal "$(head -n 1 "$work/d/a.y4m" | cut -d ' ' -f 1-6)" 'YUV4MPEG2 W64 H48 F25:1 Ip A1:1' 'header'
equal "$(head -n 1 "$work/d/a.y4m" | tr ' ' '\n' | grep '^C')" 'C420mpeg2' 'samples'
whole "$work/d/a.y4m" $frame8 'y4m'
equal $frames 12 'frames of y4m'

run 0 'ten bits' "$work/clip.y4m" -o b.y4m --depth 10
equal "$(head -n 1 "$work/d/b.y4m" | tr ' ' '\n' | grep '^C')" 'C420p10' 'ten bits: samples'
whole "$work/d/b.y4m" $frame10 'ten bits'
equal $frames 12 'ten bits: frames'

(cd "$work/d" && "$tonemap" - -o c.y4m -q <"$work/clip.y4m") >"$work/out" 2>"$work/err" || fail 'standard input'
same "$work/d/c.y4m" "$work/d/a.y4m" 'the same from standard input'
# shellcheck disable=SC2002
(cd "$work/d" && cat "$work/clip.y4m" | "$tonemap" - -o - 2>"$work/err" | cat >p.y4m) >"$work/out"
same "$work/d/p.y4m" "$work/d/a.y4m" 'the same from pipe to pipe'
cp "$work/err" "$work/out"
has out '^result +12 frames' 'the results go to standard error then'
equal "$(sed -n 's/^video .* 25 frames.s\(.*\)$/\1/p' "$work/out")" '' 'a pipe does not know how many frames there are'

run 0 'NV12' "$work/clip.y4m" -o a.nv12 --hash
equal "$(bytes "$work/d/a.nv12")" $((12 * frame8)) 'bytes of NV12'
head -c 3072 "$work/d/a.nv12" >"$work/luma"
head -n 1 "$work/d/a.y4m" >"$work/head"
tail -c +$(($(bytes "$work/head") + 7)) "$work/d/a.y4m" | head -c 3072 >"$work/luma2"
same "$work/luma" "$work/luma2" 'the luma of NV12 is that of y4m'
run 0 'P010' "$work/clip.y4m" -o a.p010
equal "$(bytes "$work/d/a.p010")" $((12 * frame10)) 'bytes of P010'
equal "$(od -An -v -tu2 --endian=little "$work/d/a.p010" | tr -s ' ' '\n' | awk '$1 % 64 { bad++ } END { print bad + 0 }')" 0 \
    'P010 lies in the upper bits'
run 0 'standard output as NV12' "$work/clip.y4m" -o - --to nv12
same "$work/out" "$work/d/a.nv12" 'standard output as NV12'
run 0 'standard output as P010' "$work/clip.y4m" -o - --to p010 -q
same "$work/out" "$work/d/a.p010" 'standard output as P010'
run 0 'any name' "$work/clip.y4m" -o any.name --to y4m
same "$work/d/any.name" "$work/d/a.y4m" 'any name'
run 0 'nothing' "$work/clip.y4m" -o null: --hash
equal "$(hash_of)" "$automatic" 'the hash is that of the y4m'
run 0 'quiet' "$work/clip.y4m" -o null: -q
equal "$(cat "$work/out" "$work/err")" '' 'quiet says nothing'
run 0 'verbose' "$work/clip.y4m" -o null: -v
equal "$(grep -c '^frame  *[0-9]* *\[#*\]' "$work/out")" 12 'verbose shows each frame'
printf 'old' >"$work/d/old.y4m"
run 0 'a file that is there' "$work/clip.y4m" -o old.y4m
same "$work/d/old.y4m" "$work/d/a.y4m" 'a file that is there is replaced'

run 0 'odd sides' "$work/odd.y4m" -o odd.y4m
whole "$work/d/odd.y4m" $((37 * 21 + 2 * 19 * 11)) 'odd sides'
equal $frames 3 'odd sides: frames'
run 0 'odd sides, NV12' "$work/odd.y4m" -o odd.nv12
equal "$(bytes "$work/d/odd.nv12")" $((3 * (37 * 21 + 2 * 19 * 11))) 'odd sides: NV12'

run 0 'a PNG' "$work/clip.y4m" -o a.png --frame 3 --hash
is_png "$work/d/a.png" 64 48 8 'a PNG'
has out '^result +1 frame,' 'a PNG is one frame'
has out '^light .*peak from the frame$' 'a PNG is steered by its own frame'
third=$(hash_of)
run 0 'the first frame' "$work/clip.y4m" -o first.png --hash
differ "$(hash_of)" "$third" 'frame 0 is not frame 3'
first=$(hash_of)
run 0 'frame 0' "$work/clip.y4m" -o zero.png --frame 0 --hash
equal "$(hash_of)" "$first" 'without --frame it is frame 0'
run 0 'a deep PNG' "$work/clip.y4m" -o deep.png --frame 3 --depth 16
is_png "$work/d/deep.png" 64 48 16 'a deep PNG'
run 0 'a PNG on standard output' "$work/clip.y4m" -o - --to png --frame 3
same "$work/out" "$work/d/a.png" 'a PNG on standard output'
(cd "$work/d" && "$tonemap" - -o in.png --frame 3 -q <"$work/clip.y4m") >"$work/out" 2>"$work/err" || fail 'a PNG from standard input'
same "$work/d/in.png" "$work/d/a.png" 'a PNG from standard input'

# --- Which frames ---

run 0 'fixed' "$work/clip.y4m" -o fixed.nv12 --peak 1000 --hash
fixed=$(hash_of)
run 0 'part' "$work/clip.y4m" -o part.nv12 --peak 1000 --start 5 --frames 3
has out '^result +3 frames' 'part: frames'
tail -c +$((5 * frame8 + 1)) "$work/d/fixed.nv12" | head -c $((3 * frame8)) >"$work/part"
same "$work/d/part.nv12" "$work/part" 'part'
(cd "$work/d" && "$tonemap" - -o part2.nv12 --peak 1000 --start 5 --frames 3 -q <"$work/clip.y4m") 2>"$work/err"
same "$work/d/part2.nv12" "$work/part" 'part of a pipe'
run 0 'more than there are' "$work/clip.y4m" -o part3.nv12 --peak 1000 --start 10 --frames 1000
equal "$(bytes "$work/d/part3.nv12")" $((2 * frame8)) 'more than there are'
# What comes after the frames is not waited for.
mkfifo "$work/pipe"
{
    cat "$work/clip.y4m"
    exec sleep 300
} >"$work/pipe" &
feeder=$!
(cd "$work/d" && exec "$tonemap" "$work/pipe" -o some.nv12 --peak 1000 --frames 12) >"$work/out" 2>"$work/err" &
ends $! 120 'the pipe stays open after the last frame'
equal "$status" 0 'the pipe stays open after the last frame: status'
same "$work/d/some.nv12" "$work/d/fixed.nv12" 'the pipe stays open after the last frame'
kill $feeder 2>/dev/null
wait $feeder 2>/dev/null
clean

# --- Each option does something ---

# Each of these is a kernel of its own, and compiling one takes a sanitizer ten times as long.
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
--transfer hlg"
if [ -n "${ASAN_OPTIONS:-}" ]; then
    echo 'skipped all operators but one, because a sanitizer is at work'
    kernels='--operator mobius'
fi
while read -r way; do
    # shellcheck disable=SC2086
    run 0 "$way" "$work/clip.y4m" -o a.nv12 --peak 1000 --hash $way
    differ "$(hash_of)" "$fixed" "$way"
done <<END
$kernels
--peak 400
--sdr-white 100
--exposure -1
--primaries bt709
--range full
END
for way in '--operator hable' '--sdr-white 203' '--desat 0.75' '--dither ordered' '--exposure 0' '--transfer pq' \
    '--primaries bt2020' '--range limited' '--depth 8' '--gamut compress' '--gamut compress:0.9'; do
    # shellcheck disable=SC2086
    run 0 "$way" "$work/clip.y4m" -o a.nv12 --peak 1000 --hash $way
    equal "$(hash_of)" "$fixed" "$way is the default"
done
run 0 'as many bits' "$work/clip.y4m" -o a.p010 --peak 1000 --hash
as_many=$(hash_of)
run 0 'as many bits, not dithered' "$work/clip.y4m" -o a.p010 --peak 1000 --hash --dither none
equal "$(hash_of)" "$as_many" 'as many bits are not dithered'
if [ -z "${ASAN_OPTIONS:-}" ]; then
    run 0 'local, look ahead, two devices' "$work/clip.y4m" -o null: --operator local --lookahead 1 --hash --devices cpu:2x1
    local_ahead=$(hash_of)
    run 0 'local, look ahead' "$work/clip.y4m" -o null: --operator local --lookahead 1 --hash
    equal "$(hash_of)" "$local_ahead" 'local, on one device and on two'
fi
run 0 'a look ahead' "$work/clip.y4m" -o null: --lookahead 1 --hash
ahead=$(hash_of)
differ "$ahead" "$automatic" 'a look ahead'
has out '^scenes .*, 1 cut$' 'a look ahead sees the cut'
run 0 'no look ahead' "$work/clip.y4m" -o null: --lookahead 0 --hash
equal "$(hash_of)" "$automatic" 'no look ahead is the default'
run 0 'automatic, darker' "$work/clip.y4m" -o null: --hash --exposure -1
differ "$(hash_of)" "$automatic" 'exposure with --peak auto'
run 0 'a rate' "$work/clip.y4m" -o rate.y4m --rate 24000/1001
equal "$(head -n 1 "$work/d/rate.y4m" | tr ' ' '\n' | grep '^F')" 'F24000:1001' 'a rate'
run 0 'a rate in decimals' "$work/clip.y4m" -o rate.y4m --rate 12.5
equal "$(head -n 1 "$work/d/rate.y4m" | tr ' ' '\n' | grep '^F')" 'F12500:1000' 'a rate in decimals'
run 0 'version' --version
has out '^cox-tonemap [0-9]+\.[0-9]+' 'version'
run 0 'help' --help
for option in verify transfer primaries range peak sdr-white operator desat detail dither gamut frames start lookahead frame size format; do
    has out "--$option " "help names --$option"
done

# --- Raw frames ---

run 0 'raw by name' "$work/clip.yuv" --size 64x48 -o a.nv12 --peak 1000 --hash
equal "$(hash_of)" "$fixed" 'raw by name'
run 0 'raw by format' "$work/clip.yuv" --size 64x48 --format yuv420p10 -o a.nv12 --peak 1000 --hash
equal "$(hash_of)" "$fixed" 'raw by format'
(cd "$work/d" && "$tonemap" - --size 64x48 --format yuv420p10 -o b.nv12 --peak 1000 -q <"$work/clip.yuv") \
    >"$work/out" 2>"$work/err" || fail 'raw from standard input'
same "$work/d/b.nv12" "$work/d/a.nv12" 'raw from standard input'
run 0 'raw with a rate' "$work/clip.yuv" --size 64x48 --rate 50 -o r.y4m --peak 1000
equal "$(head -n 1 "$work/d/r.y4m" | tr ' ' '\n' | grep '^F')" 'F50:1' 'raw with a rate'
# What was written in two ways and is read again is the same picture.
run 0 'ten bits again' "$work/clip.y4m" -o t.y4m --depth 10 --peak 1000
run 0 'P010 again' "$work/clip.y4m" -o t.p010 --peak 1000
run 0 'ten bits in' t.y4m -o null: --hash --peak 1000
ten=$(hash_of)
run 0 'P010 in' t.p010 --size 64x48 -o null: --hash --peak 1000
equal "$(hash_of)" "$ten" 'P010 in is ten bits in'
run 0 'eight bits again' "$work/clip.y4m" -o t8.y4m --peak 1000
run 0 'eight bits in' t8.y4m --transfer pq -o null: --hash --peak 1000
eight=$(hash_of)
run 0 'NV12 in' a.nv12 --transfer pq --size 64x48 -o null: --hash --peak 1000
equal "$(hash_of)" "$eight" 'NV12 in is eight bits in'
head -c $((64 * 48 * 8)) /dev/zero >"$work/black.rgba16f"
run 0 'RGBA' "$work/black.rgba16f" --size 64x48 -o black.nv12
has out 'RGBA, half; linear light' 'RGBA is linear light'
equal "$(od -An -v -tu1 -N 3072 "$work/d/black.nv12" | tr -s ' ' '\n' | sort -u | tr -d '\n')" 16 'black is black'
clean

# --- Without a word of the transfer curve ---

# What has 8 bits is SDR as a rule; what has more may be PQ, which is said.
run 0 'eight bits' "$work/clip.y4m" -o sdr.y4m -q
run 0 'NV12' "$work/clip.y4m" -o sdr.nv12 -q
mv "$work/d/sdr.y4m" "$work/d/sdr.nv12" "$work"
refuses 1 'sdr.y4m: it names no transfer curve, and video of 8 bits is SDR as a rule .*; --transfer pq or hlg' 'y4m of 8 bits' \
    "$work/sdr.y4m" -o a.y4m
refuses 1 'sdr.nv12: it names no transfer curve, and video of 8 bits is SDR .*; --transfer pq or hlg' 'raw frames of 8 bits' \
    "$work/sdr.nv12" --size 64x48 -o a.y4m
refuses 1 'it names no transfer curve' 'a PNG from 8 bits' "$work/sdr.y4m" -o a.png
for transfer in pq:PQ hlg:HLG; do
    run 0 "eight bits taken for ${transfer#*:}" "$work/sdr.y4m" -o null: --transfer "${transfer%:*}"
    has out "8 bits; ${transfer#*:}, BT.2020" "eight bits taken for ${transfer#*:}"
done
run 0 'ten bits' "$work/clip.y4m" -o null:
has out '10 bits; PQ \(assumed\), BT.2020' 'ten bits without a word'
run 0 'ten raw bits' "$work/clip.yuv" --size 64x48 -o null:
has out '10 bits; PQ \(assumed\), BT.2020' 'ten raw bits without a word'
run 0 'ten bits, PQ by option' "$work/clip.y4m" -o null: --transfer pq
has out '10 bits; PQ, BT.2020' 'ten bits, PQ by option'
clean

# --- The same bits however the work is shared ---

for way in '--devices cpu:2x1' '--devices cpu:2x1 --split 0.3,0.7' '--devices cpu:2x1 --split 1,0' '--in-flight 1' \
    '--devices cpu:2x1 --verify 1' '--devices cpu:2x1 --verify=0.25' \
    '--in-flight 4' '--devices cpu:2x1 --policy last-frame --in-flight 3' '--no-cache'; do
    # shellcheck disable=SC2086
    run 0 "$way" "$work/clip.y4m" -o null: --hash $way
    equal "$(hash_of)" "$automatic" "hash with $way"
    # shellcheck disable=SC2086
    run 0 "$way, fixed peak" "$work/clip.y4m" -o a.nv12 --hash --peak 1000 $way
    equal "$(hash_of)" "$fixed" "hash with $way and a fixed peak"
    # shellcheck disable=SC2086
    run 0 "$way, looking ahead" "$work/clip.y4m" -o null: --hash --lookahead 1 $way
    equal "$(hash_of)" "$ahead" "hash with $way, looking ahead"
done
clean

# --- Statistics and trace ---

run 0 'statistics' "$work/clip.y4m" -o a.y4m --devices cpu:2x1 --stats s.json --trace t.json
peaks_used s.json 'statistics'
has out '^scenes +peak [0-9]+ to [0-9]+ cd/m2, 1 cut$' 'statistics: scenes'
run 0 'statistics, looking ahead' "$work/clip.y4m" -o a.y4m --lookahead 1 --exposure -1 --stats l.json
peaks_used l.json 'statistics, looking ahead and darker'
run 0 'statistics of a fixed peak' "$work/clip.y4m" -o a.y4m --peak 1000 --stats f.json
if [ "$have_python" ]; then
    python3 - "$work/d/s.json" "$work/d/f.json" "$work/d/t.json" >"$work/out" 2>"$work/err" <<'END' && pass || fail 'statistics: content'
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
else
    echo 'skipped the content of the statistics, because there is no python3'
fi
clean

# --- What it was bound by ---

# A program before a pipe that is waited for longest: it writes all frames, and ends three times as long after the last of them as
# all before took, however slow the machine is.
rm -f "$work/pipe"
mkfifo "$work/pipe" "$work/hold"
cat "$work/clip.y4m" "$work/hold" >"$work/pipe" &
feeder=$!
began=$(date +%s)
(cd "$work/d" && exec "$tonemap" "$work/pipe" -o a.nv12) >"$work/out" 2>"$work/err" &
pid=$!
tries=1200
: >>"$work/d/a.nv12"
while [ "$(bytes "$work/d/a.nv12")" -lt $((12 * frame8)) ] && [ $tries -gt 0 ]; do
    sleep 0.1
    tries=$((tries - 1))
done
sleep $((3 * ($(date +%s) - began + 1)))
: <>"$work/hold" # opened for both ends, so that it cannot wait for a program that is gone
ends $pid 120 'a slow program before the pipe'
equal "$status" 0 'a slow program before the pipe: status'
wait $feeder 2>/dev/null
has out '^waited .*: bound by cat, which writes to the pipe$' 'a slow program before the pipe'
clean

# --- The live line ---

if script -qec true /dev/null >/dev/null 2>&1; then
    rm -f "$work/pipe"
    mkfifo "$work/pipe"
    endless "$work/pipe"
    (cd "$work/d" && TERM=xterm script -qec "'$tonemap' '$work/pipe' -o null: --devices cpu:1x1" /dev/null) \
        >"$work/live" 2>"$work/err" </dev/null &
    pid=$!
    appears "$work/live" '^[0-9]+ frames  [0-9.]+ frames/s'
    kill -TERM $pid 2>/dev/null
    wait $pid 2>/dev/null
    kill $feeder 2>/dev/null
    wait $feeder 2>/dev/null
    tr '\r' '\n' <"$work/live" >"$work/out"
    has out '^[0-9]+ frames  [0-9.]+ frames/s' 'a live line on a terminal'
    if grep -q '^[0-9]* frames .*\[[> ]' "$work/out"; then fail 'a live line: progress of what has no end'; else pass; fi
else
    echo 'skipped the live line, because script (bsdutils) is not installed'
fi

# --- Interruption ---

# interrupt SIGNAL STATUS INPUT NAME: with whole frames written.
interrupt() {
    if [ "$1" = INT ] && [ -z "$defaults" ]; then
        echo "skipped '$4', because env has no --default-signal"
        return
    fi
    # shellcheck disable=SC2086
    (cd "$work/d" && exec $defaults "$tonemap" "$3" -o a.y4m) >"$work/out" 2>"$work/err" &
    pid=$!
    tries=1200
    : >>"$work/d/a.y4m"
    while [ "$(bytes "$work/d/a.y4m")" -lt $((4 * frame8)) ] && [ $tries -gt 0 ]; do
        sleep 0.1
        tries=$((tries - 1))
    done
    sleep 0.3
    kill -"$1" $pid
    ends $pid 120 "$4"
    equal "$status" "$2" "$4: status"
    whole "$work/d/a.y4m" $frame8 "$4"
    has err "^cox-tonemap: interrupted after $frames frames\$" "$4: says so"
    has out "^result +$frames frames" "$4: the summary"
    kill $feeder 2>/dev/null
    wait $feeder 2>/dev/null
    clean
}
rm -f "$work/pipe"
mkfifo "$work/pipe"
endless "$work/pipe"
interrupt INT 130 "$work/pipe" 'interrupted at work'

# Two signals at once are one: both wait while the program is stopped, so that however busy the machine is nothing comes
# between them.
endless "$work/pipe"
(cd "$work/d" && exec "$tonemap" "$work/pipe" -o a.y4m) >"$work/out" 2>"$work/err" &
pid=$!
listening $pid
kill -STOP $pid
kill -TERM $pid
kill -HUP $pid
kill -CONT $pid
ends $pid 120 'two signals at once'
case $status in
143 | 129) pass ;;
*) fail "two signals at once: status $status" ;;
esac
has err '^cox-tonemap: interrupted' 'two signals at once: an end in order'
kill $feeder 2>/dev/null
wait $feeder 2>/dev/null
clean

endless "$work/pipe"
interrupt TERM 143 "$work/pipe" 'terminated at work'
{
    cat "$work/clip.y4m"
    exec sleep 300
} >"$work/pipe" &
feeder=$!
interrupt INT 130 "$work/pipe" 'interrupted while it waits for a pipe'

# An output that nobody takes from: the first signal waits for it, the second does not.
mkfifo "$work/d/out.y4m"
sleep 300 <>"$work/d/out.y4m" &
holder=$!
{
    printf 'YUV4MPEG2 W1024 H1024 F25:1 C420p10\nFRAME\n'
    head -c 3145728 /dev/zero
    exec sleep 300
} >"$work/pipe" &
feeder=$!
(cd "$work/d" && exec "$tonemap" "$work/pipe" -o out.y4m) >"$work/out" 2>"$work/err" &
pid=$!
# What comes behind the header is of the frame, which is more than a pipe ever holds: from then on it waits.
timeout 120 head -c 200 "$work/d/out.y4m" >/dev/null
kill -TERM $pid
sleep 0.5
if kill -0 $pid 2>/dev/null; then pass; else fail 'interrupted with a stalled output: the frames under way are lost'; fi
again=0
while kill -TERM $pid 2>/dev/null && [ $again -lt 120 ]; do # the one that comes half a second after the first
    again=$((again + 1))
    sleep 1
done
ends $pid 120 'interrupted twice'
equal "$status" 143 'interrupted twice: status'
if grep -q 'interrupted after' "$work/err"; then fail 'interrupted twice: the end was waited for'; else pass; fi
kill $holder $feeder 2>/dev/null
wait $holder $feeder 2>/dev/null
clean

# --- Pipes that close early, outputs that cannot be ---

endless "$work/pipe"
{
    (cd "$work/d" && "$tonemap" "$work/pipe" -o - 2>"$work/err")
    echo $? >"$work/status"
} | head -c 20000 >/dev/null
equal "$(cat "$work/status")" 1 'the reader of the output is gone: status'
has err '^cox-tonemap: standard stream: cannot be written, .*: Broken pipe' 'the reader of the output is gone'
kill $feeder 2>/dev/null
wait $feeder 2>/dev/null
refuses 1 'no/such/a.y4m: cannot be written: No such file' 'a missing folder' "$work/clip.y4m" -o no/such/a.y4m
refuses 1 'is the input' 'the folder of the input' "$work/clip.y4m" -o "$work" --to y4m
refuses 1 '/dev/full: cannot be written, .*: No space left' 'a full device' "$work/clip.y4m" -o /dev/full --to y4m
refuses 1 'statistics.*cannot be written|s.json: cannot be written' 'statistics that have no place' "$work/clip.y4m" \
    -o null: --stats no/such/s.json
refuses 2 "x.avi: what is it to be\? There are .mkv, .mp4, .y4m, .nv12, .p010, .png" 'an unknown kind of output' "$work/clip.y4m" -o x.avi
cp "$work/clip.y4m" "$work/d/in.y4m"
run 1 'the input as output' in.y4m -o ./in.y4m
has err 'in.y4m: is the input; give the output another name' 'the input as output'
same "$work/clip.y4m" "$work/d/in.y4m" 'the input was touched'
run 1 'the input as statistics' in.y4m -o null: --stats in.y4m
same "$work/clip.y4m" "$work/d/in.y4m" 'the input was touched by the statistics'
(cd "$work/d" && exec "$tonemap" - -o in.y4m) <"$work/d/in.y4m" >"$work/out" 2>"$work/err"
equal $? 1 'the input as output, through standard input: status'
has err 'is the input' 'the input as output, through standard input'
(cd "$work/d" && exec "$tonemap" in.y4m -o -) >>"$work/d/in.y4m" 2>"$work/err" </dev/null
equal $? 1 'the input as output, through standard output: status'
has err 'is the input' 'the input as output, through standard output'
same "$work/clip.y4m" "$work/d/in.y4m" 'the input was touched by a redirection'
clean
(cd "$work/d" && exec "$tonemap" "$work/clip.y4m" -o -) >&- 2>"$work/err" </dev/null
equal $? 1 'standard output is closed: status'
has err 'standard stream: cannot be written' 'standard output is closed'
(cd "$work/d" && exec "$tonemap" - -o a.y4m) <&- >"$work/out" 2>"$work/err"
equal $? 1 'standard input is closed: status'
equal "$(ls -A "$work/d")" '' 'standard input is closed: nothing is left'
(ulimit -f 40 && cd "$work/d" && "$tonemap" "$work/clip.y4m" -o a.y4m) >"$work/out" 2>"$work/err"
equal $? 1 'a limit on file sizes: status'
has err '^cox-tonemap: a.y4m: cannot be written, .*: File too large' 'a limit on file sizes'
whole "$work/d/a.y4m" $frame8 'a limit on file sizes'
clean

# --- Bad input ---

size=$(bytes "$work/clip.y4m")
head -c $((size - 100)) "$work/clip.y4m" >"$work/short.y4m"
run 1 'a truncated file' "$work/short.y4m" -o a.y4m
has err '^cox-tonemap: .*short.y4m: frame 11 .*byte [0-9]+.*100 bytes are missing' 'a truncated file'
equal "$(wc -l <"$work/err" | tr -d ' ')" 1 'a truncated file: one line'
whole "$work/d/a.y4m" $frame8 'a truncated file'
equal $frames 11 'a truncated file: frames that are kept'
(cd "$work/d" && "$tonemap" - -o b.y4m <"$work/short.y4m") >"$work/out" 2>"$work/err"
equal $? 1 'a truncated pipe: status'
same "$work/d/b.y4m" "$work/d/a.y4m" 'a truncated pipe'
head -c $((size - 12)) "$work/clip.yuv" >"$work/short.yuv"
head -c $((5 * frame10 + 7)) "$work/clip.yuv" >"$work/short.yuv"
run 1 'truncated raw frames' "$work/short.yuv" --size 64x48 -o a.nv12
has err 'frame 5 .*byte 46080' 'truncated raw frames'
equal "$(bytes "$work/d/a.nv12")" $((5 * frame8)) 'truncated raw frames: frames that are kept'
head -c 5000 "$work/clip.y4m" >"$work/none.y4m"
clean
refuses 1 'frame 0 .*is not whole' 'not one whole frame' "$work/none.y4m" -o a.y4m
head -n 1 "$work/clip.y4m" >"$work/head.y4m"
refuses 1 'there are no frames' 'no frames' "$work/head.y4m" -o a.y4m
refuses 1 'there is no frame 12, the last one is 11' 'a frame past the end' "$work/clip.y4m" -o a.png --frame 12
refuses 1 'there is no frame 12, the last one is 11' 'a start past the end' "$work/clip.y4m" -o a.y4m --start 12
{
    head -c $((size / 2)) "$work/clip.y4m"
    printf 'NOISE'
    tail -c $((size / 2)) "$work/clip.y4m"
} >"$work/noise.y4m"
run 1 'noise between frames' "$work/noise.y4m" -o a.y4m
has err 'noise.y4m: .*byte [0-9]+' 'noise between frames: the place'
whole "$work/d/a.y4m" $frame8 'noise between frames'
cat "$work/clip.y4m" "$work/odd.y4m" >"$work/two.y4m"
run 1 'another size in mid-stream' "$work/two.y4m" -o a.y4m
has err "^cox-tonemap: .*two.y4m: frame 12 \(the first is 0\), byte $size: the picture's size changes from 64 x 48 to 37 x 21\$" \
    'another size in mid-stream'
whole "$work/d/a.y4m" $frame8 'another size in mid-stream'
equal $frames 12 'another size in mid-stream: frames that are kept'
clean
for head in 'YUV4MPEG2' 'YUV4MPEG2 W0 H48 C420p10' 'YUV4MPEG2 W64 H48 C411' 'YUV4MPEG2 W99999999999 H48 C420p10' \
    'YUV4MPEG2 W-64 H48 C420p10' 'YUV4MPEG2 H48 C420p10' 'YUV4MPEG2 W65536 H65536 C444p16' 'YUV4MPEG2 W64 H48 It C420p10' \
    'YUV4MPEG2 W64 H48 Cx C420p10 F1:0'; do
    {
        printf '%s\n' "$head"
        tail -n +2 "$work/clip.y4m"
    } >"$work/bad.y4m"
    refuses 1 'bad.y4m: ' "the header '$head'" "$work/bad.y4m" -o a.y4m
done
refuses 1 'nothing.y4m: cannot be opened: No such file' 'a missing file' nothing.y4m -o a.y4m
refuses 1 'nothing.yuv: cannot be opened: No such file' 'a missing raw file' nothing.yuv --size 64x48 -o a.y4m
# No option is judged by what a file that is not there might be.
for missing in y4m mkv exr yuv; do
    for option in '--frame 3' '--start 2 --frames 4' '--repeat 3' '--depth 10' --verify; do
        # shellcheck disable=SC2086 # an option and its value
        refuses 1 "nothing.$missing: cannot be opened: No such file" "a missing $missing with $option" nothing.$missing \
            $option -o a.png
    done
done
refuses 1 'raw frames do not tell their size' 'raw frames without a size' "$work/clip.yuv" -o a.y4m
echo 'this is no video' >"$work/text.y4m"
refuses 1 'it is neither y4m nor a container' 'a text' "$work/text.y4m" -o a.y4m
printf 'Pf\n1 1\n-1.0\n\000\000\200\076' >"$work/small.pfm"
refuses 1 'it is a picture, not video' 'a picture' "$work/small.pfm" -o a.y4m
refuses 1 "there is no device|no device matches" 'an unknown device' "$work/clip.y4m" -o a.y4m --devices voodoo2

# --- Containers, where they are built in and ffmpeg can make some ---

# What the frames are said to be; since FFmpeg 7 an encoder's options for colours are a wish to convert.
ffmpeg -v error -i "$work/clip.y4m" -vf setparams=color_trc=smpte2084:color_primaries=bt2020:colorspace=bt2020nc \
    -c:v ffv1 "$work/hdr.mkv" 2>/dev/null </dev/null &&
    ffmpeg -v error -i "$work/clip.y4m" -vf setparams=color_trc=bt709:color_primaries=bt709:colorspace=bt709 \
        -c:v ffv1 "$work/sdr.mkv" 2>/dev/null </dev/null &&
    "$tonemap" "$work/hdr.mkv" -o null: -q 2>"$work/container" && have_containers=1
if [ "${have_containers:-}" ]; then
    run 0 'a container' "$work/hdr.mkv" -o null: --hash
    equal "$(hash_of)" "$automatic" 'a container holds the same frames'
    has out '; PQ, BT.2020' 'a container says what it holds'
    has out '^waited .*: bound by (the decoder \(ffv1\).*|devices|output)$' 'a container has a decoder'
    run 0 'a part of a container' "$work/hdr.mkv" -o a.nv12 --peak 1000 --start 5 --frames 3
    same "$work/d/a.nv12" "$work/part" 'a part of a container'
    clean
    refuses 1 'it is no HDR video .*bt709.*--transfer pq or hlg' 'a container of SDR' "$work/sdr.mkv" -o a.y4m
    if ffmpeg -v error -i "$work/clip.y4m" -vf 'setpts=N+4*gte(N\,6),settb=1/25' -fps_mode passthrough -c:v ffv1 \
        "$work/varies.mkv" 2>/dev/null </dev/null; then
        run 0 'a rate that varies' "$work/varies.mkv" -o a.y4m
        has err '^cox-tonemap: warning: .*varies.mkv: its frame rate varies, and y4m holds one only: [0-9.]+ frames/s' \
            'a rate that varies'
        equal "$(grep -c 'rate varies' "$work/err")" 1 'a rate that varies: said once'
        run 0 'a rate that varies, raw' "$work/varies.mkv" -o a.nv12
        has err 'warning: .*varies.mkv: its frame rate varies, and the output holds none' 'a rate that varies, raw'
        for way in '-o a.y4m --rate 25' '-o null:' '-o a.png' '-o a.y4m -q' '-o a.y4m --frames 6' '-o a.y4m --start 6'; do
            # shellcheck disable=SC2086
            run 0 "a rate that varies, $way" "$work/varies.mkv" $way
            equal "$(cat "$work/err")" '' "a rate that varies, $way: nothing to warn of"
        done
        clean
    else
        echo 'skipped a rate that varies, because ffmpeg has no -fps_mode'
    fi
    ffmpeg -v error -i "$work/clip.y4m" -c:v ffv1 "$work/bare.mkv" </dev/null
    run 0 'a container without colours' "$work/bare.mkv" -o null:
    has out '10 bits; PQ \(assumed\), BT.2020' 'a container without colours'
    ffmpeg -v error -i "$work/clip.y4m" -pix_fmt yuv420p -c:v ffv1 "$work/bare8.mkv" </dev/null
    refuses 1 'it names no transfer curve, and video of 8 bits is SDR .*; --transfer pq or hlg' 'a container of 8 bits' \
        "$work/bare8.mkv" -o a.y4m
    ffmpeg -v error -i "$work/clip.y4m" -vf setparams=color_primaries=bt709:colorspace=bt709 -c:v ffv1 "$work/709.mkv" </dev/null
    refuses 1 "it names no transfer curve, and video with BT.709's primaries is SDR .*; --transfer pq or hlg" \
        'a container of BT.709' "$work/709.mkv" -o a.y4m
    run 0 'SDR taken for HLG' "$work/sdr.mkv" -o null: --transfer hlg
    has out 'HLG, BT.709' 'SDR taken for HLG'
    # tagged FILE PEAK MAXCLL: the clip with a mastering display of PEAK/10000 cd/m2; a MAXCLL of 0 is none.
    tagged()
    {
        ffmpeg -v quiet -y -i "$work/clip.y4m" -c:v libx265 -x265-params "log-level=-1:lossless=1:hdr10=1:colorprim=bt2020:\
transfer=smpte2084:colormatrix=bt2020nc:max-cll=$3,200:\
master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L($2,1)" "$work/$1" </dev/null
    }
    if tagged m.mkv 4000000 600; then
        # Light that the frames show is kept whatever the stream says of its peak.
        for tags in "4000000 600" "50 600" "50 0" "90000000 0" "30000000 20000"; do
            # shellcheck disable=SC2086
            tagged t.mkv $tags
            run 0 "tagged $tags" "$work/t.mkv" -o null: --hash
            equal "$(hash_of)" "$automatic" "tagged $tags"
            case $tags in
            "4000000 600" | "30000000 20000")
                has out 'names a peak of [34]00+ cd/m2, the mastering.*; what the frames show counts$' "tagged $tags"
                ;;
            "50 600")
                has out "names a peak of 600 cd/m2, that of the film's brightest pixel; what the frames" "tagged $tags"
                ;;
            esac
            case $tags in 50*) has out 'names a peak of 0.005 cd/m2, which cannot be: ignored$' "tagged $tags" ;; esac
        done
        tagged t.mkv 50 0
        run 0 'nonsense is not trusted' "$work/t.mkv" -o null: --hash --trust-metadata
        equal "$(hash_of)" "$automatic" 'nonsense is not trusted'
        run 0 'mastering metadata' "$work/m.mkv" -o null: --stats m.json --hash --trust-metadata
        has out '^light .*, peak from the frame before$' 'mastering metadata is no peak'
        has out "^ +the stream names a peak of 400 cd/m2, the mastering display's, and no brighter light is expected\$" \
            'mastering metadata bounds the peak'
        differ "$(hash_of)" "$automatic" 'mastering metadata bounds the peak'
        peaks=$(grep -o '"curve_peak_nits": [0-9]*' "$work/d/m.json" | cut -d ' ' -f 2)
        equal "$(echo "$peaks" | head -n 1)" 326 'the first frame is mapped for its own peak'
        equal "$(echo "$peaks" | awk '$1 > 400' | wc -l | tr -d ' ')" 0 'no frame is mapped for more'
        peaks_used m.json 'mastering metadata'
        clean
    else
        echo 'skipped mastering metadata, because ffmpeg has no libx265'
    fi
else
    echo 'skipped containers, because ffmpeg or libavformat is missing'
fi

# --- Wrong words ---

video="$work/clip.y4m -o a.y4m"
# wrong PATTERN ARGS...
wrong() {
    pattern=$1
    shift
    # shellcheck disable=SC2086
    refuses 2 "$pattern" "$*" $video "$@"
}
wrong '--transfer srgb: not pq, hlg or linear' --transfer srgb
wrong '--primaries p3: neither bt2020 nor bt709' --primaries p3
wrong '--range tv: neither limited nor full' --range tv
wrong 'neither auto nor a luminance' --peak bright
wrong 'not a luminance between 1 and 10000' --sdr-white 0
wrong 'not a luminance between 1 and 10000' --sdr-white nan
wrong "no operator 'filmic'; there are: hable, .*bt2390" --operator filmic
wrong 'the operator exposure is for pictures' --operator exposure
wrong 'neither none nor ordered' --dither yes
wrong 'neither clip nor compress' --gamut soft
wrong 'neither clip nor compress' --gamut compressed
wrong 'not a knee between 0.25 and 0.95' --gamut compress:1
wrong 'not a knee between 0.25 and 0.95' --gamut compress:
wrong 'not a strength' --desat 2
wrong 'not a factor between' --operator local --detail 0
wrong '--detail is about --operator local' --detail 2
wrong 'y4m has 8 or 10 bits' --depth 16
wrong 'neither 8 nor 16, nor 10' --depth 12
for count in -1 x 99999999999 ''; do
    wrong 'not the number of a frame' --start "$count"
    wrong 'not the number of a frame' --frame "$count"
    wrong 'not a number of frames' --frames "$count"
done
wrong 'not a number of frames' --frames 0
wrong 'neither 0 nor 1' --lookahead 2
wrong '--lookahead is about --peak auto' --lookahead 1 --peak 1000
wrong 'frame as a PNG' --frame 3
for size in 64 64x 64x48x2 0x48 -1x48 99999x48 64x48y ax; do
    wrong 'not a size such as' --size "$size" --format p010
done
wrong "no format 'yuv'; there are: .*yuv420p10" --size 64x48 --format yuv
wrong 'give their size too' --format p010
wrong 'give their format too.*yuv420p10' --size 64x48
for rate in 0 -1 x 25/0 25/ 1/2/3 99999999999/1; do
    wrong 'not a number of frames per second' --rate "$rate"
done
wrong '--to avi: not mkv, mp4, y4m, nv12, p010, png or null' --to avi
wrong '--alpha is for pictures' --alpha
wrong '--repeat is for pictures' --repeat 3
wrong '--verify without a share is for pictures' --verify
for share in -0.1 1.5 nan 1e999; do
    wrong 'not a share of the bands between 0 and 1' "--verify=$share"
done
wrong 'not a share of the bands between 0 and 1' --verify 2
wrong 'not a share of the bands between 0 and 1' --verify=
wrong "unknown option '--frobnicate' \(cox-tonemap --help lists them\)\$" --frobnicate
wrong 'the option --transfer needs a value' --transfer
wrong 'the option --hash=3 takes no value' --hash=3
wrong "what is 'more.y4m'" more.y4m
refuses 2 'a PNG is one frame' '--frames with a PNG' "$work/clip.y4m" -o a.png --frames 2
refuses 2 'a PNG is one frame' '--start with a PNG' "$work/clip.y4m" -o a.png --start 2
refuses 2 'a PNG has 8 or 16 bits' 'a PNG of ten bits' "$work/clip.y4m" -o a.png --depth 10
refuses 2 'NV12 has 8 bits' 'NV12 of ten bits' "$work/clip.y4m" -o a.nv12 --depth 10
refuses 2 'P010 has 10 bits' 'P010 of eight bits' "$work/clip.y4m" -o a.p010 --depth 8
refuses 1 '--transfer linear is for RGBA of half floats' 'linear light in codes' "$work/clip.y4m" -o a.y4m --transfer linear
refuses 1 '--transfer pq and hlg are for codes' 'codes in linear light' "$work/black.rgba16f" --size 64x48 -o a.y4m --transfer pq
refuses 1 '--range is about' 'a range of RGBA' "$work/black.rgba16f" --size 64x48 -o a.y4m --range full
for option in '--transfer pq' '--primaries bt709' '--range full' '--sdr-white 100' '--dither none' '--gamut clip' '--scale 1/2' '--frames 1' '--start 0' \
    '--frame 0' '--lookahead 0' '--rate 25' '--to png'; do
    # shellcheck disable=SC2086
    refuses 2 "${option%% *} is for video" "$option for a picture" "$work/small.pfm" -o a.png $option
done
refuses 2 'only one of' 'two outputs on standard output' "$work/clip.y4m" -o - --stats -

# --- Another size ---

run 0 'half the size' "$work/clip.y4m" -o a.y4m --scale 1/2 --peak 1000 --hash
half=$(hash_of)
equal "$(head -c 20 "$work/d/a.y4m")" 'YUV4MPEG2 W32 H24 F2' 'half the size: width and height'
run 0 'half the size on two devices' "$work/clip.y4m" -o null: --scale 1/2 --peak 1000 --hash --devices cpu:2x1
equal "$(hash_of)" "$half" 'half the size on two devices'
run 0 'half the size, peak from the frames' "$work/clip.y4m" -o null: --scale 1/2 --lookahead 1
rm "$work/d/a.y4m"

run 0 'another size' "$work/clip.y4m" -o a.y4m --scale 44x --peak 1000 --hash
scaled=$(hash_of)
equal "$(head -c 20 "$work/d/a.y4m")" 'YUV4MPEG2 W44 H34 F2' 'another size: width and height'
run 0 'another size on two devices' "$work/clip.y4m" -o null: --scale 44x34 --peak 1000 --hash --devices cpu:2x1
equal "$(hash_of)" "$scaled" 'another size on two devices'
run 0 'another size, peak from the frames' "$work/clip.y4m" -o null: --scale x60 --lookahead 1
rm "$work/d/a.y4m"
# A staged device takes a band in pieces where they are large enough, as of a frame like this one.
head -c 24883200 /dev/urandom >"$work/large.yuv"
large="--size 3840x2160 --format yuv420p10 --transfer pq --peak 1000 --scale 1920x1080 --in-flight 1"
# shellcheck disable=SC2086
run 0 'a large frame, mapped' "$work/large.yuv" -o null: $large --hash --devices cpu
scaled=$(hash_of)
# shellcheck disable=SC2086
run 0 'a large frame, staged' "$work/large.yuv" -o null: $large --hash --devices cpu=staged
equal "$(hash_of)" "$scaled" 'a large frame, staged'
rm "$work/large.yuv"
for size in 1/3 0x4 x 12 12x34x5 ' 3x4' -3x4 99999x 12x-1; do
    refuses 2 'neither 1/2 nor a size' "the scale $size" "$work/clip.y4m" -o a.y4m --scale "$size"
done
refuses 1 'not between an eighth and eightfold' 'a size too small' "$work/clip.y4m" -o a.y4m --scale 7x48
refuses 1 'is RGBA of half floats' 'another size of half floats' "$work/black.rgba16f" --size 64x48 -o a.y4m --scale 32x
refuses 2 'not for the operator local' 'local at half the size' "$work/clip.y4m" -o a.y4m --scale 1/2 --operator local

# --- Several inputs ---

mkdir "$work/in" "$work/d/folder"
cp "$work/clip.y4m" "$work/in/one.y4m"
cp "$work/clip.y4m" "$work/in/two.y4m"
echo nothing >"$work/in/bad.y4m"
run 0 'two into a folder' "$work/in/one.y4m" "$work/in/two.y4m" -o folder --to y4m --peak 1000
run 0 'one alone' "$work/clip.y4m" -o a.y4m --peak 1000
for name in one two; do
    if cmp -s "$work/d/a.y4m" "$work/d/folder/$name.y4m"; then pass; else fail "several inputs: $name is another"; fi
done
run 0 'one into a folder' "$work/in/one.y4m" -o folder/ --to nv12 --peak 1000
if [ -s "$work/d/folder/one.nv12" ]; then pass; else fail 'one into a folder'; fi
run 0 'a picture into a folder' "$work/small.pfm" -o folder
if [ -s "$work/d/folder/small.png" ]; then pass; else fail 'a picture into a folder'; fi
rm "$work/d/folder/"*
run 1 'a bad one among several' "$work/in/bad.y4m" "$work/in/missing.y4m" "$work/in/two.y4m" -o folder --to y4m --peak 1000
has err '2 of 3 inputs failed' 'a bad one among several'
if cmp -s "$work/d/a.y4m" "$work/d/folder/two.y4m"; then pass; else fail 'the good one after bad ones'; fi
rm -r "$work/d/folder" "$work/d/a.y4m"
refuses 2 'several inputs go to a folder, and a.y4m is none' 'several into a file' "$work/in/one.y4m" "$work/in/two.y4m" -o a.y4m
refuses 2 'there is no such folder' 'a folder that is none' "$work/in/one.y4m" -o nowhere/
refuses 2 'would both be' 'one name twice' "$work/in/one.y4m" "$work/clip.y4m" "$work/in/../clip.y4m" -o . --to nv12
refuses 2 'standard input has no name' 'a folder for standard input' - "$work/in/one.y4m" -o . --to nv12
mkfifo "$work/in/pipe.y4m"
refuses 2 'pipe.y4m: is no file' 'a pipe among several' "$work/in/one.y4m" "$work/in/pipe.y4m" -o . --to nv12
refuses 2 'pipe.y4m: is no file' 'a pipe into a folder' "$work/in/pipe.y4m" -o . --to nv12
refuses 2 '--stats is of one input' 'statistics of several' "$work/in/one.y4m" "$work/in/two.y4m" -o . --to nv12 --stats s.json

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
