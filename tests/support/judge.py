# What cox-tonemap --judge measures, in double precision and by other steps: the judge of the judge.
#
#   python3 judge.py FILE FILE [PEAK]     the figures of two films (y4m) or pictures (PNG), as lines "NAME VALUE"; in PQ
#                                         PEAK is that of the display
#   python3 judge.py near STATS FIGURES   says which figures of a file of --stats differ from such lines by more than
#                                         1 % and 0.01
#
# Y'CbCr is BT.709, or as the first letter of the file's name says: s BT.601, w BT.2020 (also its primaries), h PQ and
# BT.2020. PNGs are as cICP says.
# SPDX-License-Identifier: Apache-2.0
import array
import json
import math
import os
import sys

import png

XYZ = {  # of R, G and B
    "b": ((0.4123908, 0.3575843, 0.1804808), (0.2126390, 0.7151687, 0.0721923), (0.0193308, 0.1191948, 0.9505322)),
    "w": ((0.6369580, 0.1446169, 0.1688810), (0.2627002, 0.6779981, 0.0593017), (0.0, 0.0280727, 1.0609851)),
    "s": ((0.3935209, 0.3652581, 0.1916769), (0.2123764, 0.7010599, 0.0865638), (0.0187391, 0.1119339, 0.9583847)),
}
XYZ["h"] = XYZ["w"]
TO_2020 = (1.7166512, -0.3556708, -0.2533663), (-0.6666844, 1.6164812, 0.0157685), (0.0176399, -0.0427706, 0.9421031)
LUMA = {"b": (0.2126, 0.0722), "s": (0.299, 0.114), "w": (0.2627, 0.0593)}
LUMA["h"] = LUMA["w"]


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def pq(nits):
    y = (max(nits, 0) / 10000) ** (2610 / 16384)
    return ((3424 / 4096 + 2413 / 128 * y) / (1 + 2392 / 128 * y)) ** (2523 / 32)


def pq_nits(signal):
    power = signal ** (32 / 2523)
    return 10000 * (max(power - 3424 / 4096, 0) / (2413 / 128 - 2392 / 128 * power)) ** (16384 / 2610)


def srgb_nits(signal):
    return 100 * (signal / 12.92 if signal <= 0.04045 else ((signal + 0.055) / 1.055) ** 2.4)


class Film:
    white = 1  # the signal that counts as clipped

    def __init__(self, path):
        data = open(path, "rb").read()
        line, self.body = data[: data.index(b"\n")].decode(), data[data.index(b"\n") + 1 :]
        tags = {word[0]: word[1:] for word in line.split()[1:] if word[0] != "X"}
        self.width, self.height = int(tags["W"]), int(tags["H"])
        self.half = int(tags["C"].startswith("420"))
        self.deep = tags["C"].endswith("p10")
        self.full = "XCOLORRANGE=FULL" in line
        self.kind = os.path.basename(path)[0]
        self.kind = self.kind if self.kind in XYZ else "b"
        self.curve = pq_nits if self.kind == "h" else lambda value: 100 * value**2.4
        chroma = ((self.width + self.half) >> self.half) * ((self.height + self.half) >> self.half)
        self.samples = self.width * self.height + 2 * chroma
        self.frames = len(self.body) // (self.samples * (1 + self.deep) + 6)
        self.seen = {}

    def frame(self, n):
        """Pixels as (Y', Cb, Cr) from 0 to 1 and -0.5 to 0.5, in rows."""
        size, sample = self.samples * (1 + self.deep), 1 + self.deep
        codes = array.array("H" if self.deep else "B", self.body[n * (size + 6) + 6 :][:size])
        unit, most = (4, 1023) if self.deep else (1, 255)
        black, luma, chroma = (0, most, most) if self.full else (16 * unit, 219 * unit, 224 * unit)
        wide, first = (self.width + self.half) >> self.half, self.width * self.height
        second = first + (self.samples - first) // 2
        return [
            [
                (
                    (codes[y * self.width + x] - black) / luma,
                    (codes[first + (y >> self.half) * wide + (x >> self.half)] - 128 * unit) / chroma,
                    (codes[second + (y >> self.half) * wide + (x >> self.half)] - 128 * unit) / chroma,
                )
                for x in range(self.width)
            ]
            for y in range(self.height)
        ]

    def light(self, pixel):
        """I, T, P, and whether the pixel is clipped to white and to black."""
        if pixel not in self.seen:
            (y, cb, cr), (red, blue) = pixel, LUMA[self.kind]
            r, b = y + 2 * (1 - red) * cr, y + 2 * (1 - blue) * cb
            rgb = r, (y - red * r - blue * b) / (1 - red - blue), b
            rgb = [min(max(value, 0), 1) for value in rgb]
            r, g, b = times(TO_2020, times(XYZ[self.kind], [self.curve(value) for value in rgb]))
            l = pq((1688 * r + 2146 * g + 262 * b) / 4096)
            m = pq((683 * r + 2951 * g + 462 * b) / 4096)
            s = pq((99 * r + 309 * g + 3688 * b) / 4096)
            itp = (l + m) / 2, (6610 * l - 13613 * m + 7003 * s) / 8192, (17933 * l - 17390 * m - 543 * s) / 4096
            self.seen[pixel] = itp, max(rgb) >= self.white - 0.5 / 255, min(rgb) <= 0.5 / 255
        return self.seen[pixel]


class Picture(Film):
    def __init__(self, path):
        chunks, data = png.read(path)
        primaries, transfer = chunks.get("cICP", b"\1\15")[:2]
        self.kind = ("h" if transfer == 16 else "w") if primaries == 9 else "b"
        self.curve = pq_nits if transfer == 16 else srgb_nits
        self.most = 256 ** (chunks["IHDR"][8] // 8) - 1
        self.pixels = png.rows(chunks, data)
        self.frames, self.seen = 1, {}

    def frame(self, n):
        red, blue = LUMA[self.kind]
        rows = []
        for row in self.pixels:
            rgb = [[value / self.most for value in pixel[:3]] for pixel in row]
            luma = [red * r + (1 - red - blue) * g + blue * b for r, g, b in rgb]
            rows.append([(y, (b - y) / 2 / (1 - blue), (r - y) / 2 / (1 - red)) for y, (r, g, b) in zip(luma, rgb)])
        return rows


def edges(values):
    """Band edges of a row or column of Y' in codes of 8 bits."""
    runs = []
    for value in values:
        if not runs or abs(runs[-1][0] - value) > 1e-9:
            runs.append([value, 0])
        runs[-1][1] += 1
    return sum(a[1] >= 8 <= b[1] and 0.49 < abs(a[0] - b[0]) < 4.01 for a, b in zip(runs, runs[1:]))


def measure(films):
    differences, beyond, before = [], [], None
    totals = {name: [0, 0] for name in ("band_edges", "clipped_white", "clipped_black")}
    count = min(film.frames for film in films)
    for n in range(count):
        frames = [film.frame(n) for film in films]
        lights = [[film.light(p) for row in frame for p in row] for film, frame in zip(films, frames)]
        differences += [720 * math.dist(a[0], b[0]) for a, b in zip(*lights)]
        means = []
        for side, (frame, light) in enumerate(zip(frames, lights)):
            codes = [[219 * pixel[0] for pixel in row] for row in frame]
            totals["band_edges"][side] += sum(map(edges, codes)) + sum(map(edges, zip(*codes)))
            totals["clipped_white"][side] += sum(one[1] for one in light)
            totals["clipped_black"][side] += sum(one[2] for one in light)
            means.append(sum(map(sum, codes)) / len(light))
        if before:
            beyond.append((means[0] - before[0] - means[1] + before[1]) ** 2)
        before = means
    differences.sort()
    pixels = len(differences)
    print("frames", count)
    print("mean", sum(differences) / pixels)
    for percent in 50, 90, 99:
        print(f"p{percent}", differences[-(-pixels * percent // 100) - 1])
    print("max", differences[-1])
    if beyond:
        print("flicker", math.sqrt(sum(beyond) / len(beyond)))
    for name, both in totals.items():
        for side, total in zip(("output", "reference"), both):
            print(f"{side}.{name}", total / pixels * (1000 if name == "band_edges" else 1))


def near(stats, figures):
    judged = json.load(open(stats))
    judged = judged.get("film", judged)["judge"]
    flat = {"frames": judged["frames"], "flicker": judged["flicker"], **judged["de_itp"]}
    for side in "output", "reference":
        flat.update({f"{side}.{name}": value for name, value in judged[side].items()})
    for line in open(figures):
        name, value = line.split()
        if abs(flat[name] - float(value)) > max(0.01 * abs(float(value)), 0.01 if name[0] in "pm" else 1e-3):
            print(f"{name}: {flat[name]} instead of {value}")


if sys.argv[1] == "near":
    near(*sys.argv[2:])
else:
    films = [(Picture if path.endswith(".png") else Film)(path) for path in sys.argv[1:3]]
    for film in films if len(sys.argv) > 3 else ():
        film.white = pq(float(sys.argv[3]))
    measure(films)
