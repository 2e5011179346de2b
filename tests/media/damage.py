#!/usr/bin/env python3
"""Damages films and pictures at random, and looks for damage that nobody is told of.

    damage.py READ [--each N] [--seed N] [--kinds NAME,...] [--keep FOLDER] [--jobs N]

READ is the program media_read. For every kind of input, N copies are damaged: a byte flips, bytes become zero, are
lost, come twice or change places, or the file is cut or grows, some of it while it is read. A copy is silently wrong
if its frames differ from those of the whole file, if reading it gives neither an error nor a notice, and if ffmpeg finds
the damage: it reports an error, or another number of frames. What no decoder can find is counted as well: a sample
may change where there is no checksum. Half of the copies are read on after damage.

The same seed gives the same damage. The last line is "N passed, N failed".
SPDX-License-Identifier: Apache-2.0"""
import argparse
import concurrent.futures
import os
import random
import shutil
import subprocess
import sys
import tempfile

SIZE = "96x64"
FRAMES = 24
X265 = ["-c:v", "libx265", "-x265-params"]
HASHED = "log-level=none:keyint=8:hash=1"
PLAIN = "log-level=none:keyint=8"
AV1 = ["-c:v", "libaom-av1", "-cpu-used", "8", "-g", "8", "-b:v", "300k"]

# A kind is a name of a file and the options of ffmpeg that make it.
KINDS = {
    "y4m": ("a.y4m", ["-strict", "-1", "-f", "yuv4mpegpipe"]),
    "raw": ("a.yuv", ["-f", "rawvideo"]),
    "ffv1-mkv": ("a.mkv", ["-c:v", "ffv1", "-level", "3", "-slicecrc", "1", "-g", "1"]),
    "ffv1-nut": ("a.nut", ["-c:v", "ffv1", "-level", "3", "-slicecrc", "1", "-g", "1"]),
    "ffv1-avi": ("a.avi", ["-c:v", "ffv1", "-level", "3", "-slicecrc", "1", "-g", "4"]),
    "hevc-hash-mkv": ("a.mkv", X265 + [HASHED]),
    "hevc-mkv": ("a.mkv", X265 + [PLAIN]),
    "hevc-mp4": ("a.mp4", X265 + [PLAIN]),
    "hevc-mp4-fast": ("a.mp4", X265 + [HASHED, "-movflags", "faststart"]),
    "hevc-ts": ("a.ts", X265 + [PLAIN]),
    "hevc-m2ts": ("a.m2ts", X265 + [HASHED, "-f", "mpegts", "-mpegts_m2ts_mode", "1"]),
    "hevc": ("a.hevc", X265 + [HASHED, "-f", "hevc"]),
    "h264-mkv": ("a.mkv", ["-c:v", "libx264", "-g", "8"]),
    "h264-mov": ("a.mov", ["-c:v", "libx264", "-g", "8"]),
    "h264-flv": ("a.flv", ["-c:v", "libx264", "-g", "8", "-pix_fmt", "yuv420p"]),
    "prores-mov": ("a.mov", ["-c:v", "prores_ks", "-pix_fmt", "yuv422p10le"]),
    "av1-mkv": ("a.mkv", AV1),
    "av1-ivf": ("a.ivf", AV1),
    "vp9-webm": ("a.webm", ["-c:v", "libvpx-vp9", "-g", "8", "-pix_fmt", "yuv420p"]),
    "mpeg2-mxf": ("a.mxf", ["-c:v", "mpeg2video", "-g", "8", "-q:v", "3", "-pix_fmt", "yuv420p"]),
    "exr": ("a.exr", ["-frames:v", "1", "-pix_fmt", "gbrapf32le", "-compression", "zip1"]),
    "pfm": ("a.pfm", ["-frames:v", "1", "-pix_fmt", "gbrpf32le"]),
}
# Nothing in these says how many frames there are, or nothing says where the film ends.
UNCOUNTED = ("hevc", "y4m", "raw")
ENDLESS = ("hevc-ts", "hevc-m2ts")
DAMAGE = ["flip", "zero", "cut", "lose", "twice", "swap", "grow", "junk"]
MEANWHILE = ["cut", "grow", "flip"]


def options_of(kind):
    return ["--size", SIZE, "--format", "yuv420p10"] if kind == "raw" else []


def make(kind, folder):
    """The whole file; None: ffmpeg cannot make it."""
    name, options = KINDS[kind]
    path = os.path.join(folder, kind + "-" + name)
    picture = kind in ("exr", "pfm")
    source = "testsrc2=s=%s:r=24:d=1,noise=alls=8:allf=t:all_seed=1" % SIZE
    command = ["ffmpeg", "-v", "quiet", "-y", "-f", "lavfi", "-i", source]
    if not picture and "-pix_fmt" not in options:
        command += ["-pix_fmt", "yuv420p10le"]
    made = subprocess.run(command + options + [path], stdin=subprocess.DEVNULL)
    return path if made.returncode == 0 else None


def damage(data, how, draw):
    """The damaged bytes. Most places are within the data, few in the header."""
    data = bytearray(data)
    size = len(data)
    at, length = draw.randrange(size), draw.choice([1, 7, 64, 512, size // 16 + 1])
    other = draw.randrange(size)
    if how == "flip":
        data[at] ^= 1 << draw.randrange(8)
    elif how == "zero":
        data[at:at + length] = bytes(len(data[at:at + length]))
    elif how == "cut":
        del data[at:]
    elif how == "lose":
        del data[at:at + length]
    elif how == "twice":
        data[at:at] = data[at:at + length]
    elif how == "swap":
        one, two = data[at:at + length], data[other:other + length]
        data[at:at + length], data[other:other + length] = two[:len(one)].ljust(len(one), b"\0"), one
    elif how == "grow":
        data += bytes(draw.randrange(256) for _ in range(length))
    else:
        data[at:at + length] = bytes(draw.randrange(256) for _ in data[at:at + length])
    return bytes(data)


def read(program, kind, path, more=()):
    """The frames, and whether anything was said. A crash or a hang raises."""
    done = subprocess.run([program, *options_of(kind), *more, path], capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, timeout=300)
    if done.returncode not in (0, 1):
        raise RuntimeError("status %d: %s" % (done.returncode, done.stderr[-500:]))
    lines = done.stdout.splitlines()
    return ([line for line in lines if line.startswith("frame ")],
            [line for line in lines if not line.startswith("frame ")])


def found_by_ffmpeg(kind, path):
    """What ffmpeg reports, and its number of frames."""
    options = ["-f", "rawvideo", "-pix_fmt", "yuv420p10le", "-s", SIZE] if kind == "raw" else []
    done = subprocess.run(["ffmpeg", "-v", "error", "-err_detect", "crccheck", *options, "-i", path, "-map", "0:v:0",
                           "-fps_mode", "passthrough", "-f", "framecrc", "-"], capture_output=True, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, timeout=300)
    frames = [line for line in done.stdout.splitlines() if line and not line.startswith("#")]
    return done.stderr.strip() or ("status %d" % done.returncode if done.returncode else ""), len(frames)


def judge(program, kind, whole, path, how, frame, goes_on):
    """ "right", "told", "hidden" or "silent", and a reason."""
    more = ["--meanwhile", how, str(frame)] if frame is not None else []
    if goes_on:
        more.append("--go-on")
    frames, told = read(program, kind, path, more)
    if told:
        return "told", told[0]
    if frames == whole:
        return "right", ""
    said, count = found_by_ffmpeg(kind, path)
    uncounted = kind in UNCOUNTED or kind in ENDLESS and how == "cut"
    if len(frames) != len(whole) and how != "grow" and not uncounted:
        return "silent", "%d of %d frames; ffmpeg has %d: %s" % (len(frames), len(whole), count, said[:200])
    if said:
        return "silent", "ffmpeg: " + said[:200]
    return "hidden", ""


def try_one(program, kind, path, data, whole, number, arguments):
    draw = random.Random("%d %s %d" % (arguments.seed, kind, number))
    frame, picture = None, kind in ("exr", "pfm")
    how = DAMAGE[number % len(DAMAGE)]
    if not picture and number % 10 == 9:
        how, frame = MEANWHILE[number // 10 % len(MEANWHILE)], draw.randrange(FRAMES)
    copy = "%s-%d%s" % (path, number, os.path.splitext(path)[1])
    with open(copy, "wb") as out:
        out.write(data if frame is not None else damage(data, how, draw))
    try:
        verdict, why = judge(program, kind, whole, copy, how, frame, number % 16 >= 8)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        verdict, why = "crash", str(error)
    if verdict in ("silent", "crash") and arguments.keep:
        shutil.copy(copy, arguments.keep)
    os.remove(copy)
    return how if frame is None else "%s while frame %d is read" % (how, frame), verdict, why


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("read")
    parser.add_argument("--each", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        print("%-14s %6s %6s %6s %6s %6s" % ("kind", "right", "told", "hidden", "silent", "crash"))
        for kind in arguments.kinds.split(","):
            path = make(kind, folder)
            if not path:
                print("%-14s skipped, because ffmpeg cannot make it" % kind)
                continue
            whole, told = read(arguments.read, kind, path)
            if told or not whole:
                print("%s: the whole file: %s" % (kind, told))
                failed += 1
                continue
            with open(path, "rb") as file:
                data = file.read()
            tries = [pool.submit(try_one, arguments.read, kind, path, data, whole, n, arguments)
                     for n in range(arguments.each)]
            counts = dict.fromkeys(("right", "told", "hidden", "silent", "crash"), 0)
            for number, job in enumerate(tries):
                how, verdict, why = job.result()
                counts[verdict] += 1
                if verdict in ("silent", "crash"):
                    print("FAILED: %s, number %d, %s: %s: %s" % (kind, number, how, verdict, why))
            print("%-14s %6d %6d %6d %6d %6d" % (kind, *counts.values()), flush=True)
            bad = counts["silent"] + counts["crash"]
            passed, failed = passed + arguments.each - bad, failed + bad
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
