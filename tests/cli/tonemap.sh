#!/bin/sh
# What cox-tonemap writes for pictures and what it refuses, with small pictures. tonemap_pictures.sh has the rest.
#   sh tonemap.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/tonemap.sh"
need_device
make_picture
small=$work/small.pfm
to="$small -o a.png"

# --- What it writes ---

run 0 'sixteen bits' "$small" -o deep.png --depth 16
is_png deep.png 64 48 16
run 0 'quiet' "$small" -o quiet.png -q
equal "$(cat "$work/out" "$work/err")" ''
run 0 'standard output' "$small" -o -
is_png "$work/out" 64 48 8
same "$work/out" quiet.png
run 0 'standard input' - -o stdin.png -q <"$small"
same stdin.png quiet.png
prints '^cox-tonemap [0-9]+\.[0-9]+' 'version' --version
prints '--split' 'help' --help
equal "$(awk 'length > 100' "$work/out")" '' 'lines of more than 100 columns'
counts 3 out '^  cox-tonemap [^ ]* -o [^ ]*'
# The examples of the help text must be valid. A frame or a device may be missing, an option may not.
grep '^  cox-tonemap ' "$work/out" >"$work/examples"
cp "$data/stilllife_pq_480x270.y4m" movie.mkv
cp "$small" room.exr
while read -r _ example <&3; do
    what="the example $example"
    "$tonemap" $example >"$work/out" 2>"$work/err"
    differ $? 2 'status'
done 3<"$work/examples"
clean

# --- Statistics and trace ---

python=
python3 -c 'import json' 2>/dev/null && python=1

# is_json FILE: checked by Python if it is installed; otherwise the brackets must match.
is_json() {
    if [ "$python" ]; then
        check "$1 is invalid JSON" python3 -m json.tool "$1"
    else
        equal "$(head -c 1 "$1")$(tr -cd '{[' <"$1" | wc -c)" "{$(tr -cd ']}' <"$1" | wc -c)" "$1 is not balanced"
    fi
}
run 0 'statistics' $to --devices cpu:2x1 --repeat 30 --stats stats.json --trace trace.json
is_json stats.json
is_json trace.json
cat >"$work/stats.py" <<'END'
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
if [ "$python" ]; then
    check 'their content' python3 "$work/stats.py" stats.json trace.json
else
    leave_out "the statistics' content" 'there is no python3'
fi
run 0 'statistics on standard output' "$small" -o b.png --stats -
is_json "$work/out"
clean

# --- Bad input ---

: >"$work/empty.exr"
echo 'this is not a picture' >"$work/text.exr"
printf '\211PNG\r\n\032\n' >"$work/a.hdr"
head -c 3000 /dev/urandom >"$work/noise.pfm"
printf 'PF\n0 0\n-1\n' >"$work/zero.pfm"
printf '#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 0 +X 5\n' >"$work/zero.hdr"
printf 'PF\n60000 60000\n-1\n' >"$work/huge.pfm"
head -c 1000 "$small" >"$work/short.pfm"
printf '#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X 2\n\001\002\003\200\001\002\003\200\001' >"$work/short.hdr"
printf '#?RADIANCE\nFORMAT=\033[2J\377\n\n-Y 1 +X 1\n\001\001\001\200' >"$work/escape.hdr"
refuses 1 'nothing.exr: cannot be opened: No such file' 'a missing file' nothing.exr -o a.png
refuses 1 'empty.exr: the file is empty' 'an empty file' "$work/empty.exr" -o a.png
refuses 1 'not a supported picture format' 'a text' "$work/text.exr" -o a.png
refuses 1 'damaged or truncated PNG' 'the beginning of a PNG' "$work/a.hdr" -o a.png
refuses 1 'not a supported picture' 'noise' "$work/noise.pfm" -o a.png
refuses 1 'is a directory' 'a folder' "$work" -o a.png
refuses 1 'has no pixels' 'a PFM without pixels' "$work/zero.pfm" -o a.png
refuses 1 'has no pixels' 'a Radiance picture without pixels' "$work/zero.hdr" -o a.png
refuses 1 'too large' 'a huge picture' "$work/huge.pfm" -o a.png
refuses 1 'truncated' 'a truncated PFM' "$work/short.pfm" -o a.png
refuses 1 'truncated' 'a truncated Radiance picture' "$work/short.hdr" -o a.png
refuses 1 'the unknown format \\x1b\[2J\\xff$' 'words of a file that would steer a terminal' "$work/escape.hdr" -o a.png

# --- Impossible outputs ---

refuses 1 'a.png: cannot be written: No such file' 'a missing folder' "$small" -o no/such/a.png
refuses 1 'cannot be written' 'a place that takes no files' "$small" -o /proc/a.png
refuses 1 'is a directory' 'a folder as statistics' $to --stats "$work"
refuses 1 'must end in .png' 'an unknown kind of output' "$small" -o a.bmp
refuses 1 '/dev/full: cannot be written: No space left' 'a full device' "$small" -o /dev/full
refuses 1 '/dev/full: cannot be written: No space left' 'statistics on a full device' "$small" -o /dev/null --stats /dev/full
refuses 1 'cannot be written' 'a trace that has no place' $to --trace no/such/trace.json
refuses 1 'a.png: named for two outputs' 'statistics over the picture' $to --stats ./a.png
refuses 1 'x.json: named for two outputs' 'statistics over the trace' $to --stats x.json --trace "$work/d/x.json"
refuses 1 "'': an empty name" 'an output without a name' "$small" -o ''
printf 'keep me' >"$work/keep.png"
cp "$work/keep.png" old.png
run 1 'a failure keeps the file of before' "$work/short.pfm" -o old.png
same "$work/keep.png" old.png
cp "$small" in.png
denies 1 'input and output are the same file' 'the input as output' in.png -o ./in.png
same "$small" in.png
for option in --stats --trace; do
    denies 1 'in.png: input and output are the same file' "the input as output of $option" in.png -o a.png $option ./in.png
    same "$small" in.png
done
if [ "$(id -u)" -ne 0 ]; then
    mkdir locked
    chmod a-w locked
    denies 1 'Permission denied' 'a folder without permission' "$small" -o locked/a.png
fi
clean

# --- Invalid arguments ---

refuses 2 "unknown operator 'filmic'; operators: hable, reinhard, mobius, aces, exposure, linear, bt2390, clip, local, bt2446a, bt2446c, spline, hdr10plus" \
    'an unknown operator' $to --operator filmic
for detail in 0.2 4.1 nan much ''; do
    refuses 2 '--detail .*: expected a number from 0.25 to 4' "a detail of '$detail'" $to --operator local --detail "$detail"
done
refuses 2 '--detail needs --operator local; the operator is hable' 'detail without its operator' $to --detail 1
refuses 2 "unknown policy 'magic'; policies: adaptive, chunks, static, single" 'an unknown policy' $to --policy magic
refuses 1 'no device matches .*available: 0.0: ' 'an unknown device' $to --devices voodoo2
refuses 1 '--devices|cannot start' 'a malformed device list' $to --devices cpu:0x0
for split in 0.5,0.4 0.5,0.6 1,1 0.5; do
    refuses 2 'sum to .*; they must sum to 1' "shares of $split" $to --devices cpu:2x1 --split $split
done
for split in '' ',' a 0.5,x 1.5,-0.5 nan,1 inf 0.5,,0.5 '0.5;0.5'; do
    refuses 2 'expected comma-separated numbers from 0 to 1' "shares of '$split'" $to --split "$split"
done
refuses 1 '3 shares for 2 devices' 'too many shares' $to --devices cpu:2x1 --split 0.5,0.25,0.25
refuses 2 'cannot be combined with --policy chunks' 'shares against a policy' $to --split 1 --policy chunks
refuses 2 'expected auto or a luminance' 'a peak of nothing' $to --peak 0
refuses 2 'expected auto or a luminance' 'a peak in words' $to --peak bright
refuses 2 'expected a number of stops' 'an exposure in words' $to --exposure nan
refuses 2 'expected 8, 10 or 16' 'twelve bits' $to --depth 12
refuses 2 'expected a number from 0 to 1' 'too much desaturation' $to --desat 1.5
for count in 0 -1 x 1000001 99999999999999999999; do
    refuses 2 'expected a number from 1 to' "$count times" $to --repeat $count
done
refuses 2 'frames from 1 to 16' 'too many in flight' $to --in-flight 17
refuses 2 'expected a number of milliseconds' 'a deadline of nothing' $to --deadline 0
refuses 2 '--arithmetic .fused.: expected auto, fma or muladd' 'an unknown arithmetic' $to --arithmetic fused
refuses 2 'expected auto, on, off' 'an unknown core' $to --reserve some
refuses 1 'CPU 99999' 'a core that is not there' $to --reserve 99999
refuses 2 'no input' 'no input' -o a.png
refuses 2 'no output' 'no output' "$small"
# unknown WRITTEN ANSWER: the message about an option that does not exist.
unknown() { refuses 2 "unknown option '$1'$2\$" "the unknown option $1" $to "${3:-$1}"; }
near() { unknown "$1" "; did you mean '$2'\?" "${3:-}"; }
near --pek --peak                 # a letter is missing
near --peaak --peak               # one letter too many
near --pead --peak --pead=400     # another letter; the value does not count
near --quite --quiet              # two letters swapped
near --tansferr --transfer        # two errors
near --opertaor --operator
near --sdrwhite --sdr-white
unknown --frobnicate '; see cox-tonemap --help'
unknown --pk '; see cox-tonemap --help' # two letters are too few to suggest an option
unknown -z '; see cox-tonemap --help'
refuses 2 "ambiguous option '--re'; it could be '--reserve', '--repeat'\$" 'an ambiguous option' $to --re on
refuses 2 '--operator needs a value' 'an option without its value' $to --operator
refuses 2 "a.png: not a folder, which several inputs need; the second input is '.*small.pfm'" 'two inputs' "$small" $to
refuses 2 'only one of' 'two outputs on standard output' "$small" -o - --stats -

# --- No OpenCL ---

export OCL_ICD_VENDORS="$work/nowhere"
refuses 1 'no OpenCL platform is installed.*pocl-opencl-icd' 'no platform' $to
if [ -f /etc/OpenCL/vendors/rusticl.icd ]; then
    OCL_ICD_VENDORS=/etc/OpenCL/vendors/rusticl.icd
    refuses 1 'no OpenCL platform has a device.*pocl-opencl-icd' 'a platform without devices' $to
    export RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
    refuses 1 'fma is requested, but llvmpipe.* has none' 'no fma' $to --arithmetic fma
else
    leave_out 'a platform without devices' "Mesa's OpenCL is not installed"
fi
finish
