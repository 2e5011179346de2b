"""Coxswain from Python, cell by cell: as a script, or in an editor that knows `# %%` cells.

PYTHONPATH=build/python python3 examples/notebook.py [DEVICES]
SPDX-License-Identifier: Apache-2.0
"""
# %% The devices. "cpu:2x1" makes two devices of one core each out of the CPU.
import sys

import coxswain as cox
import numpy as np

runtime = cox.Runtime(sys.argv[1] if len(sys.argv) > 1 else "cpu:2x1")
print([(device.name, device.type, device.compute_units) for device in runtime.devices])

# %% Hello: a kernel on all devices, once
picture = np.arange(1080 * 2048, dtype=np.uint32).reshape(1080, 2048)
inverted = runtime.run("""
    kernel void invert(global const uint *in, global uint *out, int columns, int rows)
    {
        int x = get_global_id(0), y = get_global_id(1);
        if (x < columns && y < rows)
            out[y * columns + x] = ~in[y * columns + x];
    }""", picture)
assert (inverted == ~picture).all()

# %% Blur: each row needs its neighbours
blur = """kernel void blur(global const float *in, int in_first_row, global float *out, int columns, int rows,
                           int first_row, int frame_rows, float strength) {
    int x = get_global_id(0), y = get_global_id(1), row = first_row + y, last = frame_rows - 1;
    if (x >= columns || y >= rows) return;
    float above = in[(max(row - 1, 0) - in_first_row) * columns + x], here = in[(row - in_first_row) * columns + x];
    float below = in[(min(row + 1, last) - in_first_row) * columns + x];
    out[y * columns + x] = mix(here, (above + here + below) / 3, strength); }"""
noise = np.random.default_rng(1).random((1080, 1920), np.float32)
session = runtime.session(cox.Pass(blur, halo_rows={"in": 1}), shape=noise.shape, in_flight=3, reports=True)
smooth = session.run(noise, strength=0.5)

# %% The same with numpy gives the same
padded = np.pad(noise, ((1, 1), (0, 0)), "edge")
assert np.allclose(smooth, noise / 2 + (padded[:-2] + padded[1:-1] + padded[2:]) / 6, atol=1e-5)

# %% Frames in flight: futures, completed in order
frames = [session.submit(noise, strength=strength) for strength in np.linspace(0, 1, 8)]
spread = [frame.result().std() for frame in frames]
assert spread == sorted(spread, reverse=True)

# %% A frame of HDR video, 10 bits, 4:2:0: three planes in, three planes out
width, height = 480, 270
codes = np.linspace(64, 940, width * height).astype(np.uint16).reshape(height, width)
chroma = np.full((height // 2, width // 2), 512, np.uint16)
subsampled = {"chroma_x_log2": 1, "chroma_y_log2": 1}
shape = cox.VideoShape(width, height, {"depth": 10, **subsampled}, {"depth": 8, **subsampled}, transfer="pq", op="bt2390",
                       in_pitch_bytes=[2 * width, width, width], out_pitch_bytes=[width, width // 2, width // 2])
video = runtime.session(pipeline=cox.video_mapping(shape, False))
luma, cb, cr = video.run(codes, chroma, chroma, constants=cox.video_prepare(shape, {"peak_nits": 1000}))
assert luma.shape == codes.shape and (np.diff(luma.ravel().astype(int)) >= -1).all()

# %% What frames cost
reports = session.reports()
bands = reports.bands[~reports.bands["warmup"]]
for device in np.unique(bands["device"]):
    mine = bands[bands["device"] == device]
    print(f"device {device}: {mine['rows'].sum()} rows, {mine['wall_ns'].sum() / mine['rows'].sum():.0f} ns a row")

# %% The same as a table, if pandas is installed
try:
    import pandas as pd
except ImportError:
    print("pandas is not installed")
else:
    print(pd.DataFrame(reports.bands).groupby(["pass", "device"])["rows"].sum())
    print(pd.DataFrame(runtime.devices)[["name", "type", "mode", "compute_units"]])

# %% What is wrong is an exception, with the library's lines of the log
try:
    runtime.session("kernel void broken(global int *out) { out[0] = nothing; }", shape=(64, 64))
except cox.BuildError as problem:
    print(problem.name, problem.log[0].split("error: ")[-1])

# %% The end
runtime.close()
