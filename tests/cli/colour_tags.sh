#!/bin/sh
# Which colours are used if containers and frames name them. Any primaries and matrix give the colours that a
# computation in double precision gives.
#   sh colour_tags.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/tonemap.sh"
need ffmpeg python3
need_device
need_libavformat

ff() { ffmpeg -nostdin -v error -y "$@"; }
make() { expect_status 0 "$*" ff "$@"; } # OPTIONS...: OUTPUT is the last one
has_encoder() { ff -f lavfi -i "color=gray:s=320x180,format=$2" -frames:v 1 -c:v $1 -f null - 2>/dev/null; }

# video NAME: the line about the input.
video() {
    run 0 "colours of $1" "$1" -o null:
    grep '^video' "$work/out"
}
# says NAME WORDS: the line about the input has these words.
says() {
    video "$1" >line
    contains line "$2"
}

hlg='-color_primaries bt2020 -color_trc arib-std-b67 -colorspace bt2020nc'
pq='-color_primaries bt2020 -color_trc smpte2084 -colorspace bt2020nc'

# --- Only the container names them ---

# untagged NAME FORMAT CODEC...: a film whose frames name nothing, in a container that names nothing.
untagged() {
    name=$1 format=$2
    shift 2
    make -f lavfi -i "color=gray:s=320x180:r=24,format=$format" -frames:v 2 -c:v "$@" $name.nut
}

# named NAME CONTAINER...: each container alone says HLG.
named() {
    name=$1
    shift
    for container; do
        make -i $name.nut -c copy $hlg $name.$container
        says $name.$container '; HLG, BT.2020, limited range'
        refute "a warning about $name.$container" grep -q . "$work/err"
    done
}

untagged prores yuv422p10le prores_ks -profile:v 3
named prores mov mkv
untagged dnxhr yuv422p10le dnxhd -profile:v dnxhr_hqx
named dnxhr mov mkv
untagged ffv1 yuv420p10le ffv1
named ffv1 mkv
for codec in libx265 libx264 libvpx-vp9 libaom-av1; do
    case $codec in
    libx265) options='-preset ultrafast -x265-params log-level=none' ;;
    libx264) options='-preset ultrafast' ;;
    libaom-av1) options='-cpu-used 8' ;;
    *) options='-deadline realtime -cpu-used 8' ;;
    esac
    has_encoder $codec yuv420p10le || {
        leave_out "$codec" 'ffmpeg cannot encode 10 bits with it'
        continue
    }
    untagged $codec yuv420p10le $codec $options
    named $codec mp4 mkv

    # Decoders say "limited" also if the bitstream does not name the range.
    make -i $codec.nut -c copy $pq -color_range pc $codec.full.mkv
    says $codec.full.mkv '; PQ, BT.2020, full range'
done

# DNxHR frames always say BT.709's matrix, which is wrong if the container names other colours.
make -f lavfi -i "testsrc2=s=320x180:r=24,format=yuv422p10le" -frames:v 2 -c:v dnxhd -profile:v dnxhr_hqx $pq dnxhr.m.mkv
make -i dnxhr.m.mkv -c copy -color_primaries bt2020 -color_trc smpte2084 -colorspace unknown dnxhr.p.mkv
for film in dnxhr.m.mkv dnxhr.p.mkv; do
    run 0 'the matrix of BT.2020' $film -o null: --hash --primaries bt2020
    expected=$(hash_of)
    run 0 "the matrix of $film" $film -o null: --hash
    equal "$(hash_of)" "$expected" "the hash of $film"
done

# --- Both name them ---

frames=prores_metadata=color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc
make -i prores.nut -c copy -bsf:v $frames both.mov
make -i both.mov -c copy $hlg both.mkv
says both.mkv '; PQ, BT.2020'
contains err 'warning: both.mkv: the frames name transfer smpte2084 instead of arib-std-b67 in the container'
counts 1 err .
make -i both.mov -c copy $pq same.mkv
says same.mkv '; PQ, BT.2020'
refute 'a warning about equal colours' grep -q . "$work/err"

# --- No colours at all, and unknown ones ---

says ffv1.nut '; PQ \(assumed\), BT.2020'
contains err 'warning: ffv1.nut: it names no transfer curve'
counts 1 err .
if has_encoder libx264 yuv420p10le; then
    make -f lavfi -i "color=gray:s=720x480:r=24,format=yuv420p10le" -frames:v 2 -c:v libx264 -preset ultrafast dvd.mkv
    denies 1 'dvd.mkv: it names no transfer curve, and video of this size and codec is usually SDR' 'a small H.264 film' \
        dvd.mkv -o null:
fi
make -i ffv1.nut -c copy -color_trc smpte2084 -color_primaries film film.mkv
denies 1 'film.mkv: its primaries \(film\) are not supported' 'unknown primaries' film.mkv -o null:
run 0 'other primaries than the unknown ones' film.mkv -o null: --primaries p3-d65
contains out '^video.*; PQ, P3-D65'

# --- The colours themselves ---

# colours.py makes a film of grey and of 8 hues in 3 saturations, at 4 luminances up to SDR white. It also judges the
# picture. It computes the light from the codes, and the difference by Recommendation ITU-R BT.2124.
cat >colours.py <<'END'
import math, struct, sys

mode, primaries, matrix, transfer, name = sys.argv[1:]
D65 = (0.3127, 0.3290)
XY = {
    "bt2020": ((0.708, 0.292), (0.170, 0.797), (0.131, 0.046), D65),
    "bt709": ((0.640, 0.330), (0.300, 0.600), (0.150, 0.060), D65),
    "smpte432": ((0.680, 0.320), (0.265, 0.690), (0.150, 0.060), D65),
    "smpte431": ((0.680, 0.320), (0.265, 0.690), (0.150, 0.060), (0.314, 0.351)),
    "smpte170m": ((0.630, 0.340), (0.310, 0.595), (0.155, 0.070), D65),
    "bt470bg": ((0.640, 0.330), (0.290, 0.600), (0.150, 0.060), D65),
}
LUMA = {"bt2020nc": (0.2627, 0.6780, 0.0593), "bt709": (0.2126, 0.7152, 0.0722)}
LUMA["smpte170m"] = LUMA["bt470bg"] = (0.299, 0.587, 0.114)
SIZE, WHITE = 8, 203  # pixels of a patch; cd/m2


def apply(m, v):
    return [sum(a * b for a, b in zip(row, v)) for row in m]


def product(a, b):
    return [[sum(a[i][k] * b[k][j] for k in range(3)) for j in range(3)] for i in range(3)]


def inverse(m):
    c = [[m[(j + 1) % 3][(i + 1) % 3] * m[(j + 2) % 3][(i + 2) % 3] - m[(j + 1) % 3][(i + 2) % 3] *
          m[(j + 2) % 3][(i + 1) % 3] for j in range(3)] for i in range(3)]
    determinant = sum(m[0][j] * c[j][0] for j in range(3))
    return [[value / determinant for value in row] for row in c]


def xyz(xy):
    return [xy[0] / xy[1], 1, (1 - xy[0] - xy[1]) / xy[1]]


def to_xyz(xy):
    columns = [[xyz(xy[j])[i] for j in range(3)] for i in range(3)]
    scale = apply(inverse(columns), xyz(xy[3]))
    return [[columns[i][j] * scale[j] for j in range(3)] for i in range(3)]


def converter(source, target):
    bradford = [[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]]
    old, new = apply(bradford, xyz(XY[source][3])), apply(bradford, xyz(XY[target][3]))
    adapt = product(inverse(bradford), [[v * new[i] / old[i] for v in bradford[i]] for i in range(3)])
    return product(inverse(to_xyz(XY[target])), product(adapt, to_xyz(XY[source])))


def pq_signal(nits):
    y = (max(nits, 0) / 10000) ** (2610 / 16384)
    return ((3424 / 4096 + 2413 / 128 * y) / (1 + 2392 / 128 * y)) ** (2523 / 32)


def pq_nits(signal):
    y = max(signal, 0) ** (32 / 2523)
    return 10000 * (max(y - 3424 / 4096, 0) / (2413 / 128 - 2392 / 128 * y)) ** (16384 / 2610)


A = 0.17883277
B, C = 1 - 4 * A, 0.5 - A * math.log(4 * A)


def nits_of(signals):
    if transfer == "smpte2084":
        return [pq_nits(s) for s in signals]
    scene = [max(s, 0) ** 2 / 3 if s <= 0.5 else (math.exp((s - C) / A) + B) / 12 for s in signals]
    luminance = sum(k * v for k, v in zip(to_xyz(XY[primaries])[1], scene))
    return [1000 * luminance ** 0.2 * v if luminance > 0 else 0 for v in scene]


def signals_of(nits):  # need not be exact: the codes decide
    if transfer == "smpte2084":
        return [pq_signal(v) for v in nits]
    return [min(math.sqrt(3 * v), 1) if v <= 1 / 12 else A * math.log(12 * v - B) + C for v in (n / 1000 for n in nits)]


def patches():
    for level in (20, 60, 120, 200):
        yield [level, level, level]
        for hue in range(8):
            for saturation in (0.3, 0.6, 0.9):
                angle = [hue / 8 * 6, (hue / 8 * 6 + 4) % 6, (hue / 8 * 6 + 2) % 6]
                yield [level * (1 - saturation * max(0, min(min(a, 4 - a), 1))) for a in angle]


def codes(nits):
    r, g, b = signals_of(nits)
    kr, kg, kb = LUMA[matrix]
    y = kr * r + kg * g + kb * b
    return [round(256 + 3504 * y), round(2048 + 3584 * (b - y) / (2 - 2 * kb)), round(2048 + 3584 * (r - y) / (2 - 2 * kr))]


def light(code):  # of BT.709, 1 = SDR white
    kr, kg, kb = LUMA[matrix]
    y, u, v = (code[0] - 256) / 3504, (code[1] - 2048) / 3584, (code[2] - 2048) / 3584
    r, b = y + (2 - 2 * kr) * v, y + (2 - 2 * kb) * u
    rgb = nits_of([r, (y - kr * r - kb * b) / kg, b])
    return [max(0, min(1, v / WHITE)) for v in apply(converter(primaries, "bt709"), rgb)]


def srgb(code):  # of a PNG
    return code / 12.92 if code <= 0.04045 else ((code + 0.055) / 1.055) ** 2.4


def itp(rgb):
    r, g, b = apply(converter("bt709", "bt2020"), [WHITE * v for v in rgb])
    l = pq_signal((1688 * r + 2146 * g + 262 * b) / 4096)
    m = pq_signal((683 * r + 2951 * g + 462 * b) / 4096)
    s = pq_signal((99 * r + 309 * g + 3688 * b) / 4096)
    return (l + m) / 2, (6610 * l - 13613 * m + 7003 * s) / 8192, (17933 * l - 17390 * m - 543 * s) / 4096


films = [codes(patch) for patch in patches()]
if mode == "make":
    with open(name, "wb") as file:
        for plane in range(3):
            row = b"".join(struct.pack("<H", film[plane]) * SIZE for film in films)
            file.write(row * SIZE)
else:
    with open(name, "rb") as file:
        words = struct.unpack("<%dH" % (3 * SIZE * SIZE * len(films)), file.read())
    errors = []
    for i, film in enumerate(films):
        at = 3 * (SIZE * len(films) * (SIZE // 2) + i * SIZE + SIZE // 2)
        got = [srgb(v / 65535) for v in words[at:at + 3]]
        errors.append(720 * math.dist(itp(got), itp(light(film))))
    print("%.3f" % sorted(errors)[math.ceil(0.99 * len(errors)) - 1])
END

# maps PRIMARIES MATRIX TRANSFER: 99 % of the patches differ by at most 1, which is hardly visible.
maps() {
    expect_status 0 "making $*" python3 colours.py make $1 $2 $3 film.yuv
    make -f rawvideo -pix_fmt yuv444p12le -s 800x8 -i film.yuv \
        -vf setparams=color_primaries=$1:color_trc=$3:colorspace=$2:range=tv \
        -color_primaries $1 -color_trc $3 -colorspace $2 -color_range tv -c:v ffv1 film.mkv
    run 0 "$*" film.mkv -o film.png --depth 16 --operator clip --peak 203 --desat 0 --gamut clip --dither none
    make -i film.png -f rawvideo -pix_fmt rgb48le film.rgb
    error=$(python3 colours.py judge $1 $2 $3 film.rgb)
    check "$*: the colours differ by $error" awk -v a="$error" 'BEGIN { exit !(a != "" && a <= 1) }'
}
for primaries in bt2020 bt709 smpte432 smpte431 smpte170m bt470bg; do
    maps $primaries bt2020nc smpte2084
    maps $primaries bt709 arib-std-b67
done
maps bt2020 bt709 smpte2084
maps smpte432 smpte170m smpte2084
maps smpte170m smpte170m arib-std-b67
maps bt470bg bt470bg smpte2084

# --- Samples that are not supported ---

# The command that the message gives keeps the colours.
python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(64)) * 3 * 2 * 48)' >packed
make -f rawvideo -pix_fmt rgb48le -s 64x48 -i packed -c copy packed.nut
denies 1 'packed.nut: unsupported sample format rgb48le; convert it first \(ffmpeg .* -pix_fmt gbrp12le OUT\)' \
    'packed colours' packed.nut -o null:
finish
