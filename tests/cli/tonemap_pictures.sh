#!/bin/sh
# cox-tonemap with several devices, large pictures, every operator and unusual values. Then damaged OpenEXR files, full
# disks, closed streams, the progress line and signals.
#   sh tonemap_pictures.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/tonemap.sh"
need_device
make_picture
small=$work/small.pfm
still=$data/StillLife.exr
exr=yes
"$tonemap" "$still" -o no.exr >"$work/out" 2>"$work/err"
if grep -q 'built without OpenEXR' "$work/err"; then
    leave_out 'pictures of OpenEXR' 'cox-tonemap was built without it'
    exr=
fi
what='a wrong suffix'
nothing_left

# --- Memory ---

# A row of 65536 equal pixels takes 12 bytes with the old run lengths: a pixel, and two counts.
python3 - "$work/huge.hdr" <<'END' || fail 'the picture was not made'
import sys
row = bytes([90, 90, 90, 128, 1, 1, 1, 255, 1, 1, 1, 255])
with open(sys.argv[1], "wb") as out:
    out.write(b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 8192 +X 65536\n" + row * 8192)
END
refuses 1 'huge.hdr: 65536 x 8192 pixels need 10.0 GiB .*--max-memory' 'a short file with a huge picture' "$work/huge.hdr" -o a.png
refuses 1 'huge.hdr: 65536 x 8192 pixels need 10.0 GiB' 'a raised limit' "$work/huge.hdr" -o a.png --max-memory 9
refuses 1 'small.pfm: 64 x 48 pixels need .*--max-memory' 'a lower limit' "$small" -o a.png --max-memory 0.00001
run 0 'a sufficient limit' "$small" -o a.png --max-memory 0.001
clean
refuses 2 '--max-memory must be' 'a limit that is none' "$small" -o a.png --max-memory much

# --- The same bits for any split ---

to="$small -o a.png"
run 0 'whole' $to --hash
whole=$(hash_of)
for way in '--devices cpu:2x1' '--devices cpu:2x1 --split 0.3,0.7' '--devices cpu:2x1 --split 1,0' \
    '--devices cpu:2x1 --policy chunks --repeat 5 --in-flight 3' '--policy single' '--no-cache'; do
    hashes "$whole" "$way" $to --verify $way
    contains out 'device +0 alone [0-9a-f]{16}  equal'
done
prints '^hash .*  muladd$' 'muladd' $to --hash --arithmetic muladd --stats stats.json
contains stats.json '"arithmetic": "muladd"'
hashes "$whole" 'auto is the default' $to --arithmetic auto
if grep -q '^flags.* fma ' /proc/cpuinfo; then
    hashes "$whole" 'fma is the default where the processor has it' $to --arithmetic fma
    contains out '^hash .*  fma$'
fi
run 0 'a fixed split' $to --devices cpu:2x1 --split 0.25,0.75 --stats stats.json
tr -d ' ' <stats.json >"$work/shares"
contains "$work/shares" '"rows":12,.*"rows":36,'
run 0 'a deadline that no frame keeps' $to --repeat 5 --deadline 0.001 --split 1 --devices cpu:1x1
contains out '^late +5 of 5 frames, by [0-9.]+ ms at most \(deadline 0.001 ms\)'
prints '^late +0 of 1 frames \(deadline 1e\+06 ms\)' 'a deadline that each frame keeps' $to --deadline 1000000
clean

# --- Quiet ---

mkdir "$work/cold" # even if the driver compiles and its compiler prints warnings
POCL_CACHE_DIR="$work/cold" run 0 'quiet' "$small" -o quiet.png -q --no-cache
equal "$(cat "$work/out" "$work/err")" ''
clean

# --- Pictures ---

[ -z "$exr" ] || for picture in StillLife:1240:846 CandleGlass:1000:810 GoldenGate:1262:860 WideColorGamut:800:800; do
    name=${picture%%:*}
    size=${picture#*:}
    run 0 "$name" "$data/$name.exr" -o "$name.png" --hash
    is_png "$name.png" "${size%:*}" "${size#*:}" 8
    contains out '^picture .*OpenEXR' '^frame +0 +\[#+\]' 'efficiency [0-9]'
    equal "$(ls -A)" "$name.png" 'files'
    clean
done

operators='hable reinhard mobius aces exposure linear bt2390 clip local bt2446a bt2446c spline'
for operator in $operators; do
    run 0 "operator $operator" "$small" -o "$operator.png" --operator "$operator" --exposure 0.5 --peak 4000 --desat 0.5
    is_png "$operator.png" 64 48 8
done
if [ "$exr" ]; then
    run 0 'little detail' "$still" -o local.png --operator local --detail 0.25 --hash
    little=$(hash_of)
    run 0 'much detail' "$still" -o local.png --operator local --detail 4 --hash
    differ "$(hash_of)" "$little"
fi
run 0 'local, on two devices' "$small" -o local.png --operator local --devices cpu:2x1 --hash --verify --stats passes.json
contains out 'device +0 alone [0-9a-f]{16}  equal' '^frame .* rows [0-9.]+ ms \|.*\|.*\|'
contains passes.json '"pass": 3, "device"'
clean

# --- Odd values in pixels ---

{
    printf 'PF\n4 1\n-1\n'
    printf '\000\000\300\177\000\000\300\177\000\000\300\177' # not a number
    printf '\000\000\200\177\000\000\200\177\000\000\200\177' # infinity
    printf '\000\000\200\277\000\000\200\277\000\000\200\277' # -1
    printf '\000\000\200\377\000\000\200\377\000\000\200\377' # -infinity
} >"$work/odd.pfm"
cat >"$work/pixels.py" <<'END'
import sys, zlib
png, at, data = open(sys.argv[1], "rb").read(), 8, b""
while at < len(png):
    size, kind = int.from_bytes(png[at:at + 4], "big"), png[at + 4:at + 8]
    if kind == b"IDAT":
        data += png[at + 8:at + 8 + size]
    at += size + 12
row = bytearray(zlib.decompress(data))
assert len(row) == 13, len(row)
pixels = row[1:]
if row[0] in (1, 4):  # the only filter with an effect on a first row, and Paeth's, which is then the same
    for i in range(3, 12):
        pixels[i] = (pixels[i] + pixels[i - 3]) & 255
else:
    assert row[0] in (0, 2), row[0]
assert list(pixels) == [0, 0, 0, 255, 255, 255, 0, 0, 0, 0, 0, 0], list(pixels)
END
for operator in $operators; do
    run 0 "odd values, $operator" "$work/odd.pfm" -o odd.png --operator "$operator" --peak 2030 --verify
    command -v python3 >/dev/null && check 'pixels' python3 "$work/pixels.py" odd.png
done
run 0 'odd values, exposure from the picture' "$work/odd.pfm" -o odd.png --peak auto --verify
clean

# --- The progress line ---

# live WHAT OPTIONS...: run until the line has been drawn; $work/live gets the drawings. With 80 columns a fast
# machine's numbers would leave no space for the split.
live() {
    what=$1
    shift
    TERM=xterm start script -qec "stty cols 120; exec '$tonemap' '$small' -o c.png --repeat 100000 $*" /dev/null
    wait_until 120 'the live line' appears "$work/out" '^[0-9]+/100000 frames  .* left'
    stop "$pid"
    tr '\r' '\n' <"$work/out" >"$work/live"
    contains "$work/live" '^[0-9]+/100000 frames  \[>* *\]  [0-9.]+ frames/s  [0-9:]+ left'
}
if script -qec true /dev/null >/dev/null 2>&1; then
    live 'one device' --devices cpu:1x1
    lacks "$work/live" 'frames/s.*split'
    live 'two devices' --devices cpu:2x1 --split 0.5,0.5
    contains "$work/live" ' left  split \[#+=+\]'
else
    leave_out 'the live line' 'script (bsdutils) is not installed'
fi
clean
run 0 'no live line where no terminal is' "$small" -o c.png --repeat 2000
lacks err 'left'
clean

# --- Damaged files ---

if [ "$exr" ]; then
    size=$(bytes "$still")
    for length in 4 20 200 5000 $((size / 2)) $((size - 1)); do
        head -c "$length" "$still" >"$work/short.exr"
        refuses 1 'short.exr: ' "$length bytes of an OpenEXR picture" "$work/short.exr" -o a.png
    done
    head -c 100000 "$data/GoldenGate.exr" >"$work/short.exr"
    refuses 1 'truncated or damaged' 'a truncated tiled picture' "$work/short.exr" -o a.png
    # The compression's code follows its attribute's name, type and size.
    cat "$still" >"$work/dwa.exr"
    at=$(($(grep -abo 'compression' "$work/dwa.exr" | head -n 1 | cut -d : -f 1) + 28))
    equal "$(number "$work/dwa.exr" $at 1)" 4 'the place of the compression in StillLife.exr'
    printf '\010' | dd of="$work/dwa.exr" bs=1 seek=$at conv=notrunc 2>/dev/null
    refuses 1 'DWAA compression, which OpenEXRCore .* cannot read' 'DWAA' "$work/dwa.exr" -o a.png
    printf '\011' | dd of="$work/dwa.exr" bs=1 seek=$at conv=notrunc 2>/dev/null
    refuses 1 'DWAB compression, which OpenEXRCore .* cannot read' 'DWAB' "$work/dwa.exr" -o a.png
fi

# --- Closed streams: messages must not get into files that have their numbers ---

run 0 'open streams' "$small" -o open.png
expect_status 1 'standard output is closed' closed 1 "$tonemap" "$small" -o out.png -v --repeat 300
contains err 'cannot write to standard output: Bad file descriptor'
expect_status 0 'standard error is closed' closed 2 "$tonemap" "$small" -o err.png -v --repeat 300
same open.png out.png
same open.png err.png
expect_status 1 'standard input is closed' closed 0 "$tonemap" - -o in.png
contains err 'standard stream: cannot be read.*: Bad file descriptor'
equal "$(ls)" 'err.png
open.png
out.png' 'files'
clean

# --- No disk space ---

# A limit on the size of files replaces a full disk. The first limit stops the picture. The second one stops the
# driver's compiler, which ends the process. No file may be left in either case.
if [ "$exr" ]; then
    run 0 'sixteen bits of StillLife' "$still" -o a.png --depth 16
    size=$(bytes a.png)
    clean
    expect_status 1 'a limit on file sizes' limited $((size / 2048)) "$tonemap" "$still" -o a.png --depth 16
    contains err '^cox-tonemap: a.png: cannot be written: File too large'
    nothing_left
    what='a compiler that ends the process'
    mkdir "$work/pocl" "$work/small"
    POCL_CACHE_DIR="$work/pocl" refute 'the picture fits into 512 bytes' limited 1 "$tonemap" "$still" -o a.png --no-cache
    nothing_left
    if mount -t tmpfs -o size=64k tmpfs "$work/small" 2>/dev/null; then
        at_exit "umount '$work/small'"
        denies 1 '^cox-tonemap: .*a.png: cannot be written: No space left' 'a full disk' "$still" -o "$work/small/a.png"
        equal "$(ls -A "$work/small")" '' 'left behind'
    else
        leave_out 'a full disk' 'none can be mounted here'
    fi
fi
clean

# --- Signals ---

what='interrupted'
start "$tonemap" "$small" -o a.png --repeat 1000000 -q
wait_until 120 'a handler for SIGTERM' catches_term "$pid"
kill -TERM "$pid"
ends "$pid" 120
equal "$status" 143 'status'
nothing_left
contains err '^cox-tonemap: interrupted$'

what='killed'
start "$tonemap" "$small" -o a.png --repeat 1000000 -q --stats s.json
wait_until 120 'an output that is begun' writes "$pid"
if [ -z "$(ls -A)" ]; then
    stop "$pid"
    nothing_left
else
    stop "$pid"
    leave_out 'what a killed program leaves' 'the file system has no files without a name'
fi
finish
