#!/bin/sh
# Damaged films: every frame of the input comes out, or cox-tonemap says which do not. tests/media has more kinds of
# damage.
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
lossless='-c:v ffv1 -level 3 -slicecrc 1 -g 1 -cluster_time_limit 250'

# --- Checksums ---

# shellcheck disable=SC2086 # several options
film good.mkv 1 128x72 $lossless
damage good.mkv bad.mkv 0.5 1 255
run 0 'a whole film' "$work/good.mkv" -o null:
equal "$(cat "$work/err")" '' 'nothing to tell'
refuses 1 'bad.mkv: frame [0-9]+ .* slice CRC mismatch' 'a flipped byte in FFV1' "$work/bad.mkv" -o a.mkv

film good.mkv 1 128x72 -c:v libx265 -x265-params log-level=none:hash=1
damage good.mkv bad.mkv 0.6 2 170
run 1 'a flipped byte in HEVC with hashes' "$work/bad.mkv" -o a.mkv
contains err 'bad.mkv: frame [0-9]+ .*'

# --- A hole: a warning, with --strict an error ---

# shellcheck disable=SC2086
film good.mkv 4 192x108 $lossless
size=$(bytes "$work/good.mkv")
hole good.mkv hole.mkv $((size * 4 / 10)) $((size * 6 / 10))
run 0 'a hole' "$work/hole.mkv" -o a.mkv
contains err 'warning: .*hole.mkv: [0-9]+ frames are missing by the frames. times, in 1 gap; the first gap is before frame'
clean
run 1 'a hole, --strict' "$work/hole.mkv" -o a.mkv --strict
contains err '^cox-tonemap: .*hole.mkv: [0-9]+ frames are missing by'
nothing_left
run 1 'a hole, analysed with --strict' analyse "$work/hole.mkv" -o a.part --strict
nothing_left
run 0 'a whole film, --strict' "$work/good.mkv" -o a.mkv --strict
clean

head -c $((size / 2)) "$work/good.mkv" >"$work/cut.mkv"
refuses 1 'cut.mkv: .*the file is truncated' 'a Matroska file that is cut' "$work/cut.mkv" -o a.mkv

# --- Memory that a short film can request ---

film wide.mkv 0.1 7680x4320 -c:v libx264 -preset ultrafast -crf 51
refuses 1 'wide.mkv: frames of 7680 x 4320 pixels need more memory than .*--max-memory' '8K in a short file' \
    "$work/wide.mkv" -o a.mkv
run 0 '8K with a raised limit' "$work/wide.mkv" -o null: --frames 1 --max-memory 3

# --- A cut in MPEG-TS ---

film good.ts 1 128x72 -c:v libx265 -x265-params log-level=none:keyint=12
head -c $(($(bytes "$work/good.ts") * 7 / 10 / 188 * 188 + 7)) "$work/good.ts" >"$work/cut.ts"
refuses 1 'cut.ts: .*the file is truncated' 'MPEG-TS that is cut within a packet' "$work/cut.ts" -o a.mkv

# --- A repaired film has another index ---

# shellcheck disable=SC2086
film good.mkv 20 640x360 $lossless
size=$(bytes "$work/good.mkv")
check 'the film has become too small' [ "$size" -gt 67108864 ]
step=$(((size - 4096) / 64)) # between two samples of the file's identity
hole good.mkv movie.mkv $((step * 30 + 4096)) $((step * 31))
run 0 'a film with a hole' analyse "$work/movie.mkv" --share 1/1 -o damaged.part
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
