"""Makes Dolby Vision films, and judges what cox-tonemap makes of them.

    dolby.py codes FILM.yuv WIDTH HEIGHT FRAMES      a film of flat blocks, yuv420p10
    dolby.py put CASE IN OUT                         add the case's metadata to a film: HEVC (Annex B) or AV1 in IVF
    dolby.py judge CASE FILM.yuv OUT.y4m WIDTH HEIGHT
        compare OUT.y4m, 4:2:0 of 8 bits mapped with `--operator clip --gamut clip --dither none --desat 0`, with the
        computation in double precision; print the largest difference in codes
    dolby.py cases                                   the names of all cases

Sources: US patent 10,701,399 (syntax), ETSI GS CCM 001 (composition), ITU-R BT.2100, BT.709.
SPDX-License-Identifier: Apache-2.0"""
import random
import struct
import sys

BLOCK = 16
DENOM = 23


# --- Bits ---


class Bits:
    def __init__(self):
        self.text = []

    def put(self, value, count):
        if count:
            self.text.append(format(value & ((1 << count) - 1), "0%db" % count))

    def unsigned(self, value):
        value += 1
        self.put(value, 2 * value.bit_length() - 1)

    def signed(self, value):
        self.unsigned(2 * value - 1 if value > 0 else -2 * value)

    def data(self):
        text = "".join(self.text)
        text += "0" * (-len(text) % 8)
        return bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))

    def align(self):
        self.put(0, -sum(map(len, self.text)) % 8)


def coefficient(bits, value, floats):
    if floats:
        bits.put(struct.unpack(">I", struct.pack(">f", value))[0], 32)
        return
    whole, rest = divmod(round(value * 2**DENOM), 2**DENOM)
    bits.signed(whole)
    bits.put(rest, DENOM)


def checksum(data):
    total = 0xFFFFFFFF
    for byte in data:
        total ^= byte << 24
        for _ in range(8):
            total = (total << 1 ^ (0x04C11DB7 if total >> 31 else 0)) & 0xFFFFFFFF
    return total


# --- Metadata ---

IPT = [8192, 799, 1681, 8192, -933, 1091, 8192, 267, -5545]
IPT_CONES = [17081, -349, -349, -349, 17081, -349, -349, -349, 17081]
YCC = [9574, 0, 13802, 9574, -1540, -5348, 9574, 17610, 0]
YCC_CONES = [7222, 8771, 390, 2654, 12430, 1300, 0, 422, 15962]


class Frame:
    """The metadata of a frame: its curves, of a Y', Cb and Cr. A curve is a list of pivots and of pieces; a piece is
    ("poly", c0, c1[, c2]) or ("mmr", c0, [7 factors] for each order)."""

    def __init__(self, profile, curves, **more):
        self.profile = profile
        self.curves = curves
        self.residual = None  # "mel" or "fel"
        self.floats = False
        self.colours = True  # sends its matrices
        self.repeats = False  # the curves of the frame before
        self.scene = None  # codes of level 1: darkest, brightest, average
        self.sum = True  # a right checksum; False = a wrong one; None = 0
        self.__dict__.update(more)
        self.matrix, self.cones = (IPT, IPT_CONES) if profile == 5 else (YCC, YCC_CONES)
        self.offset = [0 if profile == 5 else 1 << 24, 1 << 27, 1 << 27]

    def payload(self):
        """Without the first byte, checksum and last byte."""
        b = Bits()
        for value, count in ((2, 6), (18, 11), (0 if self.profile == 5 else 1, 4), (0, 4), (1, 1), (0, 1)):
            b.put(value, count)
        b.put(1 if self.floats else 0, 2)
        if not self.floats:
            b.unsigned(DENOM)
        b.put(1, 2)
        b.put(1 if self.profile == 5 else 0, 1)
        for depth in (2, 2, 4):
            b.unsigned(depth)
        b.put(0, 1 + 3)
        b.put(1 if self.residual else 0, 1)
        b.put(0 if self.residual else 1, 1)
        b.put(1 if self.colours else 0, 1)
        b.put(1 if self.repeats else 0, 1)
        b.unsigned(0)
        if not self.repeats:
            self.mapping(b)
        if self.colours:
            self.display(b)
        b.align()
        return b.data()

    def mapping(self, b):
        b.unsigned(0)
        b.unsigned(0)
        for pivots, _ in self.curves:
            b.unsigned(len(pivots) - 2)
            for before, pivot in zip([0] + pivots, pivots):
                b.put(pivot - before, 10)
        if self.residual:
            b.put(0, 3)
            b.put(0, 10)
            b.put(1023, 10)
        b.unsigned(0)
        b.unsigned(0)
        for _, pieces in self.curves:
            for piece in pieces:
                if piece[0] == "poly":
                    b.unsigned(0)
                    b.unsigned(len(piece) - 3)
                    if len(piece) == 3:
                        b.put(0, 1)
                    for c in piece[1:]:
                        coefficient(b, c, self.floats)
                else:
                    b.unsigned(1)
                    b.put(len(piece) - 3, 2)
                    coefficient(b, piece[1], self.floats)
                    for order in piece[2:]:
                        for c in order:
                            coefficient(b, c, self.floats)
        for _ in range(3 if self.residual else 0):
            b.put(12 if self.residual == "fel" else 0, 10)
            for whole in (1, 0, 0):
                b.unsigned(whole)
                b.put(0, DENOM)

    def display(self, b):
        for _ in range(3):
            b.unsigned(0)
        for c in self.matrix:
            b.put(c, 16)
        for c in self.offset:
            b.put(c, 32)
        for c in self.cones:
            b.put(c, 16)
        for value, count in ((65535, 16), (0, 16), (0, 16), (0, 32), (12, 5), (0, 2), (0, 2), (1, 2)):
            b.put(value, count)
        for value, count in ((62, 12), (3696, 12), (42, 10)):
            b.put(value, count)
        b.unsigned(1 if self.scene else 0)
        b.align()
        if self.scene:
            b.unsigned(5)
            b.put(1, 8)
            for code in self.scene:
                b.put(code, 12)
            b.put(0, 4)

    def message(self):
        data = self.payload()
        total = {True: checksum(data), False: checksum(data) ^ 1, None: 0}[self.sum]
        return data + struct.pack(">I", total) + b"\x80"

    def nal(self):
        out, zeros = bytearray(b"\x00\x00\x00\x01\x7c\x01"), 0
        for byte in b"\x19" + self.message():
            if zeros >= 2 and byte <= 3:
                out.append(3)
                zeros = 0
            out.append(byte)
            zeros = 0 if byte else zeros + 1
        return bytes(out)

    def obu(self):
        message, b = self.message(), Bits()
        b.put(0x1BE6841, 27)
        if len(message) < 256:
            b.put(len(message), 8)
            b.put(0, 1)
        else:
            high, low = divmod(len(message) - 256, 256)
            b.put(high, 8)
            b.put(1, 1)
            b.put(low, 8)
            b.put(0, 1)
        for byte in message:
            b.put(byte, 8)
        b.put(0x400, 17)
        body = b"\x04\xb5\x00\x3b\x00\x00\x08\x00" + b.data() + b"\x80"
        size = bytes([len(body) & 127 | 128, len(body) >> 7]) if len(body) > 127 else bytes([len(body)])
        return b"\x2a" + size + body


# --- Cases ---


def line(rise=1.0, start=0.0):
    return ("poly", start, rise)


def pieces(count, seed):
    """A continuous curve of `count` parabolas near the identity."""
    r = random.Random(seed)
    pivots = [round(1023 * i / count) for i in range(count + 1)]
    at, out = 0.02, []
    for low, high in zip(pivots, pivots[1:]):
        a, z = low / 1024, high / 1024
        slope, bow = r.uniform(0.6, 1.1), r.uniform(-0.3, 0.3)
        out.append(("poly", at - slope * a + bow * a * z, slope - bow * (a + z), bow))
        at += slope * (z - a)
    return (pivots, out)


def mmr(order, component, seed, strength=0.05):
    """Near the identity of a component."""
    r = random.Random(seed)
    out = [[r.uniform(-strength, strength) for _ in range(7)] for _ in range(order)]
    out[0][component] += 1
    constant = 0.5 - sum(sum(f * t ** (i + 1) for f, t in zip(row, terms(0.5, 0.5, 0.5))) for i, row in enumerate(out))
    return ("mmr", constant, *out)


def terms(y, u, v):
    return [y, u, v, y * u, y * v, u * v, y * u * v]


ONE = ([0, 1023], [line()])


def one(piece):
    return ([0, 1023], [piece])


def chroma(order, seed):
    return [one(mmr(order, 1, seed)), one(mmr(order, 2, seed + 1))]


def steady(frame):
    return lambda n: frame


def alternating(n):
    return Frame(5, [pieces(1 + n % 8, n)] + chroma(1 + n % 3, 50 + n))


def repeating(n):
    full = Frame(5, [pieces(3, 1)] + chroma(2, 3))
    return Frame(5, full.curves, repeats=True, colours=False) if n else full


CASES = {
    # name: (metadata of frame n, whether frames are reshaped)
    "identity-5": (steady(Frame(5, [ONE, ONE, ONE])), True),
    "identity-8": (steady(Frame(8, [ONE, ONE, ONE])), True),
    "line": (steady(Frame(5, [one(line(0.8, 0.05)), one(line(0.9, 0.05)), one(line(1.1, -0.05))])), True),
    "parabola": (steady(Frame(5, [one(("poly", 0.01, 0.7, 0.2)), ONE, ONE])), True),
    "pieces-2": (steady(Frame(8, [pieces(2, 2), pieces(2, 3), pieces(2, 4)])), True),
    "pieces-8": (steady(Frame(5, [pieces(8, 8), ONE, ONE])), True),
    "mmr-1": (steady(Frame(5, [ONE] + chroma(1, 10))), True),
    "mmr-2": (steady(Frame(5, [pieces(4, 5)] + chroma(2, 20))), True),
    "mmr-3": (steady(Frame(8, [pieces(8, 6)] + chroma(3, 30))), True),
    "mmr-pieces": (
        steady(Frame(5, [ONE, ([0, 400, 1023], [mmr(3, 1, 41, 0.02), mmr(1, 1, 42, 0.02)]), one(mmr(2, 2, 43))])),
        True,
    ),
    "mmr-luma": (steady(Frame(5, [one(mmr(2, 0, 44))] + chroma(3, 45))), True),
    "limits": (steady(Frame(8, [([64, 300, 940], [line(0.9, 0.01), line(0.9, 0.01)])] + chroma(1, 60))), True),
    "changing": (alternating, True),
    "repeating": (repeating, True),
    "floats": (steady(Frame(5, [pieces(3, 9)] + chroma(2, 70), floats=True)), True),
    "scene": (steady(Frame(5, [pieces(2, 1)] + chroma(3, 80), scene=(0, 2700, 1500))), True),
    "no-sum": (steady(Frame(5, [pieces(2, 1), ONE, ONE], sum=None)), True),
    "wrong-sum": (steady(Frame(5, [ONE, ONE, ONE], sum=False)), True),
    "mel": (steady(Frame(7, [pieces(3, 2), ONE, ONE], residual="mel")), False),
    "fel": (steady(Frame(7, [pieces(3, 2), ONE, ONE], residual="fel")), False),
    "no-colours": (steady(Frame(5, [ONE, ONE, ONE], colours=False)), True),
    "no-colours-8": (steady(Frame(8, [pieces(2, 7), ONE, ONE], colours=False)), True),
}


# --- Films ---


def codes(path, width, height, frames):
    r = random.Random(7)
    with open(path, "wb") as out:
        for _ in range(frames):
            for plane in range(3):
                block, w, h = (BLOCK, width, height) if plane == 0 else (BLOCK // 2, width // 2, height // 2)
                low, high = (64, 940) if plane == 0 else (400, 624)
                grid = [[r.randint(low, high) for _ in range(-(-w // block))] for _ in range(-(-h // block))]
                for y in range(h):
                    out.write(struct.pack("<%dH" % w, *(grid[y // block][x // block] for x in range(w))))


def put_hevc(case, data):
    """The metadata follows the last NAL unit of each picture."""
    starts, at = [], data.find(b"\0\0\1")
    while at >= 0:
        starts.append(at - 1 if at and data[at - 1] == 0 else at)
        at = data.find(b"\0\0\1", at + 3)
    starts.append(len(data))
    out, pictures, pending = bytearray(), 0, False
    for begin, end in zip(starts, starts[1:]):
        unit = data[begin:end]
        head = unit.index(b"\1") + 1
        kind, first = unit[head] >> 1 & 63, unit[head + 2] & 0x80
        if pending and (kind in (32, 33, 34, 35, 39) or (kind < 32 and first)):
            out += case(pictures).nal()
            pictures, pending = pictures + 1, False
        out += unit
        pending |= kind < 32
    return bytes(out + case(pictures).nal())


def put_av1(case, data):
    """The metadata follows the temporal delimiter, two bytes."""
    out, at, number = bytearray(data[:32]), 32, 0
    while at < len(data):
        size = struct.unpack("<I", data[at : at + 4])[0]
        unit = data[at + 12 : at + 12 + size]
        # the metadata comes before the frame, after the sequence header if there is one
        cut = 2
        if unit[2] >> 3 & 15 == 1:
            cut = 4 + unit[3]
        unit = unit[:cut] + case(number).obu() + unit[cut:]
        out += struct.pack("<I", len(unit)) + data[at + 4 : at + 12] + unit
        at, number = at + 12 + size, number + 1
    return bytes(out)


# --- The judge ---


def pq_light(signal):
    p = min(max(signal, 0), 1) ** (32 / 2523)
    return 10000 * (max(p - 3424 / 4096, 0) / (2413 / 128 - 2392 / 128 * p)) ** (16384 / 2610)


def inverse(m):
    (a, b, c), (d, e, f), (g, h, i) = m
    det = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    return [
        [(e * i - f * h) / det, (c * h - b * i) / det, (b * f - c * e) / det],
        [(f * g - d * i) / det, (a * i - c * g) / det, (c * d - a * f) / det],
        [(d * h - e * g) / det, (b * g - a * h) / det, (a * e - b * d) / det],
    ]


def times(m, v):
    return [sum(a * b for a, b in zip(row, v)) for row in m]


def product(a, b):
    return [[sum(a[i][k] * b[k][j] for k in range(3)) for j in range(3)] for i in range(3)]


def to_xyz(primaries, white=(0.3127, 0.3290)):
    p = [[x / y for x, y in primaries], [1, 1, 1], [(1 - x - y) / y for x, y in primaries]]
    scale = times(inverse(p), [white[0] / white[1], 1, (1 - sum(white)) / white[1]])
    return [[value * s for value, s in zip(row, scale)] for row in p]


BT2020 = to_xyz([(0.708, 0.292), (0.170, 0.797), (0.131, 0.046)])
BT709 = to_xyz([(0.640, 0.330), (0.300, 0.600), (0.150, 0.060)])
TO_709 = product(inverse(BT709), BT2020)
# Hunt, Pointer and Estevez; each row is scaled so that white is 1, 1, 1.
CONES = product([[0.40024, 0.70760, -0.08081], [-0.22630, 1.16532, 0.04570], [0, 0, 0.91822]], BT2020)
FROM_CONES = inverse([[value / sum(row) for value in row] for row in CONES])


def reshaped(frame, component, ycc):
    pivots, pieces_of = frame.curves[component]
    x = min(max(ycc[component], pivots[0] / 1024), pivots[-1] / 1024)
    index = max(i for i in range(len(pieces_of)) if i == 0 or x >= pivots[i] / 1024)
    piece = pieces_of[index]
    if piece[0] == "poly":
        value = sum(c * x**i for i, c in enumerate(piece[1:]))
    else:
        value = piece[1] + sum(
            f * t ** (i + 1) for i, row in enumerate(piece[2:]) for f, t in zip(row, terms(*ycc))
        )
    return min(max(value, 0), 1)


def light_of(frame, code, reshape):
    """The light in BT.709 of a colour's codes, 1 = SDR white of 203 cd/m2."""
    if reshape and (frame.colours or frame.repeats):
        ycc = [c / 1024 for c in code]
        parts = [reshaped(frame, i, ycc) - frame.offset[i] / 2**28 for i in range(3)]
        matrix = [[c / 8192 for c in frame.matrix[3 * i : 3 * i + 3]] for i in range(3)]
        signal = [value * 4096 / 4095 for value in times(matrix, parts)]
        cones = [[c / 16384 for c in frame.cones[3 * i : 3 * i + 3]] for i in range(3)]
        to_2020 = product(FROM_CONES, cones)
    else:
        if reshape:
            ycc = [reshaped(frame, i, [c / 1024 for c in code]) * 1024 for i in range(3)]
        else:
            ycc = code
        y, u, v = (ycc[0] - 64) / 876, (ycc[1] - 512) / 896, (ycc[2] - 512) / 896
        red, blue = y + 1.4746 * v, y + 1.8814 * u
        signal = [red, (y - 0.2627 * red - 0.0593 * blue) / 0.6780, blue]
        to_2020 = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    return [value / 203 for value in times(TO_709, times(to_2020, [pq_light(s) for s in signal]))]


def display(light):
    """Codes of Y', Cb and Cr. Each colour is clipped."""
    rgb = [max(min(value, 1), -1) for value in light]
    rgb = [abs(value) ** (1 / 2.4) * (1 if value >= 0 else -1) for value in rgb]
    y = 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]
    return [16 + 219 * y, 128 + 224 * (rgb[2] - y) / 1.8556, 128 + 224 * (rgb[0] - y) / 1.5748]


def planes(data, width, height, size):
    count = width * height
    luma, cb = count * size, count // 4 * size
    return data[:luma], data[luma : luma + cb], data[luma + cb : luma + 2 * cb]


def judge(case, film, mapped, width, height):
    reshape = case[1]
    with open(film, "rb") as source, open(mapped, "rb") as result:
        result.readline()
        worst, number = 0.0, 0
        while result.readline():
            bytes_in = source.read(width * height * 3)
            parts_in = planes(bytes_in, width, height, 2)
            parts_out = planes(result.read(width * height * 3 // 2), width, height, 1)
            for top in range(0, height - BLOCK + 1, BLOCK):
                for left in range(0, width - BLOCK + 1, BLOCK):
                    y, x = top + BLOCK // 2, left + BLOCK // 2
                    luma, chroma_at = y * width + x, y // 2 * (width // 2) + x // 2
                    code = [struct.unpack_from("<H", parts_in[0], 2 * luma)[0]]
                    code += [struct.unpack_from("<H", parts_in[i], 2 * chroma_at)[0] for i in (1, 2)]
                    got = [parts_out[0][luma], parts_out[1][chroma_at], parts_out[2][chroma_at]]
                    wanted = display(light_of(case[0](number), code, reshape))
                    worst = max(worst, *(abs(a - min(max(b, 0), 255)) for a, b in zip(got, wanted)))
            number += 1
    print("%.2f" % worst)
    return number > 0


def main():
    what, rest = sys.argv[1], sys.argv[2:]
    if what == "cases":
        print(" ".join(CASES))
    elif what == "codes":
        codes(rest[0], *map(int, rest[1:]))
    elif what == "put":
        with open(rest[1], "rb") as source:
            data = source.read()
        put = put_av1 if data.startswith(b"DKIF") else put_hevc
        with open(rest[2], "wb") as out:
            out.write(put(CASES[rest[0]][0], data))
    elif not judge(CASES[rest[0]], rest[1], rest[2], int(rest[3]), int(rest[4])):
        sys.exit("no frame")


if __name__ == "__main__":
    main()
