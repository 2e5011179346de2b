# Photographs for tests: a ramp of grey and patches of colour, and what becomes of them, in double precision.
#
#   python3 photo.py png FILE CURVE PRIMARIES BITS KIND [full|limited]   make a PNG with cICP; KIND: rgb, rgba, grey
#   python3 photo.py y4m FILE CURVE PRIMARIES BITS full|limited          make 4:4:4 video, coded with BT.2020's matrix
#   python3 photo.py pfm FILE linear PRIMARIES BITS                      make a PFM
#   python3 photo.py heic FILE CURVE PRIMARIES BITS full|limited MP4 [ORIENTATION]   put the frame of an MP4 into a HEIC
#   python3 photo.py judge FILE CURVE PRIMARIES BITS KIND [ORIENTATION]  the largest error of the mapped PNG, in 8-bit
#                                          codes; it was mapped with clip. KIND: as above, or full or limited for y4m
#
# CURVE is pq, hlg or linear; PRIMARIES bt709, bt2020 or p3.
#
# SPDX-License-Identifier: Apache-2.0
import functools
import math
import struct
import sys
import zlib

import png

WIDTH, HEIGHT = 64, 16
NUMBERS = {"pq": 16, "hlg": 18, "linear": 8, "srgb": 13, "bt709": 1, "bt2020": 9, "p3": 12}
XY = {
    "bt709": ((0.64, 0.33), (0.30, 0.60), (0.15, 0.06)),
    "bt2020": ((0.708, 0.292), (0.170, 0.797), (0.131, 0.046)),
    "p3": ((0.680, 0.320), (0.265, 0.690), (0.150, 0.060)),
}
HVCC = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", b"hvc1", b"hvcC")
WHITE = (0.3127, 0.3290)
# Codes of the patches, as shares of the range. Below 203 cd/m2 in PQ and HLG, and inside BT.709.
PATCHES = ((0.50, 0.40, 0.40), (0.40, 0.50, 0.40), (0.40, 0.40, 0.50), (0.3, 0.35, 0.40), (0.52, 0.5, 0.45))


# --- The picture -----------------------------------------------------------------------------------------------------
def code(x, y, bits):
    """R'G'B' at a place, in codes of full range."""
    most = (1 << bits) - 1
    if y < HEIGHT // 2:
        share = 0.58 * x / (WIDTH - 1)
        rgb = (share, share, share)
    else:
        rgb = PATCHES[x * len(PATCHES) // WIDTH]
    return [round(value * most) for value in rgb]


def alpha(x, y):
    return 1 if x < WIDTH // 2 else y / (HEIGHT - 1)


# --- Its light -------------------------------------------------------------------------------------------------------
def solve(m, v):
    def det(a):
        return sum(a[0][i] * (a[1][(i + 1) % 3] * a[2][(i + 2) % 3] - a[1][(i + 2) % 3] * a[2][(i + 1) % 3]) for i in range(3))

    columns = [[[v[r] if c == k else m[r][c] for c in range(3)] for r in range(3)] for k in range(3)]
    return [det(one) / det(m) for one in columns]


@functools.lru_cache(None)
def to_xyz(primaries):
    columns = [(x, y, 1 - x - y) for x, y in XY[primaries]]
    m = [[columns[c][r] for c in range(3)] for r in range(3)]
    white = [WHITE[0] / WHITE[1], 1, (1 - WHITE[0] - WHITE[1]) / WHITE[1]]
    scale = solve(m, white)
    return [[m[r][c] * scale[c] for c in range(3)] for r in range(3)]


def times(m, v):
    return [sum(m[r][c] * v[c] for c in range(3)) for r in range(3)]


def light(rgb, curve, primaries):
    """R'G'B' from 0 to 1, to linear BT.709 with 1 = 203 cd/m2."""
    if curve == "pq":
        m1, m2, c1, c2, c3 = 2610 / 16384, 2523 / 32, 3424 / 4096, 2413 / 128, 2392 / 128
        power = [value ** (1 / m2) for value in rgb]
        out = [10000 / 203 * (max(p - c1, 0) / (c2 - c3 * p)) ** (1 / m1) for p in power]
    elif curve == "hlg":
        a = 0.17883277
        b, c = 1 - 4 * a, 0.5 - a * math.log(4 * a)
        scene = [v * v / 3 if v <= 0.5 else (math.exp((v - c) / a) + b) / 12 for v in rgb]
        luminance = sum(w * v for w, v in zip(to_xyz(primaries)[1], scene))
        out = [1000 / 203 * luminance**0.2 * v if luminance else 0 for v in scene]
    else:
        out = list(rgb)
    return solve(to_xyz("bt709"), times(to_xyz(primaries), out))


# --- Files -----------------------------------------------------------------------------------------------------------
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def make_png(path, curve, primaries, bits, kind, span="full"):
    most, rows, full = (1 << bits) - 1, b"", span == "full"
    for y in range(HEIGHT):
        row = b"\0"
        for x in range(WIDTH):
            values = code(x, y, bits)
            if not full:
                values = [round((16 + 219 * v / most) * (1 << bits - 8)) for v in values]
            values = values[:1] if kind == "grey" else values
            values += [round(alpha(x, y) * most)] if kind == "rgba" else []
            row += b"".join(struct.pack(">H" if bits == 16 else ">B", v) for v in values)
        rows += row
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, bits, {"grey": 0, "rgb": 2, "rgba": 6}[kind], 0, 0, 0)
    cicp = chunk(b"cICP", bytes([NUMBERS[primaries], NUMBERS[curve], 0, full])) if curve != "srgb" else b""
    with open(path, "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + cicp)
        out.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def make_pfm(path, _curve, _primaries, bits):
    most = (1 << bits) - 1
    rows = (code(x, y, bits) for y in reversed(range(HEIGHT)) for x in range(WIDTH))
    with open(path, "wb") as out:
        out.write(f"PF\n{WIDTH} {HEIGHT}\n-1.0\n".encode())
        out.write(b"".join(struct.pack("<3f", *(v / most for v in rgb)) for rgb in rows))


def spans(bits, span):
    """Black and white of the luma; middle and size of the chroma."""
    unit, most = 1 << bits - 8, (1 << bits) - 1
    return (0, most, 128 * unit, most) if span == "full" else (16 * unit, 219 * unit, 128 * unit, 224 * unit)


def to_ycbcr(rgb, bits, span):
    black, white, middle, size = spans(bits, span)
    luma = 0.2627 * rgb[0] + 0.6780 * rgb[1] + 0.0593 * rgb[2]
    chroma = ((rgb[2] - luma) / 1.8814, (rgb[0] - luma) / 1.4746)
    return [round(black + white * luma)] + [round(middle + size * c) for c in chroma]


def from_ycbcr(values, bits, span):
    black, white, middle, size = spans(bits, span)
    luma, cb, cr = (values[0] - black) / white, (values[1] - middle) / size, (values[2] - middle) / size
    red, blue = luma + 1.4746 * cr, luma + 1.8814 * cb
    return [min(max(v, 0), 1) for v in (red, (luma - 0.2627 * red - 0.0593 * blue) / 0.6780, blue)]


def make_y4m(path, _curve, _primaries, bits, span):
    planes = [b"", b"", b""]
    for y in range(HEIGHT):
        for x in range(WIDTH):
            rgb = [v / ((1 << bits) - 1) for v in code(x, y, bits)]
            for plane, value in enumerate(to_ycbcr(rgb, bits, span)):
                planes[plane] += struct.pack("<H", value)
    with open(path, "wb") as out:
        out.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F1:1 Ip A1:1 C444p{bits} XCOLORRANGE={span.upper()}\nFRAME\n".encode())
        out.write(b"".join(planes))


def box(name, data, version=None):
    data = data if version is None else struct.pack(">I", version << 24) + data
    return struct.pack(">I4s", len(data) + 8, name) + data


def inside(data, path):
    """The data of a box at a path of boxes in an MP4."""
    skip = {b"stsd": 8, b"hvc1": 78}
    for name in path:
        at = 0
        while data[at + 4 : at + 8] != name:
            assert len(data) - at >= 8, f"no box {name}"
            at += max(int.from_bytes(data[at : at + 4], "big"), 8)
        data = data[at + 8 + skip.get(name, 0) : at + int.from_bytes(data[at : at + 4], "big")]
    return data


def make_heic(path, curve, primaries, _bits, span, mp4, orientation="1"):
    film = open(mp4, "rb").read()
    hvcc = inside(film, HVCC)
    coded = inside(film, (b"mdat",))
    colours = struct.pack(">4sHHHB", b"nclx", NUMBERS[primaries], NUMBERS[curve], 9, 128 * (span == "full"))
    turn, mirror = {1: (0, -1), 2: (0, 1), 3: (2, -1), 4: (0, 0), 5: (1, 0), 6: (3, -1), 7: (1, 1), 8: (1, -1)}[int(orientation)]
    properties = [box(b"hvcC", hvcc), box(b"ispe", struct.pack(">II", WIDTH, HEIGHT), 0), box(b"colr", colours)]
    properties += [box(b"irot", bytes([turn]))] if turn else []
    properties += [box(b"imir", bytes([mirror]))] if mirror >= 0 else []
    uses = struct.pack(">IHB", 1, 1, len(properties)) + bytes(128 + i + 1 for i in range(len(properties)))
    first = box(b"ftyp", b"heic\0\0\0\0mif1heic")

    def meta(offset):
        return box(
            b"meta",
            box(b"hdlr", b"\0\0\0\0pict" + bytes(13), 0)
            + box(b"pitm", struct.pack(">H", 1), 0)
            + box(b"iloc", struct.pack(">HHHHHII", 0x4400, 1, 1, 0, 1, offset, len(coded)), 0)
            + box(b"iinf", struct.pack(">H", 1) + box(b"infe", struct.pack(">HH4sB", 1, 0, b"hvc1", 0), 2), 0)
            + box(b"iprp", box(b"ipco", b"".join(properties)) + box(b"ipma", uses, 0)),
            0,
        )

    with open(path, "wb") as out:
        out.write(first + meta(len(first) + len(meta(0)) + 8) + box(b"mdat", coded))


# --- The judge -------------------------------------------------------------------------------------------------------
def stored(x, y, width, height, orientation):
    """The place in the file of a pixel of the upright picture."""
    mirrored_x, mirrored_y = orientation in (2, 3, 6, 7), orientation in (3, 4, 7, 8)
    x, y = (width - 1 - x if mirrored_x else x), (height - 1 - y if mirrored_y else y)
    return (y, x) if orientation >= 5 else (x, y)


def judge(path, curve, primaries, bits, kind, orientation=1):
    rows, worst = png.rows(*png.read(path)), 0
    height, width = len(rows), len(rows[0])
    assert (height, width) == ((WIDTH, HEIGHT) if orientation >= 5 else (HEIGHT, WIDTH)), (width, height)
    for y, row in enumerate(rows):
        for x, pixel in enumerate(row):
            at = stored(x, y, width, height, orientation)
            coded = [value / ((1 << bits) - 1) for value in code(*at, bits)]
            if kind in ("full", "limited"):
                coded = from_ycbcr(to_ycbcr(coded, bits, kind), bits, kind)
            coded = coded[:1] * 3 if kind == "grey" else coded
            share = round(alpha(*at) * ((1 << bits) - 1)) / ((1 << bits) - 1) if kind == "rgba" else 1
            for value, expected in zip(pixel, light(coded, curve, primaries)):
                worst = max(worst, abs(value / 257 - 255 * png.srgb(min(max(expected * share, 0), 1))))
    return f"{worst:.3f}"


def main(what, path, curve, primaries, bits, *more):
    if what == "judge":
        print(judge(path, curve, primaries, int(bits), *more[:1], *map(int, more[1:])))
    else:
        {"png": make_png, "y4m": make_y4m, "pfm": make_pfm, "heic": make_heic}[what](path, curve, primaries, int(bits), *more)


if __name__ == "__main__":
    main(*sys.argv[1:])
