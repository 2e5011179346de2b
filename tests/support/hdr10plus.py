"""Add HDR10+ (SMPTE ST 2094-40) to an H.265 film in Annex B: each picture gets the brightest light of its scene.

    hdr10plus.py IN OUT NITS[,NITS...]      the last one holds for the rest of the film

SPDX-License-Identifier: Apache-2.0"""
import sys

from dolby import Bits


def message(nits):
    b = Bits()
    for value, count in ((0xB5, 8), (0x3C, 16), (1, 16), (4, 8), (1, 8), (1, 2), (400, 27), (0, 1)):
        b.put(value, count)
    for _ in range(3):
        b.put(round(nits * 10), 17)
    b.put(round(nits), 17)
    for value, count in ((0, 4), (0, 10), (0, 1), (0, 1), (0, 1)):
        b.put(value, count)
    body = b.data()
    return bytes([4, len(body)]) + body + b"\x80"


def unit(nits):
    out, zeros = bytearray(b"\0\0\0\1\x4e\x01"), 0
    for byte in message(nits):
        if zeros >= 2 and byte <= 3:
            out.append(3)
            zeros = 0
        out.append(byte)
        zeros = 0 if byte else zeros + 1
    return bytes(out)


def main():
    with open(sys.argv[1], "rb") as source:
        data = source.read()
    nits = [float(word) for word in sys.argv[3].split(",")]
    starts, at = [], data.find(b"\0\0\1")
    while at >= 0:
        starts.append(at - 1 if at and data[at - 1] == 0 else at)
        at = data.find(b"\0\0\1", at + 3)
    starts.append(len(data))
    out, pictures = bytearray(), 0
    for begin, end in zip(starts, starts[1:]):
        head = data.index(b"\1", begin) + 1
        if data[head] >> 1 & 63 < 32 and data[head + 2] & 0x80:
            out += unit(nits[min(pictures, len(nits) - 1)])
            pictures += 1
        out += data[begin:end]
    with open(sys.argv[2], "wb") as result:
        result.write(out)


main()
