#!/bin/sh
# Black bars (letterbox) do not count for the light. The picture between them has the same bits as without them. Pieces
# have the bits of one run. Bars may come and go.
#
#   sh video_bars.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
need python3
need_device

width=96
height=128

# film.py CHROMA FRAMES CORNER: for each frame two digits, the rows of the bars at top and bottom in units of 8.
# CORNER: the code of the first and the last sample. Bars of a film in colour have chroma half a code of 8 bits off, as ffmpeg's.
cat >"$work/film.py" <<'END'
import random, sys

chroma, frames, corner = sys.argv[1], sys.argv[2], int(sys.argv[3])
width, height = 96, 128
code = lambda value: int(value).to_bytes(2, "little")
picture = random.Random(1)
picture = [b"".join(code(picture.randrange(300, 760)) for x in range(width)) for y in range(height)]
colours = random.Random(2)
colours = [b"".join(code(512 if chroma == "grey" else colours.randrange(400, 600)) for x in range(width // 2))
           for y in range(height // 2)]
out = sys.stdout.buffer
out.write(b"YUV4MPEG2 W%d H%d F24:1 Ip C420p10\n" % (width, height))
for top, bottom in zip(frames[::2], frames[1::2]):
    top, end = int(top) * 8, height - int(bottom) * 8
    rows = [row if top <= y < end else code(64) * width for y, row in enumerate(picture)]
    if corner:
        rows[0] = code(corner) + rows[0][2:]
        rows[-1] = rows[-1][:-2] + code(corner)
    planes = [row if top <= 2 * y < end else code(512 if chroma == "grey" else 514) * (width // 2) for y, row in enumerate(colours)]
    out.write(b"FRAME\n" + b"".join(rows) + 2 * b"".join(planes))
END

film() { python3 "$work/film.py" "$2" "$3" "$4" >"$work/$1" || fail "film.py $*"; } # NAME CHROMA FRAMES CORNER

# The luma and chroma of the rows from 8 to 8 before the end, of all frames of an NV12 film.
middle() { # FILM "WIDTH HEIGHT"
    python3 -c '
import sys
film, (w, h) = open(sys.argv[1], "rb").read(), map(int, sys.argv[2].split())
size = w * h
for at in range(0, len(film), size * 3 // 2):
    sys.stdout.buffer.write(film[at + 8 * w:at + size - 8 * w] + film[at + size + 4 * w:at + size * 3 // 2 - 4 * w])
' "$1" "$2"
}

# --- Bits: with one other sample in the corners there are no bars ---

film bars.y4m any 2332400420 0
film corner.y4m any 2332400420 400
for size in "$width $height" '48 64'; do
    how='--dither ordered'
    [ "$size" = "$width $height" ] || how='--scale 1/2'
    # shellcheck disable=SC2086 # options are words
    run 0 "bars, $size" "$work/bars.y4m" -o bars.nv12 --peak 1000 $how
    # shellcheck disable=SC2086
    run 0 "no bars, $size" "$work/corner.y4m" -o corner.nv12 --peak 1000 $how
    middle bars.nv12 "$size" >bars.middle
    middle corner.nv12 "$size" >corner.middle
    same bars.middle corner.middle "the picture, $size"
done
run 0 'on two devices' "$work/bars.y4m" -o null: --peak 1000 --devices cpu:2x1 --hash
hashes "$(hash_of)" 'on one' "$work/bars.y4m" -o null: --peak 1000
hashes "$(hash_of)" 'verified' "$work/bars.y4m" -o null: --peak 1000 --devices cpu:2x1 --verify 1
clean

# --- The light of the picture alone ---

average() { sed -n 's/.*"average_nits": \([0-9.]*\).*/\1/p' "$1" | head -n 1; }
film bars.y4m grey 33333333 0
python3 -c '
import sys
film = open(sys.argv[1], "rb").read()
head = film.index(b"\n") + 1
w, h, bar = 96, 128, 24
out = open(sys.argv[2], "wb")
out.write(film[:head].replace(b"H128", b"H80"))
for at in range(head, len(film), 6 + w * h * 3):
    luma, u, v = at + 6, at + 6 + w * h * 2, at + 6 + w * h * 2 + w * h // 2
    out.write(b"FRAME\n" + film[luma + bar * w * 2:luma + (h - bar) * w * 2])
    for plane in u, v:
        out.write(film[plane + bar // 2 * w:plane + (h - bar) // 2 * w])
' "$work/bars.y4m" "$work/cut.y4m"
for ahead in 1 0; do
    run 0 "the film cut, lookahead $ahead" "$work/cut.y4m" -o null: --stats cut.json --lookahead $ahead
    run 0 "the film with bars, lookahead $ahead" "$work/bars.y4m" -o null: --stats bars.json --lookahead $ahead
    check "lookahead $ahead: the average is $(average bars.json) instead of $(average cut.json)" [ "$(average bars.json)" = "$(average cut.json)" ]
done
check 'there is an average' [ -n "$(average cut.json)" ]
clean

# --- In pieces; bars that come and go ---

film film.y4m any 333333332211000000333300888833330000 0
run 0 'the whole' "$work/film.y4m" -o whole.y4m
for part in 1 2 3; do run 0 "analyse $part" analyse "$work/film.y4m" --share $part/3 -o $part.part; done
run 0 'steer' steer 1.part 2.part 3.part -o film.scene
for part in 1 2; do run 0 "map $part" map "$work/film.y4m" --scene film.scene --share $part/2 -o $part.y4m; done
run 0 'join' join 1.y4m 2.y4m -o joined.y4m
same whole.y4m joined.y4m
finish
