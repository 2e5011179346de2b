# A reader of PNGs, for tests:
#
#   python3 png.py size FILE          WIDTHxHEIGHT
#   python3 png.py chunk FILE NAME    the bytes of a chunk as decimal numbers
#   python3 png.py pixel FILE X,Y     R G B, or R G B A
#   python3 png.py ramp FILE          the largest error of a grey ramp from 0 to 1 that is read as sRGB, in 8-bit codes
#
# SPDX-License-Identifier: Apache-2.0
import sys
import zlib


def read(path):
    data, at, chunks, packed = open(path, "rb").read(), 8, {}, b""
    while at < len(data):
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8].decode()
        chunks[kind] = data[at + 8 : at + 8 + size]
        packed += chunks[kind] if kind == "IDAT" else b""
        at += size + 12
    return chunks, zlib.decompress(packed)


def paeth(left, up, corner):
    return min((left, up, corner), key=lambda one: abs(left + up - corner - one))


def rows(chunks, data):
    head = chunks["IHDR"]
    width, height = (int.from_bytes(head[i : i + 4], "big") for i in (0, 4))
    channels, sample = {2: 3, 6: 4}[head[9]], head[8] // 8
    step, before, out = channels * sample, bytes(width * channels * sample), []
    for y in range(height):
        begin = y * (len(before) + 1)
        kind, row = data[begin], bytearray(data[begin + 1 : begin + 1 + len(before)])
        for i, up in enumerate(before):
            left, corner = (row[i - step], before[i - step]) if i >= step else (0, 0)
            row[i] = (row[i] + (0, left, up, (left + up) // 2, paeth(left, up, corner))[kind]) % 256
        before = row
        samples = [int.from_bytes(row[i : i + sample], "big") for i in range(0, len(row), sample)]
        out.append([samples[i : i + channels] for i in range(0, len(samples), channels)])
    return out


def srgb(light):
    return 12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055


def main(what, path, *more):
    chunks, data = read(path)
    if what == "chunk":
        return " ".join(str(byte) for byte in chunks.get(more[0], b""))
    pixels = rows(chunks, data)
    if what == "size":
        return f"{len(pixels[0])}x{len(pixels)}"
    if what == "pixel":
        x, y = more[0].split(",")
        return " ".join(str(sample) for sample in pixels[int(y)][int(x)])
    last, most = len(pixels[0]) - 1, 256 ** (chunks["IHDR"][8] // 8) - 1
    wrong = (abs(sample / most - srgb(x / last)) for x, pixel in enumerate(pixels[0]) for sample in pixel[:3])
    return f"{255 * max(wrong):.3f}"


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
