#!/bin/sh
# Output that is not ordinary SDR: HDR for a darker display, BT.2020, the full range.
#   sh hdr.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
need python3
need_device

# Two frames of grey in PQ: 100 and 4000 cd/m2.
python3 - >film.y4m <<'PY'
import sys
def pq(nits):
    y = (nits / 10000) ** (2610 / 16384)
    return ((3424 / 4096 + 2413 / 128 * y) / (1 + 2392 / 128 * y)) ** (2523 / 32)
out = sys.stdout.buffer
out.write(b"YUV4MPEG2 W64 H48 F24:1 Ip C420p10\n")
for nits in 100, 4000:
    code = round(64 + 876 * pq(nits)).to_bytes(2, "little")
    out.write(b"FRAME\n" + code * (64 * 48) + (512).to_bytes(2, "little") * (64 * 24))
PY

# luma FILE: the first sample of each frame of a y4m file of 10 bits
luma() {
    python3 -c '
import sys
data = open(sys.argv[1], "rb").read()
begin = data.index(b"\n") + 1
size = 6 + 64 * 48 * 3
print(*(int.from_bytes(data[at + 6 : at + 8], "little") for at in range(begin, len(data), size)))' "$1"
}

# Light below the knee keeps its code. The peak becomes that of the display, 600 cd/m2: code 674.
run 0 'HDR for a display of 600 cd/m2' film.y4m -o out.y4m --hdr 600 --peak 4000
equal "$(luma out.y4m)" '509 674' 'codes of 100 and 4000 cd/m2'
contains out '^light     bt2390, HDR display 600 cd/m2, peak 4000 cd/m2'
contains out '10 bit'
run 0 'HDR for a display of the same peak' film.y4m -o out.y4m --hdr 4000 --peak 4000
equal "$(luma out.y4m)" '509 855' 'unchanged codes'

run 0 'SDR, and a peak that is SDR white' film.y4m -o out.y4m --operator bt2390 --peak 203 --depth 10
equal "$(luma out.y4m | cut -d' ' -f2)" 940 'the code of white'
run 0 'the full range' film.y4m -o out.y4m --full-range --depth 10 --peak 4000 --operator clip
contains out.y4m '^YUV4MPEG2 .*XCOLORRANGE=FULL'
equal "$(luma out.y4m | cut -d' ' -f2)" 1023 'the code of white'
run 0 'BT.2020' film.y4m -o out.y4m --wide --depth 10 --peak 4000
wide=$(luma out.y4m)
run 0 'BT.709' film.y4m -o out.y4m --depth 10 --peak 4000
equal "$(luma out.y4m)" "$wide" 'grey in BT.709 and in BT.2020'


denies 2 '--hdr needs 10 bits' 'NV12' film.y4m -o a.nv12 --hdr 600
denies 2 '--hdr needs 10 bits' '8 bits' film.y4m -o a.y4m --hdr 600 --depth 8
denies 2 '--sdr-white and --hdr cannot be combined' 'SDR white' film.y4m -o a.y4m --hdr 600 --sdr-white 100
denies 2 'expected a luminance from 100 to 10000' 'a dark display' film.y4m -o a.y4m --hdr 50

# In pieces, and in containers with their names.
run 0 'analysis' analyse film.y4m -o part --hdr 600
run 0 'steering' steer part -o scene
run 0 'mapping' map film.y4m --scene scene -o piece.y4m
run 0 'in one run' film.y4m -o out.y4m --hdr 600
tail -n +2 out.y4m >one
tail -n +2 piece.y4m | cmp -s - one || fail 'a piece differs from one run'
pass
if command -v ffprobe >/dev/null; then
    # names FILE OPTIONS...: primaries, transfer, matrix, range
    names() {
        file=$1
        shift
        run 0 "$file $*" film.y4m -o "$file" --overwrite --peak 4000 "$@"
        tags=$(ffprobe -v error -show_entries stream=color_range,color_space,color_transfer,color_primaries \
            -of default=nw=1:nk=1 "$file" | tr '\n' ' ')
    }
    names a.mkv --hdr 600
    equal "$tags" 'tv bt2020nc smpte2084 bt2020 ' 'names of HDR'
    names a.mp4 --wide
    equal "$tags" 'tv bt2020nc bt2020-10 bt2020 ' 'names of BT.2020'
    names a.mkv --full-range
    equal "$tags" 'pc bt709 bt709 bt709 ' 'names of the full range'
    names a.mkv
    equal "$tags" 'tv bt709 bt709 bt709 ' 'names of SDR'
fi

finish
