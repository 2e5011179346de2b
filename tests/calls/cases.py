"""The runs that sweep.py disturbs: short runs of every program, each with its inputs and what it must make.

SPDX-License-Identifier: Apache-2.0
"""
import random
import re
import shutil
import struct
import subprocess

CPU = ["--devices", "cpu"]
TINY = ["--size", "64x32", "--frames", "4", "--rounds", "1", "--devices", "cpu:2x1"]


class Case:
    """A command in a folder of its own.

    inputs   files that lie in the folder
    makes    {name: how to compare}: bytes, film (the frames and their times), json, base (SQLite), recording (a run's
             database, whose bands depend on the devices), any
    before   {name: other}: a good file that is there before, a copy of the file `other`
    grows    names that may hold a part after a failure, as documented
    prints   whether what is printed must be the same
    cold     without compiled kernels and device profiles
    again    the status of a second run, if the first one has made its file
    """

    def __init__(self, name, command, inputs=(), makes=None, before=None, grows=(), prints=False, cold=False, again=0,
                 folders=()):
        self.name, self.command, self.inputs = name, command, list(inputs)
        self.makes, self.before, self.grows = dict(makes or {}), dict(before or {}), set(grows)
        self.prints, self.cold, self.again, self.folders = prints, cold, again, list(folders)


def tonemap(name, arguments, inputs, makes, **more):
    return Case(f"tonemap-{name}", ["cox-tonemap", *arguments, *CPU, "-q"], inputs, makes, **more)


def lab(name, arguments, inputs=(), makes=None, **more):
    return Case(f"lab-{name}", ["cox-lab", *arguments], inputs, makes, **more)


FFV1 = ["--encoder", "ffv1"]
CASES = [
    tonemap("y4m", ["film.y4m", "-o", "out.y4m", "--hash"], ["film.y4m"], {"out.y4m": "bytes"}, grows=["out.y4m"], prints=True),
    tonemap("cold", ["film.y4m", "-o", "out.y4m"], ["film.y4m"], {"out.y4m": "bytes"}, grows=["out.y4m"], cold=True),
    tonemap("stats", ["film.y4m", "-o", "null:", "--stats", "s.json", "--trace", "t.json"], ["film.y4m"],
            {"s.json": "json", "t.json": "json"}),
    tonemap("raw", ["film.yuv", "--size", "64x32", "-o", "out.p010", "--in-flight", "2", "--peak", "1000"], ["film.yuv"],
            {"out.p010": "bytes"}, grows=["out.p010"]),
    tonemap("stdout", ["film.y4m", "-o", "-"], ["film.y4m"], prints=True, makes={}),
    tonemap("mkv", ["film.mkv", "-o", "out.mkv", *FFV1], ["film.mkv"], {"out.mkv": "film"}, again=1),
    tonemap("mkv-overwrite", ["film.mkv", "-o", "out.mkv", "--overwrite", *FFV1], ["film.mkv"], {"out.mkv": "film"},
            before={"out.mkv": "older.mkv"}),
    tonemap("frame", ["film.mkv", "-o", "out.png", "--frame", "1"], ["film.mkv"], {"out.png": "bytes"}),
    tonemap("exr", ["pic.exr", "-o", "out.png"], ["pic.exr"], {"out.png": "bytes"}, before={"out.png": "older.png"}),
    tonemap("pfm", ["pic.pfm", "-o", "out.png", "--operator", "local", "--verify"], ["pic.pfm"], {"out.png": "bytes"}),
    tonemap("hdr", ["pic.hdr", "-o", "out.png", "--stats", "s.json"], ["pic.hdr"], {"out.png": "bytes", "s.json": "json"}),
    tonemap("jpeg", ["pic.pfm", "-o", "out.jpg"], ["pic.pfm"], {"out.jpg": "bytes"}),
    tonemap("judge-png", ["pic.pfm", "-o", "out.png", "--hdr", "600", "--judge", "hdr.png"],
            ["pic.pfm", "hdr.png"], {"out.png": "bytes"}),
    tonemap("batch", ["film.y4m", "pic.pfm", "-o", "sdr/"], ["film.y4m", "pic.pfm"],
            {"sdr/film.mkv": "film", "sdr/pic.png": "bytes"}, folders=["sdr"], again=1),
    tonemap("analyse", ["analyse", "film.y4m", "--share", "1/2", "-o", "1.part"], ["film.y4m"], {"1.part": "bytes"}),
    Case("tonemap-steer", ["cox-tonemap", "steer", "1.part", "2.part", "-o", "film.scene", "-q"], ["1.part", "2.part"],
         {"film.scene": "bytes"}),
    tonemap("map", ["map", "film.y4m", "--scene", "film.scene", "--share", "1/2", "-o", "1.y4m"], ["film.y4m", "film.scene"],
            {"1.y4m": "bytes"}),
    tonemap("map-mkv", ["map", "film.y4m", "--scene", "film.scene", "--share", "1/2", "-o", "1.mkv", *FFV1],
            ["film.y4m", "film.scene"], {"1.mkv": "film"}),
    Case("tonemap-join", ["cox-tonemap", "join", "1.y4m", "2.y4m", "-o", "out.y4m", "-q"], ["1.y4m", "2.y4m"],
         {"out.y4m": "bytes"}, again=1),
    Case("tonemap-join-mkv", ["cox-tonemap", "join", "1.mkv", "2.mkv", "-o", "out.mkv", "-q", "--overwrite"],
         ["1.mkv", "2.mkv"], {"out.mkv": "film"}, before={"out.mkv": "older.mkv"}),
    Case("devices", ["cox-devices"], prints=True),
    Case("devices-json", ["cox-devices", "--json"], prints=True),
    Case("devices-compile", ["cox-devices", "--compile", "k.cl", "--output", "k.bin"], ["k.cl"], {"k.bin": "any"}, cold=True),
    Case("bench-decide", ["cox-bench", "decide", "--frames", "20", "--json"]),
    Case("bench-frames", ["cox-bench", "frames", "--frames", "10", "--size", "64x32", *CPU, "--json"]),
    Case("bench-suite", ["cox-bench", "suite", "--size", "tiny", "--case", "hotspot", "--rounds", "1", *CPU]),
    lab("sim", ["sim", "--scenario", "step-2", "--policy", "adaptive,static", "--seeds", "2", "--frames", "20"], prints=True),
    lab("sim-record", ["sim", "--scenario", "step-2", "--policy", "adaptive,static", "--seeds", "1", "--frames", "20",
                       "--record", "s.db"], makes={"s.db": "base"}),
    lab("sim-append", ["sim", "--scenario", "step-2", "--policy", "adaptive,static", "--seeds", "1", "--frames", "20",
                       "--record", "s.db"], makes={"s.db": "base"}, before={"s.db": "one.db"}),
    lab("run", ["run", *TINY, "--kernel", "work", "--telemetry", "0", "-o", "r.db"], makes={"r.db": "recording"}),
    lab("merge", ["merge", "one.db", "two.db", "-o", "all.db"], ["one.db", "two.db"], {"all.db": "base"}),
    lab("report", ["report", "one.db", "-o", "one.html"], ["one.db"], {"one.html": "bytes"}),
    lab("export", ["export", "one.db", "--format", "perfetto", "-o", "one.trace"], ["one.db"], {"one.trace": "bytes"}),
    lab("export-csv", ["export", "one.db", "--format", "csv", "-o", "t"], ["one.db"],
        {"t/frames.csv": "bytes", "t/bands.csv": "bytes"}, before={"t/frames.csv": "older.json"}, folders=["t"]),
    lab("export-parquet", ["export", "one.db", "--format", "parquet", "-o", "t"], ["one.db"],
        {"t/frames.parquet": "bytes", "t/bands.parquet": "bytes"}),
    lab("replay", ["replay", "one.db"], ["one.db"], prints=True),
    lab("fit", ["fit", "one.db", "--seeds", "2", "-o", "fit.json"], ["one.db"], {"fit.json": "bytes"}, prints=True,
        before={"fit.json": "older.json"}),
    lab("telemetry", ["telemetry"]),
    Case("hello", ["hello"]),
    Case("blur", ["blur"]),
    Case("histogram", ["histogram"]),
]

# A program with known mistakes (careless.c), each of which must be found.
CARELESS = [Case(f"careless-{mistake}", ["careless", mistake], ["in"], {"out": "bytes"}, before={"out": "older"})
            for mistake in ("none", "crashes", "ignores", "silent", "wrong", "litters", "tears", "destroys", "hangs")]

# Where mistakes were found: case, call, function.
FOUND = [
    ("tonemap-pfm", "fstat", "peek_look"),
    ("tonemap-raw", "fstat", "video_source_"),
    ("tonemap-analyse", "fstat", "peek_look"),
    ("tonemap-map", "lseek", "peek_look"),
    ("tonemap-batch", "calloc", "batch_run"),
    ("tonemap-batch", "stat", "batch_run"),
    ("tonemap-frame", "calloc", "video_libav_knows"),
    ("tonemap-mkv", "lseek", "seek_bytes"),
    ("tonemap-mkv", "av_dict_copy", "add_stream"),
    ("tonemap-mkv", "av_dict_copy", "muxed_copies_describe"),
    ("tonemap-mkv", "av_dict_set", "libav_open_container"),
    ("tonemap-mkv", "av_dict_set", "muxed_copies_describe"),
    ("tonemap-mkv", "avcodec_parameters_copy", "add_stream"),
    ("tonemap-mkv", "avformat_new_stream", "add_stream"),
    ("tonemap-mkv", "avformat_write_header", "muxed_copies_add"),
    ("lab-sim", "malloc", "strict_parse"),
    ("lab-merge", "malloc", "lab_store_merge"),
    ("lab-merge", "realloc", "lab_store_merge"),
    ("lab-sim-record", "unlink", "lab__store_settle"),
    ("lab-sim-record", "fread", "lab_provenance_read"),
    ("lab-report", "strndup", "add_run"),
    ("lab-report", "strndup", "chart_session"),
    ("lab-replay", "calloc", "lab_simulate"),
    ("lab-fit", "fputs", "lab_fit_main"),
]

# What is printed may differ after these: the program goes on with less knowledge of the machine and its devices.
FALLBACKS = re.compile("cox__topology_create|cox__cl_host_memory")


def found_before(strikes):
    """For each place where a mistake was found, one strike there."""
    for case, call, function in FOUND:
        yield from [strike for strike in strikes if strike.case.name == case and strike.call == call
                    and function in strike.where][:1]


def write_films(folder):
    """Three frames of 64 x 32 with 4:2:0 and 10 bits, as y4m and raw."""
    draw = random.Random(1)
    frames = []
    for n in range(3):
        samples = [min(1023, 64 + (i * 13 + n * 29) % 600 + draw.randrange(8)) for i in range(64 * 32 * 3 // 2)]
        frames.append(struct.pack(f"<{len(samples)}H", *samples))
    (folder / "film.yuv").write_bytes(b"".join(frames))
    header = b"YUV4MPEG2 W64 H32 F25:1 Ip A1:1 C420p10\n"
    (folder / "film.y4m").write_bytes(header + b"".join(b"FRAME\n" + frame for frame in frames))


def write_pictures(folder):
    """A PFM, a Radiance and an OpenEXR picture of 64 x 32 or less, and a kernel."""
    rgb = [0.1 + (i * 7 % 97) / 20 for i in range(64 * 32 * 3)]
    (folder / "pic.pfm").write_bytes(b"PF\n64 32\n-1.0\n" + struct.pack(f"<{len(rgb)}f", *rgb))
    pixels = bytes(value for i in range(64 * 32) for value in (i % 200 + 20, i % 150 + 50, i % 99 + 99, 128))
    (folder / "pic.hdr").write_bytes(b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 32 +X 64\n" + pixels)
    (folder / "k.cl").write_text("kernel void k(global uint *o) { o[get_global_id(0)] = 1; }\n")


def ffmpeg(folder, *arguments):
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *arguments], cwd=folder, check=True)


def prepare_careless(folder):
    (folder / "in").write_bytes(b"new" * 1000)
    (folder / "older").write_bytes(b"older" * 100)


def prepare(folder, program):
    """Make all inputs in `folder`. `program(NAME, ARGUMENTS...)` runs one of our programs there."""
    write_films(folder)
    write_pictures(folder)
    (folder / "texts").write_text(";FFMETADATA1\ntitle=A film\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=60\ntitle=One\n")
    ffmpeg(folder, "-strict", "-1", "-i", "film.y4m", "-f", "lavfi", "-i", "sine=r=8000:d=0.12", "-i", "texts", "-map_metadata",
           "2", "-map", "0:v", "-map", "1:a", "-metadata:s:a", "language=fin", "-metadata:s:v", "language=swe", "-c:v", "ffv1", "-c:a", "flac",
           "-color_trc", "smpte2084", "-color_primaries", "bt2020", "-colorspace", "bt2020nc", "film.mkv")
    ffmpeg(folder, "-i", "pic.pfm", "-compression", "zip1", "pic.exr")

    for part in ("1", "2"):
        program("cox-tonemap", "analyse", "film.y4m", "--share", f"{part}/2", "-o", f"{part}.part", *CPU)
    program("cox-tonemap", "steer", "1.part", "2.part", "-o", "film.scene")
    for part in ("1", "2"):
        for end in ("y4m", "mkv"):
            program("cox-tonemap", "map", "film.y4m", "--scene", "film.scene", "--share", f"{part}/2", "-o", f"{part}.{end}",
                    *CPU, *(FFV1 if end == "mkv" else []))
    program("cox-tonemap", "film.mkv", "-o", "older.mkv", "--frames", "1", *CPU, *FFV1)
    program("cox-tonemap", "pic.pfm", "-o", "older.png", *CPU)
    program("cox-tonemap", "pic.pfm", "-o", "hdr.png", "--hdr", "1000", *CPU)
    (folder / "older.json").write_text("{}")
    for name in ("one.db", "two.db"):
        program("cox-lab", "sim", "--scenario", "step-2", "--policy", "adaptive,static", "--seeds", "1", "--frames", "20",
                "--record", name)
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
