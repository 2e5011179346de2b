# Write an OpenEXR picture of 8 x 6 pixels of one colour, for tests:
#
#   python3 exr.py FILE [aspect=A] PART...   PART is [NAME:]CHANNEL=VALUE,...
#
# Samples are floats. Two or more parts make a file of several parts, each of which has a name.
# SPDX-License-Identifier: Apache-2.0
import struct
import sys

WIDTH, HEIGHT = 8, 6


def attribute(name, kind, data):
    return f"{name}\0{kind}\0".encode() + struct.pack("<i", len(data)) + data


def header(name, channels, aspect):
    entries = b"".join(one.encode() + b"\0" + struct.pack("<4i", 2, 0, 1, 1) for one in channels)
    window = struct.pack("<4i", 0, 0, WIDTH - 1, HEIGHT - 1)
    out = attribute("channels", "chlist", entries + b"\0")
    out += attribute("compression", "compression", b"\0") + attribute("lineOrder", "lineOrder", b"\0")
    out += attribute("dataWindow", "box2i", window) + attribute("displayWindow", "box2i", window)
    out += attribute("pixelAspectRatio", "float", struct.pack("<f", aspect))
    out += attribute("screenWindowCenter", "v2f", bytes(8))
    out += attribute("screenWindowWidth", "float", struct.pack("<f", 1))
    if name:
        out += attribute("name", "string", name.encode()) + attribute("type", "string", b"scanlineimage")
        out += attribute("chunkCount", "int", struct.pack("<i", HEIGHT))
    return out + b"\0"


def main(path, *words):
    aspect, parts = 1.0, []
    for word in words:
        if word.startswith("aspect="):
            aspect = float(word[7:])
            continue
        name, _, values = word.rpartition(":")
        parts.append((name, dict(sorted(pair.split("=") for pair in values.split(",")))))
    several = len(parts) > 1
    out = struct.pack("<2I", 20000630, 0x1002 if several else 2)
    out += b"".join(header(name, channels, aspect) for name, channels in parts) + bytes(several)
    chunks = []
    for number, (_, channels) in enumerate(parts):
        row = b"".join(struct.pack("<f", float(value)) * WIDTH for value in channels.values())
        for y in range(HEIGHT):
            chunks.append((struct.pack("<i", number) if several else b"") + struct.pack("<2i", y, len(row)) + row)
    at = len(out) + 8 * len(chunks)
    for chunk in chunks:
        out += struct.pack("<Q", at)
        at += len(chunk)
    open(path, "wb").write(out + b"".join(chunks))


main(*sys.argv[1:])
