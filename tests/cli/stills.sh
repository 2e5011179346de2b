#!/bin/sh
# Stills of cox-tonemap: their light as the PNG names it, upright, the shape of a pixel, layers of OpenEXR, lists and
# sheets.
#   sh stills.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/tonemap.sh"
need python3
need_device
png() { python3 "$source/tests/support/png.py" "$@"; }

# ramp CURVE: 256 x 2 pixels of grey from black to SDR white, 16 bits, 4:4:4, full range; linear is a picture.
ramp() {
    python3 - "$1" <<'EOF'
import math, struct, sys
def pq(light):
    y = (203 * light / 10000) ** (2610 / 16384)
    return ((3424 / 4096 + 2413 / 128 * y) / (1 + 2392 / 128 * y)) ** (2523 / 32)
def hlg(light):
    a = 0.17883277
    e = (0.203 * light) ** (1 / 1.2)
    return math.sqrt(3 * e) if e <= 1 / 12 else a * math.log(12 * e - (1 - 4 * a)) + 0.5 - a * math.log(4 * a)
curve = sys.argv[1]
grey = [i / 255 for i in range(256)]
if curve == "linear":
    data = b"Pf\n256 2\n-1\n" + 2 * struct.pack("<256f", *grey)
else:
    signal = [round(65535 * (pq if curve == "pq" else hlg)(light)) for light in grey]
    data = 2 * struct.pack("<256H", *signal) + 4 * struct.pack("<256H", *([32768] * 256))
open(curve + ".ramp", "wb").write(data)
EOF
}

# --- The light is that of sRGB, which the PNG names ---

for curve in pq hlg linear; do
    for depth in 8 16; do
        format="--size 256x2 --format yuv444p16 --transfer $curve --range full --dither none"
        [ $curve != linear ] || format=
        ramp $curve
        run 0 "a ramp of $curve, $depth bits" $curve.ramp -o a.png $format --operator clip --peak 203 --depth $depth
        differ "$(png chunk a.png sRGB)" '' 'the chunk sRGB'
        check "wrong by $(png ramp a.png) codes" awk -v wrong="$(png ramp a.png)" 'BEGIN { exit !(wrong < 0.54) }'
    done
done
clean

# --- The shape of a pixel ---

make_clips
sed '1s/A1:1/A32:27/' "$work/clip.y4m" >"$work/wide.y4m"
run 0 'wide pixels' "$work/wide.y4m" -o wide.png
equal "$(png chunk wide.png pHYs)" '0 0 0 27 0 0 0 32 0' 'pixels for a length, along and down'
run 0 'square pixels' "$work/clip.y4m" -o plain.png
equal "$(png chunk plain.png pHYs)" '' 'a shape that need not be said'
clean

# --- Upright ---

# turned A B C D: t.mov, to be shown turned by that matrix. Each quarter of the stored frame has its own grey.
turned() {
    python3 - "$@" <<'EOF'
import struct, sys
data = bytearray(open("quarters.mov", "rb").read())
a, b, c, d = (int(float(value) * 65536) for value in sys.argv[1:])
struct.pack_into(">9i", data, data.index(b"tkhd") + 44, a, b, 0, c, d, 0, 0, 0, 1 << 30)
open("t.mov", "wb").write(data)
EOF
}
greys() { # PNG WIDTH HEIGHT: of the four corners, 0 to 3
    for at in 4,4 $(($2 - 5)),4 4,$(($3 - 5)) $(($2 - 5)),$(($3 - 5)); do
        png pixel "$1" $at | awk '{ printf "%d ", $1 / 64 }'
    done
}
container=yes
if ! command -v ffmpeg >/dev/null || ! ffmpeg -hide_banner -encoders 2>/dev/null | grep -q ' prores_ks '; then
    leave_out 'turned films' 'there is no ffmpeg with the encoder prores_ks'
    container=
elif "$tonemap" "$work/clip.y4m" -o no.mkv 2>&1 | grep -q 'built without libavformat'; then
    leave_out 'turned films' 'this build has no libavformat'
    container=
fi
if [ "$container" ]; then
    grey="geq=lum='if(gt(X,31),if(gt(Y,23),560,440),if(gt(Y,23),380,150))':cb=512:cr=512"
    expect_status 0 'the film of quarters' ffmpeg -v error -nostdin \
        -f lavfi -i "color=s=64x48:r=25:d=0.04,format=yuv422p10le,$grey" -c:v prores_ks -y quarters.mov
    to='--transfer pq --operator clip --peak 500'
    while read -r matrix size expected; do
        # shellcheck disable=SC2046
        turned $(echo "$matrix" | tr ',' ' ')
        run 0 "the matrix $matrix" t.mov -o t.png $to
        equal "$(png size t.png)" "$size" 'the size'
        equal "$(greys t.png ${size%x*} ${size#*x})" "$expected " 'the quarters'
        contains out "^written .*, ${size%x*} x ${size#*x}, 8 bit"
        equal "$(cat "$work/err")" ''
    done <<'EOF'
1,0,0,1 64x48 0 2 1 3
0,1,-1,0 48x64 1 0 3 2
-1,0,0,-1 64x48 3 1 2 0
0,-1,1,0 48x64 2 3 0 1
-1,0,0,1 64x48 2 0 3 1
1,0,0,-1 64x48 1 3 0 2
0,1,1,0 48x64 0 1 2 3
0,-1,-1,0 48x64 3 2 1 0
EOF
    turned 0 1 -1 0
    run 0 'another size, which is meant upright' t.mov -o t.png $to --scale 24x64
    equal "$(png size t.png)" 24x64
    equal "$(png chunk t.png pHYs)" '0 0 0 1 0 0 0 2 0'
    run 0 'a stream of frames' t.mov -o t.y4m $to
    contains err 'warning: t.mov: its picture is to be turned or mirrored, which y4m cannot say'
    turned 0.7 0.7 -0.7 0.7
    run 0 'half of a quarter' t.mov -o t.png $to
    contains err 'warning: t.mov: turned by an angle that is not a multiple of 90 degrees; the PNG is not turned'
    equal "$(png size t.png)" 64x48
fi
clean

# --- Layers of OpenEXR ---

exr() { python3 "$source/tests/support/exr.py" "$@"; }
red=R=1,G=0,B=0 green=R=0,G=1,B=0
layer() { echo "$1.R=$2,$1.G=$3,$1.B=$4"; } # NAME R G B
is_colour() { # EXPECTED WHAT ARGS...
    h_colour=$1
    shift
    run 0 "$@" -o o.png --operator clip --peak 203
    equal "$(png pixel o.png 3,3)" "$h_colour" 'the colour'
}

exr plain.exr $red
if "$tonemap" plain.exr -o o.png 2>&1 | grep -q 'built without OpenEXR'; then
    leave_out 'layers of OpenEXR' 'cox-tonemap was built without it'
else
    exr blender.exr "$(layer ViewLayer.AO 0 1 0),$(layer ViewLayer.Combined 1 0 0),ViewLayer.Depth.Z=5"
    is_colour '255 0 0' 'Combined goes before AO' blender.exr
    contains out 'OpenEXR, .*layer ViewLayer.Combined'
    is_colour '0 255 0' 'a layer by its name' blender.exr --layer ViewLayer.AO
    is_colour '0 255 0' 'a layer by its last word' blender.exr --layer ao
    run 1 'a layer that is not there' blender.exr -o o.png --layer Mist
    contains err "has no layer 'Mist'; its layers are ViewLayer.AO, ViewLayer.Combined\$"
    exr parts.exr depth:Z=5 beauty:$red left:$green
    is_colour '255 0 0' 'the first part with colours' parts.exr
    contains out 'OpenEXR, .*, part 2 of 3, layer beauty'
    is_colour '0 255 0' 'a part by its name' parts.exr --layer left
    exr combined.exr A:$green ViewLayer.Combined:$red
    is_colour '255 0 0' 'a part with the name of the picture' combined.exr
    exr both.exr "left:$(layer light 0 0 1)" "right:$(layer light 0 1 0)"
    is_colour '0 0 255' 'the same layer in two parts' both.exr
    is_colour '0 255 0' 'a part and a layer' both.exr --layer right.light
    exr luma.exr Y=0.2126,RY=3.70367,BY=-1
    is_colour '255 0 0' 'luminance and chroma' luma.exr
    exr wide.exr aspect=2 $red
    run 0 'wide pixels' wide.exr -o o.png
    equal "$(png chunk o.png pHYs)" '0 0 39 16 0 0 78 32 0'
fi
make_picture
run 1 'a layer of a picture without them' "$work/small.pfm" -o o.png --layer a
contains err 'only OpenEXR pictures have layers'
run 2 'a layer of a film' "$work/clip.y4m" -o o.png --layer a
clean

# --- Several frames ---

clip=$work/clip.y4m
for frame in 0 2 7 11; do run 0 "frame $frame" "$clip" -o one-$frame.png --frame $frame; done
run 0 'a list' "$clip" -o 'still-%d.png' --frame 7,0,0:00.44,7,0:00:00.09
contains out '^written +still-%d.png \(5 PNGs, 64 x 48, 8 bit\)'
equal "$(ls still-*.png)" "$(printf 'still-%d.png\n' 1 2 3 4 5)"
same still-1.png one-7.png
same still-2.png one-0.png
same still-3.png one-11.png 'the time 0.44 s of 25 frames/s'
same still-4.png one-7.png 'the same frame again'
same still-5.png one-2.png 'the last frame that began before a time'
# shellcheck disable=SC2002 # a pipe is meant
cat "$clip" | "$tonemap" - -o 'piped-%02d.png' --frame 11,2 -q
what='a list from a pipe'
same piped-01.png one-11.png
same piped-02.png one-2.png
run 0 'one frame with a number' "$clip" -o 'n%d.png' --frame 7
same n1.png one-7.png
run 0 'one time' "$clip" -o time.png --frame 0:00.28
same time.png one-7.png
mkdir folder
run 0 'into a folder' "$clip" -o folder --to png --frame 2,7
equal "$(ls folder)" "$(printf 'clip-%d.png\n' 1 2)"
same folder/clip-2.png one-7.png
clean
refuses 1 'clip.y4m: has no frame 12; the last frame is 11' 'a list past the end' "$clip" -o 'a%d.png' --frame 2,12
refuses 1 'clip.y4m: has no frame 1500' 'a time past the end' "$clip" -o a.png --frame 1:00
refuses 2 "needs a %d for their number, as in still-%d.png" 'one name for two' "$clip" -o a.png --frame 2,3
for list in , 1, ,1 1,,2 1.5 1:60 1:2:3:4 -1 1:x '1 2'; do
    refuses 2 'expected a frame number' "the list '$list'" "$clip" -o a.png "--frame=$list"
done

# --- A sheet ---

for frame in 1 3 5 7 9 11; do run 0 "frame $frame" "$clip" -o one-$frame.png --frame $frame; done
run 0 'a sheet' "$clip" -o sheet.png --sheet 3x2
equal "$(png size sheet.png)" 200x100 'three frames across, two down, with gaps of 4'
n=0
for frame in 1 3 5 7 9 11; do
    for at in 0,0 63,47 20,30; do
        equal "$(png pixel sheet.png $((n % 3 * 68 + ${at%,*})),$((n / 3 * 52 + ${at#*,})))" \
            "$(png pixel one-$frame.png $at)" "pixel $at of frame $frame"
    done
    n=$((n + 1))
done
equal "$(png pixel sheet.png 65,20)" '0 0 0' 'the gap'
run 0 'five frames' "$clip" -o sheet.png --sheet 5 --start 2 --frames 5
equal "$(png size sheet.png)" 200x100
run 0 'its first frame' "$clip" -o one-2.png --frame 2
equal "$(png pixel sheet.png 9,9)" "$(png pixel one-2.png 9,9)"
equal "$(png pixel sheet.png 150,70)" '0 0 0' 'an empty cell'
run 0 'small frames' "$clip" -o sheet.png --sheet 2x1 --scale 32x
equal "$(png size sheet.png)" 68x24
run 0 'frames of wide pixels' "$work/wide.y4m" -o sheet.png --sheet 1
equal "$(png size sheet.png) $(png chunk sheet.png pHYs)" '76x48 ' 'square pixels'
clean
refuses 1 'clip.y4m: has 12 frames for a sheet of 16' 'a sheet of too many' "$clip" -o a.png --sheet 4x4
refuses 2 'name a .png output' 'a sheet as a film' "$clip" -o a.y4m --sheet 4
refuses 2 'cannot be combined' 'a sheet and a list' "$clip" -o a.png --sheet 4 --frame 1
for sheet in 0 x 3x 0x2 3x2x1 101x1 -4; do
    refuses 2 'expected a number of frames, or COLUMNSxROWS' "the sheet '$sheet'" "$clip" -o a.png "--sheet=$sheet"
done

# Seeking: each frame of a container is the same as from a run for it alone, also by its time.
if [ "$container" ]; then
    expect_status 0 'a long film' ffmpeg -v error -nostdin -f lavfi -i testsrc2=s=64x48:r=25:d=4,format=yuv422p10le \
        -c:v prores_ks -y long.mov
    for frame in 3 40 77; do run 0 "frame $frame" long.mov -o one-$frame.png --frame $frame --transfer pq; done
    run 0 'a list in a container' long.mov -o 'far-%d.png' --frame 0:03.08,3,40 --transfer pq
    same far-1.png one-77.png
    same far-2.png one-3.png
    same far-3.png one-40.png
    clean
    expect_status 0 'a film of two rates' ffmpeg -v error -nostdin -f lavfi \
        -i "testsrc2=s=64x48:r=25:d=1,format=yuv422p10le,setpts='if(gt(N,4),N*3-10,N)/25/TB'" -c:v prores_ks \
        -fps_mode passthrough -y two.mkv
    run 0 'a frame by its number' two.mkv -o one.png --frame 6 --transfer pq
    run 0 'the same by its time' two.mkv -o time.png --frame 0:00.38 --transfer pq # from 8/25 s to 11/25 s
    same time.png one.png
    clean
fi

finish
