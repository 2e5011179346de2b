# HDR pictures that cox-tonemap writes, in double precision.
#
#   python3 hdr_picture.py make FILE          a PFM of smooth colours, up to 8 times white
#   python3 hdr_picture.py jpeg FILE          check the places and numbers of a JPEG with a gain map, and print the size of
#                                             the map and its headroom in stops; by the standards, not by our reader
#   python3 hdr_picture.py hide FILE NAME     remove NAME, as in "urn:iso", from the names of segments
#   python3 hdr_picture.py back FILE          relative errors of the light, 50 % and 99 %: FILE is a PNG with 1/16 of it
#   python3 hdr_picture.py codes FILE pq|wide the largest error of a PNG, in codes of 8 bits
#
# SPDX-License-Identifier: Apache-2.0
import math
import re
import struct
import sys

import photo
import png

WIDTH, HEIGHT = 97, 64  # an odd side, which no map divides


def light(x, y):
    level = 2.0 ** (8 * x / (WIDTH - 1) - 5)
    turn = 2 * math.pi * y / HEIGHT
    return [struct.unpack("f", struct.pack("f", level * (0.6 + 0.4 * math.cos(turn + c * 2.1))))[0] for c in range(3)]


def make(path):
    with open(path, "wb") as out:
        out.write(f"PF\n{WIDTH} {HEIGHT}\n-1\n".encode())
        for y in reversed(range(HEIGHT)):
            for x in range(WIDTH):
                out.write(struct.pack("<3f", *light(x, y)))


# --- JPEG ------------------------------------------------------------------------------------------------------------
def segments(data):
    """(marker, place of the content, content) up to the coded pixels."""
    assert data[:2] == b"\xff\xd8"
    at, found = 2, []
    while data[at + 1] != 0xDA:
        assert data[at] == 0xFF, at
        size = int.from_bytes(data[at + 2 : at + 4], "big")
        found.append((data[at + 1], at + 4, data[at + 4 : at + 2 + size]))
        at += 2 + size
    return found


def named(data, marker, name):
    (one,) = [(at + len(name), rest[len(name) :]) for kind, at, rest in segments(data) if kind == marker and rest[: len(name)] == name]
    return one


def xmp(data):
    return named(data, 0xE1, b"http://ns.adobe.com/xap/1.0/\0")[1].decode()


def iso(data):
    return named(data, 0xE2, b"urn:iso:std:iso:ts:21496:-1\0")[1]


def size_of(data):
    for kind, _, rest in segments(data):
        if kind in (0xC0, 0xC2):
            return struct.unpack(">HH", rest[1:5])[::-1]


def parts(data):
    """The pictures by CIPA DC-007."""
    place, mpf = named(data, 0xE2, b"MPF\0")
    assert mpf[:8] == b"MM\0*\0\0\0\x08"
    tags = [struct.unpack(">HHII", mpf[10 + 12 * i : 22 + 12 * i]) for i in range(struct.unpack(">H", mpf[8:10])[0])]
    assert tags[0] == (0xB000, 7, 4, int.from_bytes(b"0100", "big")) and tags[1] == (0xB001, 4, 1, 2)
    assert tags[2][:3] == (0xB002, 7, 32)
    entries = [struct.unpack(">IIIHH", mpf[tags[2][3] + 16 * i :][:16]) for i in range(2)]
    assert entries[0][0] == 0x030000 and entries[0][2] == 0 and entries[1][0] == 0, entries
    return data[: entries[0][1]], data[entries[1][2] + place :][: entries[1][1]]


def jpeg(path):
    data = open(path, "rb").read()
    first, second = parts(data)
    assert data == first + second and first[-2:] == second[-2:] == b"\xff\xd9"
    assert iso(first) == bytes(4), "the version alone"
    text = xmp(first)
    assert re.findall(r'Item:Semantic="(\w+)"', text) == ["Primary", "GainMap"]
    assert re.findall(r'Item:Length="(\d+)"', text) == [str(len(second))]
    assert 'hdrgm:Version="1.0"' in text

    text, numbers = xmp(second), iso(second)
    assert numbers[:5] == bytes(4) + b"\xc0" and len(numbers) == 5 + 16 + 3 * 40
    values = [over / under for over, under in struct.iter_unpack(">iI", numbers[5:])]
    lists = {n: [float(v) for v in re.findall("<rdf:li>([^<]*)<", rest)] for n, rest in re.findall(r"<hdrgm:(\w+)>(.*?)</hdrgm:", text)}
    flat = {name: value for name, value in re.findall(r'hdrgm:(\w+)="([^"]*)"', text)}
    assert values[0] == float(flat["HDRCapacityMin"]) == 0 and values[1] == float(flat["HDRCapacityMax"])
    assert flat["BaseRenditionIsHDR"] == "False" and float(flat["OffsetSDR"]) == float(flat["OffsetHDR"]) == 1 / 64
    for c in range(3):
        assert values[2 + 5 * c :][:5] == [lists["GainMapMin"][c], lists["GainMapMax"][c], 1, 1 / 64, 1 / 64]
    print("%d x %d" % size_of(second), "%.2f" % values[1])


def hide(path, name):
    data = open(path, "rb").read()
    with open(path, "wb") as out:
        out.write(data.replace(name.encode() + b":", b"x" * len(name) + b":").replace(name.encode() + b"\0", b"x" * len(name) + b"\0"))


# --- PNG -------------------------------------------------------------------------------------------------------------
def back(path):
    rows, errors = png.rows(*png.read(path)), []
    for y, row in enumerate(rows):
        for x, pixel in enumerate(row):
            for value, target in zip(pixel, light(x, y)):
                code = value / 65535
                found = 16 * (code / 12.92 if code <= 0.04045 else ((code + 0.055) / 1.055) ** 2.4)
                errors.append(abs(found - target) / target)
    errors.sort()
    assert len(errors) == 3 * WIDTH * HEIGHT
    print("%.4f %.4f" % (errors[len(errors) // 2], errors[len(errors) * 99 // 100]))


def pq(nits):
    power = (nits / 10000) ** (2610 / 16384)
    return ((3424 / 4096 + 2413 / 128 * power) / (1 + 2392 / 128 * power)) ** (2523 / 32)


def codes(path, curve):
    chunks, data = png.read(path)
    assert list(chunks["cICP"]) == [9, 16 if curve == "pq" else 13, 0, 1] and "sRGB" not in chunks
    most, worst = 256 ** (chunks["IHDR"][8] // 8) - 1, 0
    for y, row in enumerate(png.rows(chunks, data)):
        for x, pixel in enumerate(row):
            wide = photo.solve(photo.to_xyz("bt2020"), photo.times(photo.to_xyz("bt709"), light(x, y)))
            for value, target in zip(pixel, wide):
                code = pq(203 * target) if curve == "pq" else png.srgb(min(target, 1))
                worst = max(worst, abs(255 * value / most - 255 * code))
    print("%.3f" % worst)


if __name__ == "__main__":
    {"make": make, "jpeg": jpeg, "hide": hide, "back": back, "codes": codes}[sys.argv[1]](*sys.argv[2:])
