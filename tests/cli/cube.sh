#!/bin/sh
# Look-up tables in .cube files: as the look of a film (--lut), and made of a look (-o TABLE.cube).
#   sh cube.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
need python3
need_device
film=$data/stilllife_pq_480x270.y4m

# table FILE POINTS RED GREEN BLUE [HEAD]: a table of these expressions of r, g and b, 0 .. 1. HEAD: more lines
table() {
    python3 - "$@" >"$1" <<'PY'
import sys
points, channels = int(sys.argv[2]), [compile(e, "channel", "eval") for e in sys.argv[3:6]]
print("# made by a test")
if len(sys.argv) > 6:
    print(sys.argv[6].replace(r"\n", "\n"))
print(f"LUT_3D_SIZE {points}")
for i in range(points**3):
    place = (i % points, i // points % points, i // points**2)
    r, g, b = (p / (points - 1) for p in place)
    print(*(f"{eval(c):.6f}" for c in channels))
PY
}

# A film of 10 bits in 4:4:4: grey, muted red and muted blue, side by side.
python3 - >patches.y4m <<'PY'
import sys
def codes(r, g, b):
    y = .2627 * r + .6780 * g + .0593 * b
    return round(64 + 876 * y), round(512 + 896 * (b - y) / 1.8814), round(512 + 896 * (r - y) / 1.4746)
patches = [codes(*c) for c in ((.5, .5, .5), (.6, .4, .3), (.3, .4, .6))]
out = sys.stdout.buffer
out.write(b"YUV4MPEG2 W96 H32 F24:1 Ip C444p10\nFRAME\n")
for part in range(3):
    out.write(b"".join(p[part].to_bytes(2, "little") * 32 for p in patches) * 32)
PY

# codes FILE: Y', Cb and Cr in the middle of each patch of a film of 10 bits
codes() {
    python3 -c '
import sys
frame = open(sys.argv[1], "rb").read().split(b"FRAME\n", 1)[1]
for patch in range(3):
    at = [2 * (part * 96 * 32 + 16 * 96 + 32 * patch + 16) for part in range(3)]
    print(*(int.from_bytes(frame[i : i + 2], "little") for i in at))' "$1"
}

# near FILE FILE MOST SHARE WHAT: samples of 8 bits differ by at most MOST codes, and but for one in SHARE by at
# most one code
near() {
    check "$5" python3 - "$1" "$2" "$3" "$4" <<'PY'
import sys
a, b = (open(name, "rb").read() for name in sys.argv[1:3])
assert len(a) == len(b), "another size"
difference = sorted(abs(x - y) for x, y in zip(a, b))
print(f"largest difference {difference[-1]}, without one in {sys.argv[4]} {difference[-1 - len(a) // int(sys.argv[4])]}")
sys.exit(difference[-1] > int(sys.argv[3]) or difference[-1 - len(a) // int(sys.argv[4])] > 1)
PY
}

# --- As the look ---

same_signal='--wide --depth 10 --dither none'
table identity.cube 2 r g b
# shellcheck disable=SC2086 # options
run 0 'an identity' patches.y4m --lut identity.cube -o out.y4m $same_signal
contains out '^light     table identity.cube, 2 points on each side'
check 'an identity gives the signal back within a code' python3 -c '
import sys
a, b = (list(map(int, text.split())) for text in sys.argv[1:])
sys.exit(len(a) != 9 or any(abs(x - y) > 1 for x, y in zip(a, b)))' "$(codes patches.y4m)" "$(codes out.y4m)"

table exchange.cube 3 b g r
# shellcheck disable=SC2086
run 0 'red and blue exchanged' patches.y4m --lut exchange.cube -o exchanged.y4m $same_signal
equal "$(codes exchanged.y4m | sed -n 2p)" "$(codes out.y4m | sed -n 3p)" 'red becomes blue'
equal "$(codes exchanged.y4m | sed -n 3p)" "$(codes out.y4m | sed -n 2p)" 'blue becomes red'

# The domain's ends become 0 and 1.
table domain.cube 2 r g b 'DOMAIN_MIN 0.25 0.25 0.25\nDOMAIN_MAX 0.75 0.75 0.75'
# shellcheck disable=SC2086
run 0 'a domain' patches.y4m --lut domain.cube -o out.y4m $same_signal
equal "$(codes out.y4m | sed -n 1p)" '502 512 512' 'the middle of the domain'
sed 's/DOMAIN_MIN.*/LUT_3D_INPUT_RANGE 0.25 0.75/; /DOMAIN_MAX/d; s/$/\r/' domain.cube >range.cube
# shellcheck disable=SC2086
run 0 'the same as Resolve writes it, with CR LF' patches.y4m --lut range.cube -o range.y4m $same_signal
same range.y4m out.y4m

run 0 'half of the size' "$film" --lut exchange.cube -o out.y4m --scale 1/2
run 0 'another size, HLG' "$film" --lut exchange.cube -o out.y4m --scale 200x --transfer hlg
run 0 'a still' "$film" --lut exchange.cube -o out.png --frame 1

# --- Made of a look ---

run 0 'a table' -o made.cube --operator bt2390 --peak 2000
contains out '^written   made.cube \(PQ to SDR BT.709, bt2390, 33 points on each side\)'
contains made.cube '^TITLE "PQ to SDR BT.709, bt2390"' '^# cox-tonemap .*--operator bt2390 --peak 2000' '^LUT_3D_SIZE 33'
counts 35937 made.cube '^[01]\.[0-9]{6} [01]\.[0-9]{6} [01]\.[0-9]{6}$'
# shellcheck disable=SC2046 # the options of the comment
run 0 'the options in its comment' -o again.cube $(sed -n 's/^# cox-tonemap [^ ]* //p' made.cube)
same again.cube made.cube
run 0 'its film' "$film" --lut made.cube -o out.y4m --dither none
run 0 'the look itself' "$film" -o direct.y4m --dither none --operator bt2390 --peak 2000
near out.y4m direct.y4m 4 100 'the table is the look but for its interpolation'

run 0 'HLG to HDR' -o hdr.cube --transfer hlg --hdr 600 --points 2
contains hdr.cube '^TITLE "HLG to PQ BT.2020, bt2390"' '^LUT_3D_SIZE 2'
counts 8 hdr.cube '^[01]\.[0-9]{6} '
run 0 'to HDR' "$film" --transfer hlg --lut hdr.cube --hdr 600 -o out.y4m
contains out '10 bit'

# --- ffmpeg ---

if ! command -v ffmpeg >/dev/null || ! ffmpeg -hide_banner -filters 2>/dev/null | grep -q ' lut3d '; then
    leave_out 'ffmpeg' 'it is not installed, or has no filter lut3d'
else
    table wild.cube 17 '.5 + .5 * (1 - b) * (r - g)' 'g * g * (1.2 - r)' '1.1 - r * b - .3 * g'
    for cube in wild made; do
        expect_status 0 'a film of R, G and B' ffmpeg -v error -y -i "$film" -frames:v 1 -pix_fmt gbrp10le -f rawvideo rgb
        expect_status 0 'lut3d' ffmpeg -v error -y -f rawvideo -pix_fmt gbrp10le -s 480x270 -i rgb -vf "lut3d=file=$cube.cube:interp=tetrahedral" \
            -pix_fmt gbrp10le -f rawvideo theirs
        run 0 'the same' rgb --size 480x270 --format gbrp10 --lut $cube.cube -o ours.png --frame 0 --depth 16
        expect_status 0 'our picture' ffmpeg -v error -y -i ours.png -pix_fmt gbrp16le -f rawvideo ours
        check "ffmpeg's lut3d with $cube.cube gives the same within a code of 8 bits" python3 -c '
import array
ours, theirs = (array.array("H", open(name, "rb").read()) for name in ("ours", "theirs"))
most = max(abs(a / 65535 - b / 1023) for a, b in zip(ours, theirs))
print(f"largest difference {255 * most:.3f} codes of 8 bits")
assert len(ours) == len(theirs) > 100000 and most < 1 / 255'
    done
fi

# --- Refused ---

for option in '--operator hable' '--peak 1000' '--exposure 1' '--desat 0' '--gamut clip' '--hlg-peak 500' \
    '--sdr-white 100' '--lookahead 1' --trust-metadata; do
    # shellcheck disable=SC2086
    denies 2 "${option%% *} has no use with --lut" "$option" "$film" --lut made.cube -o a.y4m $option
done
denies 2 'lut cannot be combined with --scene' 'a scene file' "$film" --lut made.cube -o a.mkv --scene x
denies 2 'lut is not an option of cox-tonemap analyse' 'analyse' analyse "$film" -o x --lut made.cube
denies 2 'lut needs --transfer pq or hlg' 'light' "$film" --lut made.cube -o a.y4m --transfer linear
denies 2 'lut is for video' 'a picture' "$data/StillLife.exr" --lut made.cube -o a.png
denies 1 'input and output are the same' 'the output is the table' "$film" --lut made.cube --to y4m -o made.cube
denies 2 'leave out' 'an input' "$film" -o a.cube
denies 2 'a fixed peak' 'an automatic peak' -o a.cube --peak auto
denies 2 'local cannot be a .cube table' 'the operator local' -o a.cube --operator local
denies 2 'exposure cannot be a .cube table' 'the operator exposure' -o a.cube --operator exposure
denies 2 'PQ or HLG' 'linear' -o a.cube --transfer linear
denies 2 'PQ or HLG' 'SDR' -o a.cube --transfer sdr
denies 2 'PQ or HLG' 'any SDR' -o a.cube --transfer auto
run 0 'a table for HLG' -o hlg.cube --transfer hlg --points 2
denies 1 'hlg.cube: a table from HLG to SDR BT.709, but the film goes from PQ to SDR BT.709' 'the wrong input' \
    "$film" -o a.y4m --lut hlg.cube --transfer pq
denies 1 'a table from HLG to SDR BT.709, but the film goes from HLG to SDR BT.2020' 'the wrong output' \
    "$film" -o a.y4m --lut hlg.cube --transfer hlg --wide
run 0 'the right signals' "$film" -o null: --lut hlg.cube --transfer hlg
denies 2 'depth has no use' 'a depth' -o a.cube --depth 10
denies 2 'lut has no use' 'a table of a table' -o a.cube --lut made.cube
denies 2 'from 2 to 129' 'one point' -o a.cube --points 1
denies 2 'points is for tables' 'points of a film' "$film" -o a.y4m --points 5
check 'a refused command leaves no file' [ ! -e a.cube ]
cp made.cube kept.cube
run 1 'no such device' -o kept.cube --devices nothing-of-this-name
same kept.cube made.cube

# hostile PATTERN WHAT: bad.cube is refused
hostile() {
    denies 1 "^cox-tonemap: bad.cube: $1" "$2" "$film" --lut bad.cube -o a.y4m
    check "$2: no film" [ ! -e a.y4m ]
}
printf 'LUT_1D_SIZE 2\nLUT_3D_SIZE 2\n' >bad.cube
hostile 'line 1: it has LUT_1D_SIZE, but .*shapers are not supported' 'a shaper'
head -n 20 made.cube >bad.cube
hostile 'it ends after 15 of 35937 colours' 'too few lines'
{
    cat made.cube
    echo 0 0 0
} >bad.cube
hostile 'line 35943: more than the 35937 colours' 'too many lines'
for number in nan inf -inf 1e99 0x1 1,5 '1 1' 1.2.3 65536; do
    printf 'LUT_3D_SIZE 2\n0 0 0\n0 0 %s\n' "$number" >bad.cube
    hostile 'line 3: ' "the number $number"
done
printf 'LUT_3D_SIZE 2\nnan 0 0\n' >bad.cube
hostile "line 2: 'nan' is no known keyword" 'NaN at the beginning'
for count in 1 130 -3 4000000000 x ''; do
    printf 'LUT_3D_SIZE %s\n' "$count" >bad.cube
    hostile 'line 1: LUT_3D_SIZE must be from 2 to 129' "the size '$count'"
done
printf 'LUT_IN_VIDEO_RANGE\n' >bad.cube
hostile "line 1: 'LUT_IN_VIDEO_RANGE' is no known keyword" 'a keyword that changes the meaning'
printf 'LUT_3D_SIZE 2\nLUT_3D_SIZE 2\n' >bad.cube
hostile 'line 2: a second LUT_3D_SIZE' 'a second size'
printf '0 0 0\n' >bad.cube
hostile 'line 1: a number before LUT_3D_SIZE' 'no size'
printf '# nothing\n' >bad.cube
hostile 'it has no LUT_3D_SIZE' 'no table'
: >bad.cube
hostile 'it has no LUT_3D_SIZE' 'an empty file'
head -c 100 /dev/zero >bad.cube
hostile 'line 1: it is not text' 'zeros'
sed 's/^LUT_3D/DOMAIN_MIN 1 1 1\n&/' identity.cube >bad.cube
hostile 'its domain is too narrow' 'a domain without a width'
awk 'BEGIN { for (i = 0; i < 300; i++) printf "0 "; print "" }' >bad.cube
hostile 'line 1: it is too long' 'a long line'
denies 1 'missing.cube: cannot be opened' 'no file' "$film" --lut missing.cube -o a.y4m
denies 1 'cannot be read: Is a directory' 'a folder' "$film" --lut . -o a.y4m

finish
