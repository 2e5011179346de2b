#!/bin/sh
# Damaged films: every frame of the input comes out, or cox-tonemap says which do not, and what is left is written.
# tests/media has more kinds of damage.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
need_device
need ffmpeg python3
need_libavformat

# film NAME SECONDS SIZE OPTIONS...: a film in HDR10. Noise makes its packets large.
film() {
    film_name=$1
    film_source=testsrc2=s=$3:r=24:d=$2,noise=alls=8:allf=t:all_seed=1
    shift 3
    ffmpeg -v error -y -f lavfi -i "$film_source" -pix_fmt yuv420p10le -color_trc smpte2084 -color_primaries bt2020 \
        -colorspace bt2020nc "$@" "$work/$film_name" 2>"$work/err" || skip "ffmpeg cannot make $film_name"
}
# damage FROM TO FIRST BYTES VALUE: a copy with that many bytes of this value, from a share of the file on.
damage() {
    python3 - "$work/$1" "$work/$2" "$3" "$4" "$5" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
first, count = int(len(data) * float(sys.argv[3])), int(sys.argv[4])
data[first:first + count] = bytes([int(sys.argv[5])]) * count
open(sys.argv[2], "wb").write(data)
END
}
# hole FROM TO FIRST END: a copy without the packets that lie within this part of the file.
hole() {
    ffprobe -v error -select_streams v -show_entries packet=pos -of csv=p=0 "$work/$1" >packets
    python3 - "$work/$1" "$work/$2" "$3" "$4" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
first, end = int(sys.argv[3]), int(sys.argv[4])
at = [int(line.split(",")[0]) for line in open("packets")]
at = [place for place in at if first <= place < end]
data[at[0]:at[-1]] = bytes(at[-1] - at[0])
open(sys.argv[2], "wb").write(data)
END
    rm packets
}
# keeps FRAMES PATTERN WHAT FILE ARGS...: the film is written without the frames that are lost, which a line tells, and
# the status is 1. With --strict there is no file.
keeps() {
    keep_frames=$1 keep_pattern=$2 keep_what=$3 keep_file=$4
    shift 4
    run 1 "$keep_what" "$work/$keep_file" -o a.mkv --preset ultrafast "$@"
    contains err "^cox-tonemap: .*$keep_file: $keep_pattern"
    frames_of a.mkv >"$work/frames"
    contains "$work/frames" "^$keep_frames\$"
    clean
    run 1 "$keep_what, --strict" "$work/$keep_file" -o a.mkv --preset ultrafast --strict "$@"
    contains err "^cox-tonemap: "
    nothing_left
}
frames_of() { ffprobe -v error -count_frames -select_streams v -show_entries stream=nb_read_frames -of csv=p=0 "$1"; }
# packets FROM TO PID WHICH: a copy without packets of this PID of MPEG-TS; WHICH is of python, from the list `at`.
packets() {
    python3 - "$work/$1" "$work/$2" "$3" "$4" <<'END'
import sys
data = open(sys.argv[1], "rb").read()
packets = [data[i:i + 188] for i in range(0, len(data), 188)]
pid = lambda p: (p[1] & 31) << 8 | p[2]
at = [i for i, p in enumerate(packets) if pid(p) == int(sys.argv[3])]
begins = [i for i in at if packets[i][1] & 64]
lost = set(eval(sys.argv[4]))
open(sys.argv[2], "wb").write(b"".join(p for i, p in enumerate(packets) if i not in lost))
END
}
lossless='-c:v ffv1 -level 3 -slicecrc 1 -g 1 -cluster_time_limit 250'

# --- Checksums ---

# shellcheck disable=SC2086 # several options
film good.mkv 1 128x72 $lossless
damage good.mkv bad.mkv 0.5 1 255
run 0 'a whole film' "$work/good.mkv" -o null:
equal "$(cat "$work/err")" '' 'nothing to tell'
keeps 24 'damage in 1 place, .*slice CRC mismatch.*up to 1 frame is damaged, the first is frame 1[0-9]' \
    'a flipped byte in FFV1' bad.mkv
refuses 1 'bad.mkv: frame [0-9]+ .* slice CRC mismatch' 'a flipped byte, --strict' "$work/bad.mkv" -o a.mkv --strict

film good.mkv 1 128x72 -c:v libx265 -x265-params log-level=none:hash=1
damage good.mkv bad.mkv 0.6 2 170
keeps 24 'damage in [0-9]+ places?' 'a flipped byte in HEVC with hashes' bad.mkv

# --- A hole ---

# shellcheck disable=SC2086
film good.mkv 4 192x108 $lossless
size=$(bytes "$work/good.mkv")
hole good.mkv hole.mkv $((size * 4 / 10)) $((size * 6 / 10))
keeps 7[0-9] '[0-9]+ frames are missing by the frames. times, in 1 gap; the first gap is before frame' 'a hole' hole.mkv
run 1 'a hole, analysed with --strict' analyse "$work/hole.mkv" -o a.part --strict
nothing_left
run 0 'a whole film, --strict' "$work/good.mkv" -o a.mkv --strict
clean

head -c $((size / 2)) "$work/good.mkv" >"$work/cut.mkv"
keeps 47 'damage in 1 place, .*the file is truncated, [0-9]+ bytes are missing' 'a Matroska file that is cut' cut.mkv

# --- Memory that a short film can request ---

film wide.mkv 0.1 7680x4320 -c:v libx264 -preset ultrafast -crf 51
refuses 1 'wide.mkv: frames of 7680 x 4320 pixels need more memory than .*--max-memory' '8K in a short file' \
    "$work/wide.mkv" -o a.mkv
run 0 '8K with a raised limit' "$work/wide.mkv" -o null: --frames 1 --max-memory 3

# --- Broadcasts ---

ffmpeg -v error -y -f lavfi -i testsrc2=s=128x72:r=24:d=2,noise=alls=8:allf=t:all_seed=1 -f lavfi -i sine=d=2 \
    -pix_fmt yuv420p10le -c:v libx265 -x265-params log-level=none:keyint=12:bframes=0:repeat-headers=1 \
    -color_trc arib-std-b67 -color_primaries bt2020 -colorspace bt2020nc -c:a ac3 "$work/good.ts"
run 0 'a whole broadcast' "$work/good.ts" -o a.mkv --strict
equal "$(cat "$work/err")" '' 'nothing to tell'
clean

packets good.ts bad.ts 256 'at[len(at) // 2:][1:3]'
keeps 48 'damage in 1 place, .*damaged or incomplete\); up to [0-9]+ frames? (is|are) damaged, the first is frame' \
    'lost packets of a frame' bad.ts
packets good.ts bad.ts 256 'range(begins[30], begins[31])'
keeps 47 '1 frame is missing by the frames. times, in 1 gap; the first gap is before frame 30' 'a lost frame' bad.ts
for to in y4m p010; do
    run 1 "a lost frame, to $to" "$work/bad.ts" -o "a.$to"
    contains err '1 frame is missing'
    contains out 'written .*47 frames'
    clean
done
refuses 1 'bad.ts: frame [0-9]+ .*damaged or incomplete' 'a piece of a damaged film' analyse "$work/bad.ts" -o a.part
run 1 'several films, one damaged' "$work/bad.ts" "$work/good.ts" -o . --to mkv --preset ultrafast
contains err '^cox-tonemap: 1 of 2 inputs failed$'
check 'both are written' [ -e bad.mkv ] && check 'both are written' [ -e good.mkv ]
clean
packets good.ts bad.ts 257 'at[len(at) // 2:][:2]'
keeps 48 'up to [0-9]+ packets of sound or subtitles are damaged' 'lost sound' bad.ts
head -c $(($(bytes "$work/good.ts") * 7 / 10 / 188 * 188 + 7)) "$work/good.ts" >"$work/cut.ts"
keeps 3[0-9] 'damage in [12] places?, .*the file is truncated' 'MPEG-TS that is cut within a packet' cut.ts

# Nothing is left if nothing can be decoded, or if the disk is full.
packets good.ts none.ts 256 'at[1:]'
refuses 1 'none.ts: .*' 'a film without a whole frame' "$work/none.ts" -o a.mkv
packets good.ts bad.ts 256 'at[len(at) // 2:][1:3]'
expect_status 1 'a damaged film on a full disk' limited 16 "$tonemap" "$work/bad.ts" -o a.mkv --crf 0
nothing_left

# --- A repaired film has another index ---

# shellcheck disable=SC2086
film good.mkv 20 640x360 $lossless
size=$(bytes "$work/good.mkv")
check 'the film has become too small' [ "$size" -gt 67108864 ]
step=$(((size - 4096) / 64)) # between two samples of the file's identity
hole good.mkv movie.mkv $((step * 30 + 4096)) $((step * 31))
run 0 'a film with a hole, analysed' analyse "$work/movie.mkv" --share 1/1 -o damaged.part
cp "$work/good.mkv" "$work/movie.mkv"
run 0 'the repaired film' analyse "$work/movie.mkv" --share 1/1 -o repaired.part
run 0 'the repaired film without a cache' analyse "$work/movie.mkv" --share 1/1 --no-cache -o fresh.part
same repaired.part fresh.part
differ "$(cat damaged.part | cksum)" "$(cat repaired.part | cksum)" 'the damaged film and the repaired one'
clean

# --- A file that is cut while it is read ---

# The output is a pipe that nobody reads at first, so that the program waits with most of the film unread. The frames are
# lent by the mapped file, or are copied as for a GPU.
ffmpeg -v error -y -f lavfi -i testsrc2=s=640x360:r=24:d=5 -strict -1 -pix_fmt yuv420p10le "$work/film.y4m"
for mode in mapped staged; do
    cp "$work/film.y4m" "$work/cut.y4m"
    mkfifo pipe
    start "$tonemap" "$work/cut.y4m" --devices "cpu=$mode" --to y4m -o pipe
    exec 4<pipe
    head -c 100 <&4 >begun
    truncate -s 0 "$work/cut.y4m"
    cat <&4 >rest
    exec 4<&-
    ends "$pid" 120
    equal "$status" 1 "cut while it is read, $mode: status"
    contains err 'cut.y4m: the file was truncated to 0 bytes while it was read'
    clean
done
finish
