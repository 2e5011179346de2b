# Photographs with gain maps for tests, and the light that they stand for, in double precision.
#
#   python3 gain_map.py jpeg FILE WAY [ORIENTATION]   make a JPEG whose map is named in this way
#   python3 gain_map.py y4m FILE | gray FILE          the SDR picture as 4:4:4 video; the map as a raw frame
#   python3 gain_map.py heic FILE MP4 MAP_MP4         put the frames of two MP4 into a HEIC, as Apple does
#   python3 gain_map.py judge FILE WAY [ORIENTATION]  the largest error of the mapped PNG, in 8-bit codes; it was
#                                                     mapped with clip
#
# WAY: xmp, list (XMP with a list for each channel), iso, colours (ISO, the map in its own colours), p3 (XMP, the
# picture in P3), apple (XMP), heic, notes (Apple's notes in Exif), grey (a grey picture), none (no map), hdr (the map leads to
# SDR), loose (XMP, and no list of the pictures).
#
# The JPEGs have flat blocks, quantised by 1: what is decoded is exact.
#
# SPDX-License-Identifier: Apache-2.0
import math
import struct
import sys

import photo
import png

WIDTH, HEIGHT = photo.WIDTH, photo.HEIGHT
MAP_WIDTH, MAP_HEIGHT = 32, 16
P3 = ("p3", "colours")
HEADROOM = 4.0
LEAST, MOST, GAMMA = (-0.25, -0.5, 0.125), (1.25, 1.5, 1.0), (1.0, 1.25, 0.75)
BASE_OFFSET, HDR_OFFSET = 0.015625, 0.03125


def base(x, y):
    """The SDR picture's codes, flat in blocks of 8 x 8."""
    step = x // 8 + 8 * (y // 8)
    return (8 * step, 4 * step + 30, 120 - 6 * step)


def gain(x, y):
    """The map's codes."""
    return (40 + 60 * (x // 8) + 5 * (y // 8), 250 - 70 * (x // 8), 128)


# --- JPEG ------------------------------------------------------------------------------------------------------------
def segment(marker, data):
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def coded(width, height, channels, value, segments):
    """A JPEG of flat blocks. RGB, or grey, is stored as it is."""
    counts = bytes([0, 0, 0, 0, 16] + [0] * 11)  # 16 codes of five bits
    bits, before = [], [0] * channels
    for y in range(0, height, 8):
        for x in range(0, width, 8):
            for c in range(channels):
                level = 8 * (value(x, y)[c] - 128)
                change, before[c] = level - before[c], level
                size = abs(change).bit_length()
                bits += [f"{size:05b}"]
                bits += [f"{change if change > 0 else change + (1 << size) - 1:0{size}b}"] if size else []
                bits += ["00000"]  # no other coefficient
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    scan = bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8)).replace(b"\xff", b"\xff\0")
    parts = b"".join(struct.pack(">BBB", c + 1, 0x11, 0) for c in range(channels))
    return (
        b"\xff\xd8"
        + segments
        + (segment(0xEE, b"Adobe\0\x64\0\0\0\0\0") if channels == 3 else b"")
        + segment(0xDB, b"\0" + b"\1" * 64)
        + segment(0xC0, struct.pack(">BHHB", 8, height, width, channels) + parts)
        + segment(0xC4, b"\0" + counts + bytes(range(16)))
        + segment(0xC4, b"\x10" + counts + bytes(range(16)))
        + segment(0xDA, bytes([channels]) + b"".join(bytes([c + 1, 0]) for c in range(channels)) + b"\0\x3f\0")
        + scan
        + b"\xff\xd9"
    )


# --- What names the map ----------------------------------------------------------------------------------------------
def xmp(body, attributes=""):
    return (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<rdf:Description xmlns:g="http://ns.adobe.com/hdr-gain-map/1.0/" '
        f'xmlns:HDRGainMap="http://ns.apple.com/HDRGainMap/1.0/" {attributes}>{body}</rdf:Description>'
        "</rdf:RDF></x:xmpmeta>"
    ).encode()


def adobe(way):
    names = {"GainMapMin": LEAST, "GainMapMax": MOST, "Gamma": GAMMA}
    rest = f'g:Version="1.0" g:OffsetSDR="{BASE_OFFSET}" g:OffsetHDR="{HDR_OFFSET}" g:HDRCapacityMin="0" g:HDRCapacityMax="1.5"'
    if way == "list":
        lists = ("".join(f"<rdf:li>{v}</rdf:li>" for v in values) for values in names.values())
        return xmp("".join(f"<g:{n}><rdf:Seq>{v}</rdf:Seq></g:{n}>" for n, v in zip(names, lists)), rest)
    rest += ' g:BaseRenditionIsHDR="True"' if way == "hdr" else ""
    return xmp("", rest + "".join(f' g:{n}="{v[0]}"' for n, v in names.items()))


def apple(headroom):
    body = "<HDRGainMap:HDRGainMapVersion>131072</HDRGainMap:HDRGainMapVersion>"
    return xmp(body + (f"<HDRGainMap:HDRGainMapHeadroom>{HEADROOM}</HDRGainMap:HDRGainMapHeadroom>" if headroom else ""))


def iso(way):
    def fraction(value, kind):
        return struct.pack(">" + kind + "I", round(value * 4096), 4096)

    data = struct.pack(">HHB", 0, 0, 0x80 | (0x40 if way == "iso" else 0)) + fraction(0, "I") + fraction(1.5, "I")
    for c in range(3):
        data += fraction(LEAST[c], "i") + fraction(MOST[c], "i") + fraction(GAMMA[c], "I")
        data += fraction(BASE_OFFSET, "i") + fraction(HDR_OFFSET, "i")
    return b"urn:iso:std:iso:ts:21496:-1\0" + data


def exif(orientation, notes):
    """Entries of the first folder: orientation, and Exif's folder with Apple's notes 33 and 48."""
    first = [struct.pack(">HHIHH", 0x0112, 3, 1, orientation, 0)]
    first += [struct.pack(">HHII", 0x8769, 4, 1, 8 + 2 + 24 + 4)] if notes else []
    data = b"MM\0*\0\0\0\x08" + struct.pack(">H", len(first)) + b"".join(first) + bytes(4)
    if notes:  # 2 stops: 4 times white
        maker = b"Apple iOS\0\0\1MM" + struct.pack(">H", 2)
        maker += struct.pack(">HHII", 33, 10, 1, 44) + struct.pack(">HHII", 48, 10, 1, 52) + bytes(4)
        maker += struct.pack(">iiii", 1, 1, 1, 1)
        data += struct.pack(">HHHII", 1, 0x927C, 7, len(maker), len(data) + 18) + bytes(4) + maker
    return data


def profile_p3():
    """An ICC profile of Display P3: colorants for D50, by Bradford, and sRGB's curve."""
    fixed = lambda *values: b"".join(struct.pack(">i", round(v * 65536)) for v in values)
    colorants = ((0.5151, 0.2412, -0.0011), (0.2920, 0.6922, 0.0419), (0.1571, 0.0666, 0.7841))
    tags = [(n, b"XYZ \0\0\0\0" + fixed(*v)) for n, v in zip((b"rXYZ", b"gXYZ", b"bXYZ"), colorants)]
    curve = b"para\0\0\0\0\0\3\0\0" + fixed(2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)
    tags += [(n, curve) for n in (b"rTRC", b"gTRC", b"bTRC")]
    table, data = struct.pack(">I", len(tags)), b""
    for name, content in tags:
        table += name + struct.pack(">II", 132 + 12 * len(tags) + len(data), len(content))
        data += content
    head = struct.pack(">I", 132 + 12 * len(tags) + len(data)) + b"\0\0\0\0\4\0\0\0mntrRGB XYZ " + bytes(104)
    return segment(0xE2, b"ICC_PROFILE\0\1\1" + head + table + data)


def make_jpeg(path, way, orientation="1"):
    channels = 1 if way in ("apple", "notes", "xmp", "hdr", "grey", "loose") else 3
    names = segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + (apple(way == "apple") if way in ("apple", "notes") else adobe(way)))
    if way in ("iso", "colours"):
        names = segment(0xE2, iso(way)) + (profile_p3() if way == "colours" else b"")
    gains = coded(MAP_WIDTH, MAP_HEIGHT, channels, gain, names)

    def first(size, offset):
        entries = struct.pack(">IIIHH", 0x030000, size, 0, 0, 0) + struct.pack(">IIIHH", 0, len(gains), offset, 0, 0)
        mpf = b"MPF\0MM\0*\0\0\0\x08" + struct.pack(">H", 1) + struct.pack(">HHII", 0xB002, 7, 32, 26) + bytes(4) + entries
        segments = segment(0xE1, b"Exif\0\0" + exif(int(orientation), way == "notes"))
        segments += profile_p3() if way == "p3" else b""
        segments += segment(0xE2, mpf) if way not in ("none", "loose") else b""
        return coded(WIDTH, HEIGHT, 1 if way == "grey" else 3, base, segments)

    size = len(first(0, 0))
    place = first(0, 0).find(b"MPF\0") + 4  # in loose there is none
    with open(path, "wb") as out:
        out.write(first(size, size - place) + (gains if way != "none" else b""))


# --- HEIC ------------------------------------------------------------------------------------------------------------
def make_y4m(path):
    planes = [b"", b"", b""]
    for y in range(HEIGHT):
        for x in range(WIDTH):
            for plane, value in enumerate(photo.to_ycbcr([v / 255 for v in base(x, y)], 8, "full")):
                planes[plane] += bytes([value])
    with open(path, "wb") as out:
        out.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F1:1 Ip A1:1 C444 XCOLORRANGE=FULL\nFRAME\n".encode() + b"".join(planes))


def make_gray(path):
    with open(path, "wb") as out:
        out.write(bytes(gain(x, y)[0] for y in range(MAP_HEIGHT) for x in range(MAP_WIDTH)))


def make_heic(path, mp4, map_mp4):
    box, films = photo.box, [open(name, "rb").read() for name in (mp4, map_mp4)]
    coded_frames = [photo.inside(film, (b"mdat",)) for film in films]
    items = coded_frames + [apple(True)]
    colours = struct.pack(">4sHHHB", b"nclx", 1, 13, 9, 128)
    properties = [box(b"hvcC", photo.inside(films[0], photo.HVCC)), box(b"ispe", struct.pack(">II", WIDTH, HEIGHT), 0)]
    properties += [box(b"colr", colours), box(b"hvcC", photo.inside(films[1], photo.HVCC))]
    properties += [box(b"ispe", struct.pack(">II", MAP_WIDTH, MAP_HEIGHT), 0)]
    properties += [box(b"auxC", b"urn:com:apple:photo:2020:aux:hdrgainmap\0", 0)]
    properties += [box(b"colr", struct.pack(">4sHHHB", b"nclx", 1, 13, 9, 128))]
    uses = struct.pack(">IHB", 2, 1, 3) + bytes((129, 130, 131)) + struct.pack(">HB", 2, 4) + bytes((132, 133, 134, 135))
    names = box(b"infe", struct.pack(">HH4sB", 1, 0, b"hvc1", 0), 2) + box(b"infe", struct.pack(">HH4sB", 2, 0, b"hvc1", 0), 2)
    names += box(b"infe", struct.pack(">HH4s", 3, 0, b"mime") + b"\0application/rdf+xml\0\0", 2)
    links = box(b"auxl", struct.pack(">HHH", 2, 1, 1)) + box(b"cdsc", struct.pack(">HHH", 3, 1, 2))
    first = box(b"ftyp", b"heic\0\0\0\0mif1heic")

    def meta(offset):
        places = struct.pack(">HH", 0x4400, len(items))
        for i, item in enumerate(items):
            places += struct.pack(">HHHII", i + 1, 0, 1, offset, len(item))
            offset += len(item)
        content = box(b"hdlr", b"\0\0\0\0pict" + bytes(13), 0) + box(b"pitm", struct.pack(">H", 1), 0)
        content += box(b"iloc", places, 0) + box(b"iinf", struct.pack(">H", len(items)) + names, 0) + box(b"iref", links, 0)
        content += box(b"iprp", box(b"ipco", b"".join(properties)) + box(b"ipma", uses, 0))
        return box(b"meta", content, 0)

    with open(path, "wb") as out:
        out.write(first + meta(len(first) + len(meta(0)) + 8) + box(b"mdat", b"".join(items)))


# --- The judge -------------------------------------------------------------------------------------------------------
def between(at, side, samples):
    exact = min(max((at + 0.5) * samples / side - 0.5, 0), samples - 1)
    low = int(exact)
    return low, min(low + 1, samples - 1), exact - low


def map_at(x, y, c):
    x0, x1, right = between(x, WIDTH, MAP_WIDTH)
    y0, y1, down = between(y, HEIGHT, MAP_HEIGHT)
    rows = [gain(x0, row)[c] + (gain(x1, row)[c] - gain(x0, row)[c]) * right for row in (y0, y1)]
    return (rows[0] + (rows[1] - rows[0]) * down) / 255


def srgb_light(code):
    return code / 12.92 if code <= 0.04045 else ((code + 0.055) / 1.055) ** 2.4


def light(x, y, way):
    codes = base(x, y)
    rgb = [srgb_light(v / 255) for v in (codes[:1] * 3 if way == "grey" else codes)]
    to_bt709 = photo.to_xyz("bt709")
    if way == "heic":
        rgb = photo.from_ycbcr(photo.to_ycbcr([v / 255 for v in codes], 8, "full"), 8, "full")
        rgb = [srgb_light(round(255 * v) / 255) for v in rgb]
    if way == "colours":
        rgb = photo.solve(photo.to_xyz("p3"), photo.times(to_bt709, rgb))
    for c in range(3):
        if way in ("apple", "notes", "heic"):
            code = map_at(x, y, 0)
            share = code / 4.5 if code < 0.081 else ((code + 0.099) / 1.099) ** (1 / 0.45)
            rgb[c] *= 1 + (HEADROOM - 1) * share
            continue
        one = 0 if way in ("xmp", "grey", "p3", "loose") else c  # attributes name one number for all channels
        code = map_at(x, y, 0 if way in ("xmp", "grey", "loose") else c)
        stops = LEAST[one] + (MOST[one] - LEAST[one]) * code ** (1 / GAMMA[one])
        rgb[c] = (rgb[c] + BASE_OFFSET) * 2**stops - HDR_OFFSET
    return photo.solve(to_bt709, photo.times(photo.to_xyz("p3"), rgb)) if way in P3 else rgb


def judge(path, way, orientation="1"):
    rows, worst, turn = png.rows(*png.read(path)), 0, int(orientation)
    height, width = len(rows), len(rows[0])
    assert (height, width) == ((WIDTH, HEIGHT) if turn >= 5 else (HEIGHT, WIDTH)), (width, height)
    for y, row in enumerate(rows):
        for x, pixel in enumerate(row):
            expected = light(*photo.stored(x, y, width, height, turn), way)
            for value, target in zip(pixel, expected):
                assert math.isfinite(target)
                worst = max(worst, abs(value / 257 - 255 * png.srgb(min(max(target, 0), 1))))
    print(f"{worst:.3f}")


if __name__ == "__main__":
    {"jpeg": make_jpeg, "y4m": make_y4m, "gray": make_gray, "heic": make_heic, "judge": judge}[sys.argv[1]](*sys.argv[2:])
