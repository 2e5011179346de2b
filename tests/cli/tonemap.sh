#!/bin/sh
# What cox-tonemap writes, what it refuses, and that a refusal leaves nothing behind.   sh tonemap.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
tonemap=$(cd "$1" && pwd)/cox-tonemap
data=$(cd "$2" && pwd)/examples/data
if [ ! -x "$tonemap" ]; then
    echo "skipped, because cox-tonemap is not built (libpng is missing)"
    exit 77
fi
work=$(mktemp -d) || exit 1
mounted=
trap '[ -z "$mounted" ] || umount "$work/small"; rm -rf "$work"' EXIT
. "$(dirname "$0")/../support/tonemap.sh"

have_python=
python3 -c 'import json, zlib' 2>/dev/null && have_python=1

# is_json FILE NAME: by Python where there is one; else at least whole and balanced.
is_json() {
    if [ "$have_python" ]; then
        python3 -m json.tool "$1" >/dev/null 2>"$work/err" && pass || fail "$2: not JSON"
    else
        opened=$(tr -cd '{[' <"$1" | wc -c)
        closed=$(tr -cd ']}' <"$1" | wc -c)
        [ "$(head -c 1 "$1")" = '{' ] && [ "$opened" -eq "$closed" ] && pass || fail "$2: not balanced"
    fi
}

# A small picture: 64 x 48 grey, one pixel white at 20 times SDR white.
{
    printf 'Pf\n64 48\n-1.0\n'
    i=0
    while [ $i -lt 3071 ]; do
        printf '\000\000\200\076'
        i=$((i + 1))
    done
    printf '\000\000\240\101'
} >"$work/small.pfm"

# --- What it writes ---

for picture in StillLife:1240:846 CandleGlass:1000:810 GoldenGate:1262:860 WideColorGamut:800:800; do
    name=${picture%%:*}
    size=${picture#*:}
    "$tonemap" "$data/$name.exr" -o "$work/d/no.exr" >/dev/null 2>"$work/err" </dev/null
    if grep -q 'built without OpenEXR' "$work/err"; then
        echo "skipped $name.exr, because cox-tonemap was built without OpenEXR"
        no_exr=1
        continue
    fi
    run 0 "$name" "$data/$name.exr" -o "$name.png" --hash
    is_png "$work/d/$name.png" "${size%:*}" "${size#*:}" 8 "$name"
    has out '^picture .*OpenEXR' "$name says what it read"
    has out '^frame +0 +\[#+\]' "$name shows the split"
    has out 'efficiency [0-9]' "$name says the efficiency"
    equal "$(ls -A "$work/d")" "$name.png" "$name: one file and no other"
    rm -f "$work/d/$name.png"
done
no_exr=${no_exr:-}
equal "$(ls -A "$work/d")" "" "a wrong suffix leaves nothing"

run 0 'sixteen bits' "$work/small.pfm" -o deep.png --depth 16
is_png "$work/d/deep.png" 64 48 16 'sixteen bits'
mkdir "$work/cold" # even where the driver has to compile, and its compiler has warnings
(cd "$work/d" && POCL_CACHE_DIR="$work/cold" "$tonemap" "$work/small.pfm" -o quiet.png -q --no-cache) \
    >"$work/out" 2>"$work/err" </dev/null
equal $? 0 'quiet: status'
equal "$(cat "$work/out" "$work/err")" "" "quiet says nothing"
run 0 'standard output' "$work/small.pfm" -o -
cp "$work/out" "$work/d/piped.png"
is_png "$work/d/piped.png" 64 48 8 'standard output'
if cmp -s "$work/d/piped.png" "$work/d/quiet.png"; then pass; else fail 'the same PNG on standard output'; fi
(cd "$work/d" && "$tonemap" - -o stdin.png -q <"$work/small.pfm") && pass || fail 'standard input'
if cmp -s "$work/d/stdin.png" "$work/d/quiet.png"; then pass; else fail 'the same PNG from standard input'; fi
for operator in hable reinhard mobius aces exposure linear bt2390 clip local; do
    run 0 "operator $operator" "$work/small.pfm" -o "$operator.png" --operator "$operator" --exposure 0.5 --peak 4000 \
        --desat 0.5
    is_png "$work/d/$operator.png" 64 48 8 "operator $operator"
done
if [ -z "$no_exr" ]; then
    run 0 'little detail' "$data/StillLife.exr" -o local.png --operator local --detail 0.25 --hash
    little=$(hash_of)
    run 0 'much detail' "$data/StillLife.exr" -o local.png --operator local --detail 4 --hash
    if [ "$(hash_of)" != "$little" ]; then pass; else fail 'detail makes a difference'; fi
fi
run 0 'local, on two devices' "$work/small.pfm" -o local.png --operator local --devices cpu:2x1 --hash --verify --stats passes.json
has out 'device +0 alone [0-9a-f]{16}  equal' 'verified in passes'
has out '^frame .* rows [0-9.]+ ms \|.*\|.*\|' 'a frame shows its four passes'
if grep -q '"pass": 3, "device"' "$work/d/passes.json"; then pass; else fail 'statistics tell the passes apart'; fi
run 0 'version' --version
has out '^cox-tonemap [0-9]+\.[0-9]+' 'version'
run 0 'help' --help
has out '--split' 'help names the options'
equal "$(awk 'length > 80' "$work/out")" '' 'help is within 80 columns'
equal "$(grep -c '^  cox-tonemap [^ ]* -o [^ ]*' "$work/out")" 3 'help has three examples'
# What the examples say makes sense: another frame or device than there is may be missing, an option may not.
grep '^  cox-tonemap ' "$work/out" >"$work/examples"
cp "$data/stilllife_pq_480x270.y4m" "$work/d/movie.mkv"
cp "$work/small.pfm" "$work/d/room.exr"
while read -r _ example; do
    # shellcheck disable=SC2086
    (cd "$work/d" && "$tonemap" $example) >"$work/out" 2>"$work/err" </dev/null
    if [ $? -ne 2 ]; then pass; else fail "the example $example"; fi
done <"$work/examples"
rm -rf "$work/d"
mkdir "$work/d"

# --- The same bits however the work is shared ---

run 0 'whole' "$work/small.pfm" -o a.png --hash
whole=$(hash_of)
for way in '--devices cpu:2x1' '--devices cpu:2x1 --split 0.3,0.7' '--devices cpu:2x1 --split 1,0' \
    '--devices cpu:2x1 --policy last-frame --repeat 5 --in-flight 3' '--policy single' '--no-cache'; do
    # shellcheck disable=SC2086
    run 0 "$way" "$work/small.pfm" -o a.png --hash --verify $way
    equal "$(hash_of)" "$whole" "hash with $way"
    has out 'device +0 alone [0-9a-f]{16}  equal' "verified with $way"
done
run 0 'muladd' "$work/small.pfm" -o a.png --hash --arithmetic muladd --stats stats.json
has out '^hash .*  muladd$' 'muladd'
if grep -q '"arithmetic": "muladd"' "$work/d/stats.json"; then pass; else fail 'muladd in the statistics'; fi
run 0 'auto' "$work/small.pfm" -o a.png --hash --arithmetic auto
equal "$(hash_of)" "$whole" 'auto is the default'
if grep -q '^flags.* fma ' /proc/cpuinfo; then
    run 0 'fma' "$work/small.pfm" -o a.png --hash --arithmetic fma
    has out '^hash .*  fma$' 'fma'
    equal "$(hash_of)" "$whole" 'fma is the default where the processor has it'
fi
run 0 'a fixed split' "$work/small.pfm" -o a.png --devices cpu:2x1 --split 0.25,0.75 --stats stats.json
if tr -d ' ' <"$work/d/stats.json" | grep -q '"rows":12,.*"rows":36,'; then pass; else fail 'shares of 12 and 36 rows'; fi

run 0 'a deadline that no frame keeps' "$work/small.pfm" -o a.png --repeat 5 --deadline 0.001 --split 1 --devices cpu:1x1
has out '^late +5 of 5 frames, by [0-9.]+ ms at most \(deadline 0.001 ms\)' 'late frames are told'
run 0 'a deadline that each frame keeps' "$work/small.pfm" -o a.png --deadline 1000000
has out '^late +0 of 1 frames \(deadline 1e\+06 ms\)' 'that none is late is told'

# --- Statistics and trace ---

run 0 'statistics' "$work/small.pfm" -o a.png --devices cpu:2x1 --repeat 30 --stats stats.json --trace trace.json
is_json "$work/d/stats.json" 'statistics'
is_json "$work/d/trace.json" 'trace'
if [ "$have_python" ]; then
    python3 - "$work/d/stats.json" "$work/d/trace.json" >"$work/out" 2>"$work/err" <<'END' && pass || fail 'their content'
import json, sys
stats = json.load(open(sys.argv[1]))
assert list(stats) == ["arithmetic", "devices", "policy", "granule", "frames", "shadows", "summary"], list(stats)
assert stats["arithmetic"] in ("fma", "muladd")
assert len(stats["devices"]) == 2
for device in stats["devices"]:
    assert list(device) == ["name", "type", "mode", "state", "lost", "returned"], device
    assert device["type"] == "cpu" and device["mode"] == "shared", device
    assert device["state"] == "active" and device["lost"] == device["returned"] == 0, device
assert stats["policy"] == "adaptive" and stats["granule"] >= 1
assert [frame["index"] for frame in stats["frames"]] == list(range(30))
for frame in stats["frames"]:
    assert list(frame) == ["index", "wall_us", "latency_us", "deadline_us", "reason", "predicted_us", "alternative_us", "pool_rows",
                           "bands"]
    assert frame["latency_us"] >= frame["wall_us"] and frame["deadline_us"] is None, frame
    assert frame["reason"] and (frame["predicted_us"] is None or frame["predicted_us"] > 0), frame
    row = 0
    for band in frame["bands"]:
        assert list(band) == ["device", "first_row", "rows", "wall_us", "queue_us", "kernel_us",
                              "predicted_us", "on_demand", "attempt", "status"]
        assert band["attempt"] == 0 and band["status"] == "COX_OK", band
        assert band["device"] in (0, 1) and band["first_row"] == row and band["wall_us"] > 0, band
        row += band["rows"]
    assert row == 48 and frame["wall_us"] > 0, frame
summary = stats["summary"]
assert list(summary) == ["frames", "fps", "wall_us_p50", "wall_us_p99", "latency_us_p50", "latency_us_p99",
                         "late_frames", "worst_late_us", "efficiency", "timeout_bands",
                         "wrong_bands", "failed_bands", "bands_again"]
assert summary["timeout_bands"] == summary["wrong_bands"] == summary["failed_bands"] == 0, summary
assert summary["frames"] == 30 and summary["fps"] > 0 and summary["efficiency"] > 0
assert 0 < summary["wall_us_p50"] <= summary["wall_us_p99"]
assert 0 < summary["latency_us_p50"] <= summary["latency_us_p99"] and summary["late_frames"] == 0

events = json.load(open(sys.argv[2]))["traceEvents"]
tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert len(tracks) == 3 and "scheduler" in tracks.values(), tracks
splits = [e for e in events if e["ph"] == "X" and e["cat"] == "split"]
assert len(splits) >= 30 and all(e["args"]["reason"] for e in splits)
for tid in tracks:
    end = -1
    for e in sorted((e for e in events if e["ph"] == "X" and e["tid"] == tid), key=lambda e: e["ts"]):
        assert e["dur"] >= 0 and e["ts"] >= end - 0.002, (e, end)
        end = e["ts"] + e["dur"]
END
else
    echo "skipped the statistics' content, because there is no python3"
fi
run 0 'statistics on standard output' "$work/small.pfm" -o b.png --stats -
cp "$work/out" "$work/stats.json"
is_json "$work/stats.json" 'statistics on standard output'

# --- The live line ---

# live NAME OPTIONS...: until the line has been there; what was drawn is in $work/out. With 80 columns a fast machine's
# numbers would leave no space for the split.
live() {
    what=$1
    shift
    : >"$work/live"
    (cd "$work/d" && TERM=xterm script -qec "stty cols 120; exec '$tonemap' '$work/small.pfm' -o c.png --repeat 100000 $*" \
        /dev/null) >"$work/live" 2>"$work/err" </dev/null &
    pid=$!
    appears "$work/live" '^[0-9]+/100000 frames  .* left'
    kill -TERM $pid 2>/dev/null
    wait $pid 2>/dev/null
    tr '\r' '\n' <"$work/live" >"$work/out"
    has out '^[0-9]+/100000 frames  \[>* *\]  [0-9.]+ frames/s  [0-9:]+ left' "$what: progress"
}
if script -qec true /dev/null >/dev/null 2>&1; then
    live 'a live line, one device' --devices cpu:1x1
    if grep 'frames/s' "$work/out" | grep -q 'split'; then fail 'one device: a split of nothing'; else pass; fi
    live 'a live line, two devices' --devices cpu:2x1 --split 0.5,0.5
    has out ' left  split \[#+=+\]' 'two devices: the split, apart'
else
    echo 'skipped the live line, because script (bsdutils) is not installed'
fi
run 0 'no live line' "$work/small.pfm" -o c.png --repeat 2000
if grep -q 'left' "$work/err"; then fail 'a live line where no terminal is'; else pass; fi
rm -rf "$work/d"
mkdir "$work/d"

# --- Odd values in pixels ---

{
    printf 'PF\n4 1\n-1\n'
    printf '\000\000\300\177\000\000\300\177\000\000\300\177' # not a number
    printf '\000\000\200\177\000\000\200\177\000\000\200\177' # infinity
    printf '\000\000\200\277\000\000\200\277\000\000\200\277' # -1
    printf '\000\000\200\377\000\000\200\377\000\000\200\377' # -infinity
} >"$work/odd.pfm"
for operator in hable reinhard mobius aces exposure linear bt2390 clip local; do
    run 0 "odd values, $operator" "$work/odd.pfm" -o odd.png --operator "$operator" --peak 2030 --verify
    if [ "$have_python" ]; then
        python3 - "$work/d/odd.png" >"$work/out" 2>"$work/err" <<'END' && pass || fail "odd values, $operator: pixels"
import sys, zlib
png, at, data = open(sys.argv[1], "rb").read(), 8, b""
while at < len(png):
    size, kind = int.from_bytes(png[at:at + 4], "big"), png[at + 4:at + 8]
    if kind == b"IDAT":
        data += png[at + 8:at + 8 + size]
    at += size + 12
row = bytearray(zlib.decompress(data))
if row[0] == 1:  # the only filter that does something on a first row, with Paeth, which is then the same
    row[0] = 0
if row[0] == 0 or row[0] == 2:
    pixels = row[1:]
assert len(row) == 13, len(row)
if bytearray(zlib.decompress(data))[0] in (1, 4):
    for i in range(3, 12):
        pixels[i] = (pixels[i] + pixels[i - 3]) & 255
expected = [0, 0, 0, 255, 255, 255, 0, 0, 0, 0, 0, 0]
assert list(pixels) == expected, list(pixels)
END
    fi
done
run 0 'odd values, exposure from the picture' "$work/odd.pfm" -o odd.png --peak auto --verify
rm -rf "$work/d"
mkdir "$work/d"

# --- Bad input ---

refuses 1 'nothing.exr: cannot be opened: No such file' 'a missing file' nothing.exr -o a.png
: >"$work/empty.exr"
refuses 1 'empty.exr: the file is empty' 'an empty file' "$work/empty.exr" -o a.png
echo 'this is not a picture' >"$work/text.exr"
refuses 1 'not a picture that this program reads' 'a text' "$work/text.exr" -o a.png
printf '\211PNG\r\n\032\n' >"$work/a.hdr"
refuses 1 'a PNG picture: not a picture that this program reads' 'a PNG' "$work/a.hdr" -o a.png
head -c 3000 /dev/urandom >"$work/noise.pfm"
refuses 1 'not a picture' 'noise' "$work/noise.pfm" -o a.png
refuses 1 'is a directory' 'a folder' "$work" -o a.png
printf 'PF\n0 0\n-1\n' >"$work/zero.pfm"
refuses 1 'has no pixels' 'a PFM without pixels' "$work/zero.pfm" -o a.png
printf '#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 0 +X 5\n' >"$work/zero.hdr"
refuses 1 'has no pixels' 'a Radiance picture without pixels' "$work/zero.hdr" -o a.png
printf 'PF\n60000 60000\n-1\n' >"$work/huge.pfm"
refuses 1 'too large' 'a huge picture' "$work/huge.pfm" -o a.png
head -c 1000 "$work/small.pfm" >"$work/short.pfm"
refuses 1 'truncated' 'a truncated PFM' "$work/short.pfm" -o a.png
printf '#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X 2\n\001\002\003\200\001\002\003\200\001' >"$work/short.hdr"
refuses 1 'truncated' 'a truncated Radiance picture' "$work/short.hdr" -o a.png

printf '#?RADIANCE\nFORMAT=\033[2J\377\n\n-Y 1 +X 1\n\001\001\001\200' >"$work/escape.hdr"
refuses 1 'the unknown format \?\[2J\?$' 'words of a file that would steer a terminal' "$work/escape.hdr" -o a.png

if [ -z "$no_exr" ]; then
    size=$(wc -c <"$data/StillLife.exr")
    for bytes in 4 20 200 5000 $((size / 2)) $((size - 1)); do
        head -c "$bytes" "$data/StillLife.exr" >"$work/short.exr"
        refuses 1 'short.exr: ' "$bytes bytes of an OpenEXR picture" "$work/short.exr" -o a.png
    done
    head -c 100000 "$data/GoldenGate.exr" >"$work/short.exr"
    refuses 1 'truncated or damaged' 'a truncated tiled picture' "$work/short.exr" -o a.png
    # The compression's code follows its attribute's name, type and size.
    cp "$data/StillLife.exr" "$work/dwa.exr"
    chmod u+w "$work/dwa.exr"
    at=$(grep -abo 'compression' "$work/dwa.exr" | head -n 1 | cut -d : -f 1)
    at=$((at + 28))
    equal "$(number "$work/dwa.exr" $at 1)" 4 'the place of the compression in StillLife.exr'
    printf '\010' | dd of="$work/dwa.exr" bs=1 seek=$at conv=notrunc 2>/dev/null
    refuses 1 'DWAA compression, which OpenEXRCore .* cannot read' 'DWAA' "$work/dwa.exr" -o a.png
    printf '\011' | dd of="$work/dwa.exr" bs=1 seek=$at conv=notrunc 2>/dev/null
    refuses 1 'DWAB compression, which OpenEXRCore .* cannot read' 'DWAB' "$work/dwa.exr" -o a.png
fi

# --- Outputs that cannot be ---

refuses 1 'a.png: cannot be written: No such file' 'a missing folder' "$work/small.pfm" -o no/such/a.png
refuses 1 'cannot be written' 'a place that takes no files' "$work/small.pfm" -o /proc/a.png
refuses 1 'is a directory' 'a folder as statistics' "$work/small.pfm" -o a.png --stats "$work"
refuses 1 'ends in .png' 'an unknown kind of output' "$work/small.pfm" -o a.jpg
refuses 1 '/dev/full: cannot be written: No space left' 'a full device' "$work/small.pfm" -o /dev/full
refuses 1 '/dev/full: cannot be written: No space left' 'statistics on a full device' "$work/small.pfm" -o /dev/null \
    --stats /dev/full
refuses 1 'cannot be written' 'a trace that has no place' "$work/small.pfm" -o a.png --trace no/such/trace.json
printf 'keep me' >"$work/keep.png"
cp "$work/keep.png" "$work/d/old.png"
run 1 'a failure keeps the file of before' "$work/short.pfm" -o old.png
if cmp -s "$work/keep.png" "$work/d/old.png"; then pass; else fail 'the file of before was touched'; fi
rm -f "$work/d/old.png"
cp "$work/small.pfm" "$work/d/in.png"
run 1 'the input as output' in.png -o ./in.png
has err 'is the input' 'the input as output'
if cmp -s "$work/small.pfm" "$work/d/in.png"; then pass; else fail 'the input was touched'; fi
rm -f "$work/d/in.png"
if [ "$(id -u)" -ne 0 ]; then
    mkdir "$work/d/locked"
    chmod a-w "$work/d/locked"
    run 1 'a folder without permission' "$work/small.pfm" -o locked/a.png
    has err 'Permission denied' 'a folder without permission'
    rmdir "$work/d/locked"
fi
cp "$work/small.pfm" "$work/d/in.pfm"
for option in --stats --trace; do
    run 1 "the input as output of $option" in.pfm -o a.png $option ./in.pfm
    has err 'in.pfm: is the input' "the input as output of $option"
    if cmp -s "$work/small.pfm" "$work/d/in.pfm"; then pass; else fail "the input was touched by $option"; fi
done
rm -f "$work/d/in.pfm"
refuses 1 'a.png: is two outputs' 'statistics over the picture' "$work/small.pfm" -o a.png --stats ./a.png
refuses 1 'x.json: is two outputs' 'statistics over the trace' "$work/small.pfm" -o a.png --stats x.json --trace "$work/d/x.json"
refuses 1 "'': an empty name" 'an output without a name' "$work/small.pfm" -o ''

# Closed streams: what would be said there must not get into files that have their numbers.
run 0 'open streams' "$work/small.pfm" -o open.png
(cd "$work/d" && exec "$tonemap" "$work/small.pfm" -o out.png -v --repeat 300) >&- 2>"$work/err" </dev/null
equal $? 1 'standard output is closed: status'
has err 'cannot write to the terminal or pipe: Bad file descriptor' 'standard output is closed'
(cd "$work/d" && exec "$tonemap" "$work/small.pfm" -o err.png -v --repeat 300) 2>&- >"$work/out" </dev/null
equal $? 0 'standard error is closed: status'
for name in out err; do
    if cmp -s "$work/d/open.png" "$work/d/$name.png"; then pass; else fail "std$name is closed: other bytes in the PNG"; fi
done
(cd "$work/d" && exec "$tonemap" - -o in.png) <&- >"$work/out" 2>"$work/err"
equal $? 1 'standard input is closed: status'
has err 'standard stream: cannot be read: Bad file descriptor' 'standard input is closed'
equal "$(ls "$work/d")" 'err.png
open.png
out.png' 'closed streams: files'
rm -rf "$work/d"
mkdir "$work/d"

# A limit on the size of files does what a full disk does. The first limit stops the picture, the second one
# the driver's compiler, which then ends the process: that leaves nothing either.
if [ -z "$no_exr" ]; then
    run 0 'sixteen bits of StillLife' "$data/StillLife.exr" -o a.png --depth 16
    size=$(wc -c <"$work/d/a.png")
    rm -f "$work/d/a.png"
    (ulimit -f $((size / 2048)) && cd "$work/d" && "$tonemap" "$data/StillLife.exr" -o a.png --depth 16) \
        >"$work/out" 2>"$work/err"
    equal $? 1 'a limit on file sizes'
    has err '^cox-tonemap: a.png: cannot be written: File too large' 'a limit on file sizes'
    equal "$(ls -A "$work/d")" "" 'a limit on file sizes: nothing is left'
    mkdir "$work/pocl"
    if (export POCL_CACHE_DIR="$work/pocl" && ulimit -f 1 && cd "$work/d" &&
        "$tonemap" "$data/StillLife.exr" -o a.png --no-cache) >"$work/out" 2>"$work/err"; then
        fail 'a limit on file sizes: the picture fits into 512 bytes'
    else
        pass
    fi
    equal "$(ls -A "$work/d")" "" 'a compiler that ends the process: nothing is left'
    mkdir "$work/small"
    if mount -t tmpfs -o size=64k tmpfs "$work/small" 2>/dev/null; then
        mounted=1
        run 1 'a full disk' "$data/StillLife.exr" -o "$work/small/a.png"
        has err '^cox-tonemap: .*a.png: cannot be written: No space left' 'a full disk'
        equal "$(ls -A "$work/small")" "" 'a full disk: nothing is left'
        umount "$work/small" && mounted=
    else
        echo 'skipped the small disk, because it cannot be mounted here'
    fi
fi

# --- Wrong words ---

refuses 2 "no operator 'filmic'; there are: hable, reinhard, mobius, aces, exposure, linear, bt2390, clip, local" 'an unknown operator' \
    "$work/small.pfm" -o a.png --operator filmic
for detail in 0.2 4.1 nan much ''; do
    refuses 2 '--detail .*: not a factor between 0.25 and 4' "a detail of '$detail'" "$work/small.pfm" -o a.png --operator local \
        --detail "$detail"
done
refuses 2 '--detail is about --operator local; the operator is hable' 'detail without its operator' "$work/small.pfm" -o a.png \
    --detail 1
refuses 2 "no policy 'magic'; there are: .*ewma.*static" 'an unknown policy' "$work/small.pfm" -o a.png --policy magic
refuses 1 'no device matches .*there is 0.0: ' 'an unknown device' "$work/small.pfm" -o a.png --devices voodoo2
refuses 1 '--devices|cannot start' 'a malformed device list' "$work/small.pfm" -o a.png --devices cpu:0x0
for split in 0.5,0.4 0.5,0.6 1,1 0.5; do
    refuses 2 'sum to .*, not to 1' "shares of $split" "$work/small.pfm" -o a.png --devices cpu:2x1 --split $split
done
for split in '' ',' a 0.5,x 1.5,-0.5 nan,1 inf 0.5,,0.5 '0.5;0.5'; do
    refuses 2 'shares between 0 and 1' "shares of '$split'" "$work/small.pfm" -o a.png --split "$split"
done
refuses 1 '3 shares for 2 devices' 'too many shares' "$work/small.pfm" -o a.png --devices cpu:2x1 --split 0.5,0.25,0.25
refuses 2 'would change' 'shares against a policy' "$work/small.pfm" -o a.png --split 1 --policy ewma
refuses 2 'neither auto nor a luminance' 'a peak of nothing' "$work/small.pfm" -o a.png --peak 0
refuses 2 'neither auto nor a luminance' 'a peak in words' "$work/small.pfm" -o a.png --peak bright
refuses 2 'not a number of stops' 'an exposure in words' "$work/small.pfm" -o a.png --exposure nan
refuses 2 'neither 8 nor 16' 'twelve bits' "$work/small.pfm" -o a.png --depth 12
refuses 2 'not a strength' 'too much desaturation' "$work/small.pfm" -o a.png --desat 1.5
for count in 0 -1 x 1000001 99999999999999999999; do
    refuses 2 'not a number between' "$count times" "$work/small.pfm" -o a.png --repeat $count
done
refuses 2 'frames between 1 and 16' 'too many in flight' "$work/small.pfm" -o a.png --in-flight 17
refuses 2 'not a number of milliseconds' 'a deadline of nothing' "$work/small.pfm" -o a.png --deadline 0
refuses 2 '--arithmetic fused: not auto, muladd or fma' 'an unknown arithmetic' "$work/small.pfm" -o a.png --arithmetic fused
refuses 2 'not auto, on, off' 'an unknown core' "$work/small.pfm" -o a.png --reserve some
refuses 1 'CPU 99999' 'a core that is not there' "$work/small.pfm" -o a.png --reserve 99999
refuses 2 'no input' 'no input' -o a.png
refuses 2 'no output' 'no output' "$work/small.pfm"
# unknown WRITTEN ANSWER: what is said of an option that there is none of.
unknown() { refuses 2 "unknown option '$1'$2\$" "the unknown option $1" "$work/small.pfm" -o a.png "${3:-$1}"; }
near() { unknown "$1" "; did you mean '$2'\?" "${3:-}"; }
near --pek --peak                 # a letter is missing
near --peaak --peak               # one too many
near --pead --peak --pead=400     # another one; its value is left out
near --quite --quiet              # two neighbours changed
near --tansferr --transfer        # two steps
near --opertaor --operator
near --sdrwhite --sdr-white
unknown --frobnicate ' \(cox-tonemap --help lists them\)'
unknown --pk ' \(cox-tonemap --help lists them\)' # two letters may mean anything
unknown -z ' \(cox-tonemap --help lists them\)'
refuses 2 "the option '--re' is short for several: '--reserve', '--repeat'\$" 'an ambiguous option' "$work/small.pfm" \
    -o a.png --re on
refuses 2 '--operator needs a value' 'an option without its value' "$work/small.pfm" -o a.png --operator
refuses 2 "several inputs go to a folder, and a.png is none: what is '.*small.pfm'" 'two inputs' "$work/small.pfm" "$work/small.pfm" -o a.png
refuses 2 'only one of' 'two outputs on standard output' "$work/small.pfm" -o - --stats -

# --- No OpenCL ---

OCL_ICD_VENDORS=$work/nowhere
export OCL_ICD_VENDORS
refuses 1 'no OpenCL platform is installed.*pocl-opencl-icd' 'no platform' "$work/small.pfm" -o a.png
if [ -f /etc/OpenCL/vendors/rusticl.icd ]; then
    OCL_ICD_VENDORS=/etc/OpenCL/vendors/rusticl.icd
    refuses 1 'none of its platforms has a device.*pocl-opencl-icd' 'a platform without devices' "$work/small.pfm" \
        -o a.png
    RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
    export RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
    refuses 1 'fma is asked for, and llvmpipe.* has none' 'no fma' "$work/small.pfm" -o a.png --arithmetic fma
    unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
else
    echo "skipped a platform without devices, because Mesa's OpenCL is not installed"
fi
unset OCL_ICD_VENDORS

# --- Interruption ---

(cd "$work/d" && exec "$tonemap" "$work/small.pfm" -o a.png --repeat 1000000 -q) >"$work/out" 2>"$work/err" &
pid=$!
listening $pid
sleep 1
kill -TERM $pid
wait $pid
equal $? 143 'interrupted: status'
equal "$(ls -A "$work/d")" "" 'interrupted: nothing is left'
has err '^cox-tonemap: interrupted$' 'interrupted: says so'

(cd "$work/d" && exec "$tonemap" "$work/small.pfm" -o a.png --repeat 1000000 -q --stats s.json) >"$work/out" 2>"$work/err" &
pid=$!
listening $pid
sleep 1
if [ -z "$(ls -A "$work/d")" ]; then
    kill -KILL $pid
    wait $pid 2>/dev/null
    equal "$(ls -A "$work/d")" "" 'killed: nothing is left'
else
    kill -KILL $pid
    wait $pid 2>/dev/null
    echo 'skipped what a killed program leaves, because the file system has no files without a name'
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
