#!/bin/sh
# Pictures that are HDR or BT.2020: JPEG with a gain map, PNG with cICP, from pictures and from films. What is read back
# is the light that went in.
#   sh hdr_pictures.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
need python3
need_device
hdr() { python3 "$source/tests/support/hdr_picture.py" "$@"; }
png() { python3 "$source/tests/support/png.py" "$@"; }
below() { # VALUE MOST WHAT
    check "$3: $1, which is not below $2" awk -v v="$1" -v m="$2" 'BEGIN { exit !(v != "" && v < m) }'
}

# near FILE MEDIAN MOST: the light of FILE is that of the picture
near() {
    run 0 "$1 read back" "$1" -o back.png --operator clip --desat 0 --peak 203 --exposure -4 --depth 16
    # shellcheck disable=SC2046
    set -- "$@" $(hdr back back.png)
    below "$4" "$2" 'the median of the errors'
    below "$5" "$3" 'an error that 99 % are below'
}
hdr make picture.pfm
mine=picture.pfm

# --- JPEG with a gain map ---

run 0 'JPEG' $mine -o a.jpg --peak 1624
if grep -q 'built without libjpeg' "$work/err"; then
    leave_out 'JPEG' 'cox-tonemap was built without libjpeg'
else
    equal "$(od -An -tx1 -N 3 a.jpg | tr -d ' ')" ffd8ff 'the first bytes'
    equal "$(hdr jpeg a.jpg)" '49 x 32 3.00' 'size and headroom of the map'
    contains out '^written +a.jpg \(97 x 64, 8 bit\)'
    near a.jpg 0.02 0.12
    contains out 'JPEG, gain map up to 8 x white'
    cp a.jpg xmp.jpg
    hdr hide xmp.jpg urn:iso
    mv back.png iso.png
    near xmp.jpg 0.02 0.12
    equal "$(png pixel back.png 90,5)" "$(png pixel iso.png 90,5)" 'XMP and ISO 21496-1'
    cp a.jpg loose.jpg
    hdr hide loose.jpg MPF
    near loose.jpg 0.02 0.12
    for operator in reinhard aces local; do
        run 0 $operator $mine -o a.jpg --peak 1624 --operator $operator --devices cpu:2x1
        near a.jpg 0.02 0.12
    done

    run 0 'a lower peak' $mine -o a.jpg --peak 812
    equal "$(hdr jpeg a.jpg)" '49 x 32 2.00'
    run 0 'a measured exposure' $mine -o a.jpg
    hdr jpeg a.jpg >jpeg.txt || fail 'a wrong file'
    run 0 'low quality' $mine -o low.JPEG --quality 20
    check 'is smaller' [ "$(bytes low.JPEG)" -lt "$(bytes a.jpg)" ]
    make_picture
    run 0 'a picture that is hardly HDR' "$work/small.pfm" -o dark.jpg --peak 203
    equal "$(hdr jpeg dark.jpg)" '32 x 24 0.06'

    (cd "$work" && printf 'PF\n1 1\n-1\n\0\0\200\077\0\0\0\0\0\0\0\0' >one.pfm)
    run 0 'one pixel' "$work/one.pfm" -o one.jpg --peak 203
    equal "$(hdr jpeg one.jpg | cut -c 1-5)" '1 x 1'
    run 1 'a full disk' $mine -o /dev/full --peak 203
    denies 2 '--alpha: a JPEG has no alpha channel' 'alpha' $mine -o a.jpg --alpha
    denies 2 '--depth 16: a JPEG has 8 bits' '16 bits' $mine -o a.jpg --depth 16
    denies 2 '--quality is for JPEG' 'the quality of a PNG' $mine -o a.png --quality 90
    denies 2 "--quality '0': expected a number from 1 to 100" 'no quality' $mine -o a.jpg --quality 0
    denies 2 "--quality '101': expected" 'too much quality' $mine -o a.jpg --quality 101
    denies 2 '--hdr: a JPEG has sRGB, and a gain map' 'PQ in a JPEG' $mine -o a.jpg --hdr 600
    denies 2 '--wide: a JPEG has sRGB' 'BT.2020 in a JPEG' $mine -o a.jpg --wide
    make_clips
    denies 2 'a.jpg: a JPEG is written of a picture; .*--hdr 10000 -o still.png' 'a film' "$work/clip.y4m" -o a.jpg
    denies 2 'a.jpg: a JPEG is written of a picture' 'a still' "$work/clip.y4m" -o a.jpg --frame 1
fi

# --- PNG in PQ ---

run 0 'PQ' $mine -o a.png --hdr 10000 --operator clip --peak 10000
below "$(hdr codes a.png pq)" 0.1 'PQ'
contains out '^written +a.png \(97 x 64, 16 bit\)'
near a.png 0.001 0.002
run 0 'on two devices' $mine -o a.png --hdr 10000 --operator clip --peak 10000 --devices cpu:2x1 --verify
below "$(hdr codes a.png pq)" 0.1 'PQ on two devices'
run 0 'light below the knee' $mine -o knee.png --hdr 4000 --peak 10000
equal "$(png pixel knee.png 40,0)" "$(png pixel a.png 40,0)" 'the light below the knee'
run 0 'a measured exposure' $mine -o b.png --hdr 1000
run 0 'the local operator' $mine -o b.png --hdr 1000 --operator local
run 0 'a measured peak beyond what can be' $mine -o b.png --hdr 1000 --exposure 20

# --- PNG in BT.2020 with the curve of sRGB ---

for depth in 8 16; do
    run 0 "BT.2020, $depth bits" $mine -o a.png --wide --operator clip --peak 203 --desat 0 --depth $depth
    below "$(hdr codes a.png wide)" 0.6 "BT.2020, $depth bits"
done
denies 2 '--depth 8: an HDR PNG has 16 bits' '8 bits' $mine -o c.png --hdr 600 --depth 8
denies 2 '--alpha and --hdr cannot be combined' 'alpha in HDR' $mine -o c.png --hdr 600 --alpha
denies 2 '--alpha and --wide cannot be combined' 'alpha in BT.2020' $mine -o c.png --wide --alpha
denies 2 '--operator exposure writes sRGB only' 'the operator for sRGB' $mine -o c.png --wide --operator exposure
denies 2 '--full-range is for video' 'the range of a picture' $mine -o c.png --full-range

# --- Stills ---

# One frame: 100 cd/m2 on the left, 4000 on the right.
python3 - >film.y4m <<'PY'
import sys
def pq(nits):
    y = (nits / 10000) ** (2610 / 16384)
    return ((3424 / 4096 + 2413 / 128 * y) / (1 + 2392 / 128 * y)) ** (2523 / 32)
luma = [round(64 + 876 * pq(nits)).to_bytes(2, "little") * 32 for nits in (100, 4000)]
chroma = (512).to_bytes(2, "little") * (64 * 24)
sys.stdout.buffer.write(b"YUV4MPEG2 W64 H48 F24:1 Ip C420p10\nFRAME\n" + (luma[0] + luma[1]) * 48 + chroma)
PY
run 0 'a still in PQ' film.y4m -o a.png --hdr 600 --peak 4000
equal "$(png chunk a.png cICP)" '9 16 0 1' 'the colours of PQ'
contains out '^written +a.png \(PNG, 64 x 48, 16 bit\)'
python3 - "$(png pixel a.png 5,5)" "$(png pixel a.png 60,5)" <<'PY' || fail 'wrong light'
import sys
for text, signal in zip(sys.argv[1:], (0.50808, 0.69651)):  # PQ of 100 and 600 cd/m2
    for code in text.split():
        assert abs(int(code) / 65535 - signal) < 0.5 / 876, (text, signal)
PY
run 0 'a still in BT.2020' film.y4m -o w.png --wide --peak 4000
equal "$(png chunk w.png cICP)" '9 13 0 1' 'the colours of BT.2020'
run 0 'a sheet in PQ' film.y4m -o s.png --sheet 1 --hdr 600
equal "$(png chunk s.png cICP)" '9 16 0 1' 'the colours of a sheet'
run 0 'a still of SDR' film.y4m -o d.png
equal "$(png chunk d.png cICP)" '' 'no chunk for sRGB'
run 0 'a still of HDR becomes a picture' a.png -o d.png
denies 2 '--depth 8: an HDR PNG has 16 bits' '8 bits' film.y4m -o c.png --hdr 600 --depth 8
denies 2 "--full-range is for Y'CbCr; a PNG always has the full range" 'the range' film.y4m -o c.png --full-range
head -c 2048 /dev/zero >half.rgba16f
denies 1 '--hdr is not supported for half-float RGBA' 'half floats' half.rgba16f --size 16x16 -o c.y4m --hdr 600
denies 2 '--depth 16: y4m has 8 or 10 bits' 'y4m of 16 bits' film.y4m -o c.y4m --hdr 600 --depth 16
finish
