#!/bin/sh
# Flashes, cuts and hot pixels with the default options: a frame looks as it does without its neighbours. Also through
# a container and a pipe.
#
#   sh video_flash.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
need python3
need_device

# film.py FRAMES [WIDTH HEIGHT [HOT]]: a letter for each frame. HOT: hot pixels in every third frame.
#   s  a still scene of 10, 50 and 600 cd/m2       b  a bright scene, up to 4000
#   W  white of 9000                               P  s, a third of it 9000
#   d  5 cd/m2                                     p  s, a tenth of it 9000
cat >"$work/film.py" <<'END'
import sys

letters = sys.argv[1]
width, height, hot = ([int(text) for text in sys.argv[2:]] + [320, 180, 0][len(sys.argv) - 2:])[:3]

def code(nits):
    y = (nits / 1e4) ** .1593017578125
    return int(round(64 + 876 * ((.8359375 + 18.8515625 * y) / (1 + 18.6875 * y)) ** 78.84375)).to_bytes(2, "little")

def luma(letter):
    plain, bright = {"s": (10, 600), "b": (100, 4000), "W": (9000, 9000), "d": (5, 5)}.get(letter, (10, 600))
    middle = 50 if letter in "sbPp" else plain
    around = width // 8
    row = code(plain) * width
    patches = code(plain) * around + code(middle) * (2 * around) + code(plain) * (2 * around) + code(bright) * (2 * around)
    patches += code(plain) * (width - 7 * around)
    rows = [patches if height // 3 <= r < height * 2 // 3 else row for r in range(height)]
    flashing = {"P": height // 3, "p": height // 10}.get(letter, 0)
    return rows[:height - flashing] + [code(9000) * width] * flashing

def with_hot_pixels(rows, count):
    for n in range(count):
        y, x = (n * 37 + 5) % height, (n * 151 + 11) % width
        rows[y] = rows[y][:2 * x] + code(10000) + rows[y][2 * x + 2:]
    return rows

out = sys.stdout.buffer
out.write(b"YUV4MPEG2 W%d H%d F24:1 Ip C420p10\n" % (width, height))
for number, letter in enumerate(letters):
    rows = with_hot_pixels(luma(letter), hot if number % 3 == 1 else 0)
    out.write(b"FRAME\n" + b"".join(rows) + (512).to_bytes(2, "little") * (width * height // 2))
END

film() { # NAME ARGS: make NAME from ARGS of film.py
    h_name=$1
    shift
    python3 "$work/film.py" "$@" >"$work/$h_name" || fail "film.py $*"
}

# steady FRAMES WHICH [WIDTH HEIGHT]: each of the scenes s and b has one code for 50 cd/m2 in out.nv12, within 6.
# WHICH is `always`, or `settled`: except for the first frame after another letter.
steady() {
    h_problem=$(python3 - "$1" "$2" "${3:-320}" "${4:-180}" <<'END'
import sys

letters, which, width, height = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
film = open("out.nv12", "rb").read()
codes = [film[n * width * height * 3 // 2 + height // 2 * width + width // 4] for n in range(len(letters))]
for scene in "sb":
    own = [codes[n] for n in range(len(letters))
           if letters[n] == scene and not (which == "settled" and n and letters[n - 1] != scene)]
    if own and max(own) - min(own) > 6:
        print(scene, *codes)
END
    )
    check "$1, $2: the codes are $h_problem" [ -z "$h_problem" ]
}

# --- Files: every frame ---

flashes=ssssssWssssssWWssssssWWWssssssPssssssPPssssssPPPssssss
flashes=${flashes}psssssspppssssssdssssssdddsssssWsWWsWWWspspPPsWssssssspWPpssssss
cuts=ssssssbbbbbbbssssssbdssssssdbbbbbWbbbbsbbbbbb
for frames in $flashes $cuts sWssss sbbbbb bsssss; do
    film film.y4m "$frames"
    run 0 "$frames" "$work/film.y4m" -o out.nv12
    steady "$frames" always
done
contains out 'peak from the frame$'
run 0 'standard input is a file' - -o file.nv12 <"$work/film.y4m"
same out.nv12 file.nv12
run 0 'looking ahead' "$work/film.y4m" -o ahead.nv12 --lookahead 1
same out.nv12 ahead.nv12
clean

# --- Pipes: a flash of a part of the picture changes nothing. A cut, or the end of a large flash, shows one frame late ---

piped() {
    mkfifo pipe
    cat "$work/film.y4m" >pipe &
    run 0 "$1 from a pipe" pipe -o out.nv12
    rm pipe
}

for kind in sssssspssssssppsssssspppsspspspppsss:always \
    ssssssWssssssPPPssssssdsssssbbbbbbdbbbbbbsssssssWWWssssss:settled; do
    film film.y4m "${kind%:*}"
    piped "${kind%:*}"
    steady "${kind%:*}" "${kind#*:}"
done
contains out 'peak from the frame before$'
clean

# --- Hot pixels ---

for size in '320 180' '1920 1080'; do
    # shellcheck disable=SC2086
    film film.y4m sss $size 10
    run 0 "hot pixels, $size" "$work/film.y4m" -o out.nv12
    # shellcheck disable=SC2086
    steady sss always $size
    contains out '^scenes +peak 6[0-9][0-9] to 6[0-9][0-9] cd'
done
clean

# --- In pieces: the bits of one run ---

film film.y4m ssssssWbbbbbbpbbdbbb
run 0 'the whole' "$work/film.y4m" -o whole.y4m
for range in 0:7 7:8 8:16 16:; do run 0 "analyse $range" analyse "$work/film.y4m" --range $range -o ${range%:*}.part; done
run 0 'steer' steer 0.part 7.part 8.part 16.part -o film.scene
for part in 1 2 3; do run 0 "map $part" map "$work/film.y4m" --scene film.scene --share $part/3 -o $part.y4m; done
run 0 'join' join 1.y4m 2.y4m 3.y4m -o joined.y4m
same whole.y4m joined.y4m

# --- A container ---

run 0 'the film as raw frames' "$work/film.y4m" -o whole.nv12
need_libavformat
need ffmpeg
ffmpeg -v error -i "$work/film.y4m" -c:v ffv1 -color_trc smpte2084 film.mkv 2>"$work/err" ||
    skip "this ffmpeg cannot make a film of FFV1"
run 0 'a container' film.mkv -o container.nv12
same whole.nv12 container.nv12
finish
