"""Add HDR10+ (SMPTE ST 2094-40) to an H.265 film in Annex B: each picture gets the brightest light of its scene.

    hdr10plus.py IN OUT NITS[,NITS...] [CURVE]      the last one holds for the rest of the film
    hdr10plus.py expect CODES NITS CURVE            the codes of 10 bits that greys of 10-bit PQ become in SDR

CURVE is TARGET_NITS,KNEE_X,KNEE_Y,ANCHOR...; knees of 4095, anchors of 1023.

SPDX-License-Identifier: Apache-2.0"""
import sys
from math import comb

from dolby import Bits


def message(nits, curve):
    b = Bits()
    target = curve[0] if curve else 400
    for value, count in ((0xB5, 8), (0x3C, 16), (1, 16), (4, 8), (1, 8), (1, 2), (target, 27), (0, 1)):
        b.put(value, count)
    for _ in range(3):
        b.put(round(nits * 10), 17)
    b.put(round(nits), 17)
    for value, count in ((0, 4), (0, 10), (0, 1), (1 if curve else 0, 1)):
        b.put(value, count)
    if curve:
        for value, count in ((curve[1], 12), (curve[2], 12), (len(curve) - 3, 4)):
            b.put(value, count)
        for anchor in curve[3:]:
            b.put(anchor, 10)
    b.put(0, 1)
    body = b.data()
    return bytes([4, len(body)]) + body + b"\x80"


def unit(nits, curve):
    out, zeros = bytearray(b"\0\0\0\1\x4e\x01"), 0
    for byte in message(nits, curve):
        if zeros >= 2 and byte <= 3:
            out.append(3)
            zeros = 0
        out.append(byte)
        zeros = 0 if byte else zeros + 1
    return bytes(out)


M1, M2, C1, C2, C3 = 2610 / 16384, 2523 / 32, 3424 / 4096, 2413 / 128, 2392 / 128


def pq_nits(signal):
    power = max(signal, 0) ** (1 / M2)
    return 10000 * (max(power - C1, 0) / (C2 - C3 * power)) ** (1 / M1)


def pq_signal(nits):
    power = (nits / 10000) ** M1
    return ((C1 + C2 * power) / (1 + C3 * power)) ** M2


def display(nits, peak, white):
    """The EETF of Report ITU-R BT.2390."""
    if peak <= white:
        return min(nits, white)
    source = pq_signal(peak)
    most = pq_signal(white) / source
    knee = 1.5 * most - 0.5
    signal = min(pq_signal(nits) / source, 1)
    if signal <= knee:
        return nits
    t = (signal - knee) / (1 - knee)
    mapped = (2 * t**3 - 3 * t**2 + 1) * knee + (t**3 - 2 * t**2 + t) * (1 - knee) + (3 * t**2 - 2 * t**3) * most
    return pq_nits(mapped * source)


def expected(code, nits, curve, white=203):
    x = min(pq_nits((code - 64) / 876) / nits, 1)
    knee_x, knee_y = curve[1] / 4095, curve[2] / 4095
    ordinates = [0] + [anchor / 1023 for anchor in curve[3:]] + [1]
    order = len(ordinates) - 1
    if x <= knee_x:
        y = x * knee_y / knee_x if knee_x else 0
    else:
        u = (x - knee_x) / (1 - knee_x)
        y = knee_y + (1 - knee_y) * sum(
            comb(order, i) * u**i * (1 - u) ** (order - i) * ordinate for i, ordinate in enumerate(ordinates)
        )
    light = display(y * curve[0], curve[0], white) / white
    return round(64 + 876 * min(light, 1) ** (1 / 2.4))


def main():
    curve = [int(word) for word in sys.argv[4].split(",")] if len(sys.argv) > 4 else None
    if sys.argv[1] == "expect":
        print(*(expected(int(code), float(sys.argv[3]), curve) for code in sys.argv[2].split()))
        return
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
            out += unit(nits[min(pictures, len(nits) - 1)], curve)
            pictures += 1
        out += data[begin:end]
    with open(sys.argv[2], "wb") as result:
        result.write(out)


main()
