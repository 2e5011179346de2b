#!/bin/sh
# Films with the curves of HDR10+ (SMPTE ST 2094-40): greys become what the computation in double precision gives.
#   sh hdr10plus.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/tonemap.sh"
need ffmpeg python3
need_device
need_libavformat

ff() { ffmpeg -nostdin -v error -y "$@"; }
plus() { python3 "$source/tests/support/hdr10plus.py" "$@"; }
ff -f lavfi -i 'color=gray:s=320x180,format=yuv420p10le' -frames:v 1 -c:v libx265 -f null - 2>/dev/null ||
    skip 'ffmpeg cannot encode 10 bits with libx265'

# A frame of each grey. 722 is 1000 cd/m2.
codes='64 200 330 444 509 600 660 722 800'
python3 - $codes >film.yuv <<'END'
import sys
for code in sys.argv[1:]:
    sys.stdout.buffer.write(int(code).to_bytes(2, "little") * 64 * 48 + (512).to_bytes(2, "little") * 64 * 24)
END
expect_status 0 'a film' ff -f rawvideo -s 64x48 -r 24 -pix_fmt yuv420p10le -i film.yuv -c:v libx265 -preset ultrafast \
    -x265-params log-level=none:lossless=1:bframes=0:repeat-headers=1:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc \
    plain.hevc

# luma FILE: the first luma code of each frame.
luma()
{
    python3 -c '
import sys
data = open(sys.argv[1], "rb").read()
begin = data.index(b"\n") + 1
size = 6 + 64 * 48 * 3
print(*(int.from_bytes(data[at + 6 : at + 8], "little") for at in range(begin, len(data), size)))' "$1"
}

# close A B CASE: two lists of codes differ by at most 1.
close()
{
    python3 -c '
import sys
a, b = sys.argv[1].split(), sys.argv[2].split()
sys.exit(len(a) != len(b) or any(abs(int(x) - int(y)) > 1 for x, y in zip(a, b)))' "$1" "$2" || fail "$3: $1, not $2"
    pass
}

look='--operator hdr10plus --depth 10 --dither none --desat 0'
# Curves of graded films, of one anchor and of none; displays brighter and darker than SDR white.
for curve in 400,64,271,265,666,741,800,848,887,920,945,957 500,0,0,102,205,307,410,512,614,717,819,922 \
    1000,409,819,700 203,500,1500,900,1000 150,200,900,600,800,900,1000 600,1000,2000; do
    for peak in 1000 4000; do
        expect_status 0 "curve $curve" plus plain.hevc curve.hevc $peak $curve
        run 0 "curve $curve" curve.hevc -o out.y4m $look
        close "$(luma out.y4m)" "$(plus expect "$codes" $peak $curve)" "curve $curve, peak $peak"
        lacks out '^curves'
    done
done

# Without curves the operator is bt2390, and says so.
run 0 'no curves' plain.hevc -o out.y4m $look --peak 1000
contains out '^curves    9 frames without HDR10\+, mapped by bt2390'
run 0 'bt2390' plain.hevc -o same.y4m --operator bt2390 --depth 10 --dither none --desat 0 --peak 1000
same out.y4m same.y4m 'frames without a curve differ from bt2390'

# In pieces, on other devices, and in an order that is not that of decoding.
run 0 'in one run' curve.hevc -o one.y4m $look
run 0 'analysis' analyse curve.hevc -o part $look
run 0 'steering' steer part -o scene
run 0 'mapping' map curve.hevc --scene scene -o piece.y4m
tail -n +2 one.y4m >one
tail -n +2 piece.y4m >piece
same one piece 'a piece differs from one run'
run 0 'two devices' curve.hevc -o two.y4m $look --devices cpu:2x1
same one.y4m two.y4m 'devices differ'

denies 2 '--operator hdr10plus is for video' 'a picture' "$source/examples/data/StillLife.exr" -o a.png --operator hdr10plus
finish
