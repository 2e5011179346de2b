"""Read the table of call sites that the preloaded library fills (sites.h).

SPDX-License-Identifier: Apache-2.0
"""
import bisect
import collections
import functools
import subprocess

SITES_MAX, FRAMES, MODULES, NAME_BYTES = 8192, 6, 16, 256
SITE_BYTES = 8 + 4 + 4 + 32 + 8 * FRAMES

Site = collections.namedtuple("Site", "key call calls struck where")


@functools.lru_cache(maxsize=None)
def symbols(path):
    """The functions of a binary: their addresses in order, and their names."""
    lines = subprocess.run(["nm", "-C", "--defined-only", path], capture_output=True, text=True).stdout.splitlines()
    found = sorted((int(line.split()[0], 16), line.split()[2]) for line in lines if line.split()[1].lower() == "t")
    return [address for address, _ in found], [name for _, name in found]


def function_at(path, offset):
    addresses, names = symbols(path)
    index = bisect.bisect_right(addresses, offset - 1) - 1
    return names[index].split(".")[0] if index >= 0 else f"{path.rsplit('/')[-1]}+{offset:x}"


def text(data):
    return data.split(b"\0")[0].decode()


def read_sites(path, program=None):
    """The sites of the table. With the program's path they have the functions of our code, the innermost first."""
    data = path.read_bytes() if path.exists() else b""
    modules = [text(data[i * NAME_BYTES:(i + 1) * NAME_BYTES]) for i in range(MODULES)]
    sites = []
    for start in range(MODULES * NAME_BYTES, len(data), SITE_BYTES):
        site = data[start:start + SITE_BYTES]
        key = int.from_bytes(site[:8], "little")
        if not key:
            continue
        frames = [int.from_bytes(site[48 + i * 8:56 + i * 8], "little") for i in range(FRAMES)]
        where = []
        for frame in frames if program else []:
            if frame:
                where.append(function_at(modules[frame >> 48] or str(program), frame & (1 << 48) - 1))
        sites.append(Site(key, text(site[16:48]), int.from_bytes(site[8:12], "little"), int.from_bytes(site[12:16], "little"),
                          " < ".join(where)))
    return sorted(sites, key=lambda site: (site.call, site.where, site.key))
