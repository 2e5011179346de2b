#!/usr/bin/env python3
"""What a frame costs more from Python than from C:  PYTHONPATH=build/python python-overhead.py [DEVICES]

The same session runs the same tiny frame, from a loop in C and from a loop in Python, in blocks that take turns. Each
figure is a median over the blocks. On a busy machine only the processor time says something. The loop in C is compiled
with cc.
SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import coxswain as cox

BLOCKS, FRAMES = 60, 200
SOURCE = """
kernel void scale(global const float *in, global float *out, int columns, int rows, float factor)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x < columns && y < rows)
        out[y * columns + x] = factor * in[y * columns + x];
}"""
LOOP = """
#include <stdint.h>
int loop(int (*run)(void *, const void *), void *session, const void *frame, int frames)
{
    int failed = 0;
    for (int i = 0; i < frames; i++)
        failed += run(session, frame) != 0;
    return failed;
}"""


def compiled_loop(folder):
    source, library = os.path.join(folder, "loop.c"), os.path.join(folder, "loop.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(LOOP)
    subprocess.check_call(["cc", "-O2", "-shared", "-fPIC", source, "-o", library])
    return ctypes.CDLL(library).loop


def address(cdata):
    return ctypes.c_void_p(int(cox.ffi.cast("uintptr_t", cdata)))


def microseconds(call):
    """Of this thread's processor, and by the clock."""
    processor, clock = time.thread_time(), time.perf_counter()
    call()
    return [(time.thread_time() - processor) * 1e6 / FRAMES, (time.perf_counter() - clock) * 1e6 / FRAMES]


def say(what, pairs):
    c, python = (statistics.median(column) for column in zip(*pairs))
    more = statistics.median(p - c for c, p in pairs)
    print(f"{what}: C {c:.1f}, Python {python:.1f}, more in Python {more:.1f}")


def main():
    devices = sys.argv[1] if len(sys.argv) > 1 else "cpu:2x1"
    a = np.ones((16, 16), np.float32)
    out = np.empty_like(a)
    with tempfile.TemporaryDirectory() as folder, cox.Runtime(devices) as runtime:
        loop = compiled_loop(folder)
        session = runtime.session(SOURCE, shape=a.shape, policy="static")
        _, buffers, _, constants, _ = session._gather((a, out), {"factor": 2.0})  # what run() makes of its arguments
        frame = cox.ffi.new("struct cox_frame *")
        frame.buffers = listed = cox.ffi.new("cox_buffer *[]", [*(buffer.c for buffer in buffers), cox.ffi.NULL])
        frame.constants = constants = cox.ffi.from_buffer(constants)
        run = address(cox.ffi.addressof(cox.lib, "cox_session_run"))

        def in_c():
            if loop(run, address(session._pointer()), address(frame), FRAMES):
                raise SystemExit("a frame failed")

        def in_python():
            for _ in range(FRAMES):
                session.run(a, out, factor=2.0)

        in_c()
        in_python()
        pairs = [(microseconds(in_c), microseconds(in_python)) for _ in range(BLOCKS)]
    print(f"{BLOCKS} blocks of {FRAMES} frames of 16 x 16 on {devices}, microseconds a frame")
    say("the calling thread's processor time", [(c[0], python[0]) for c, python in pairs])
    say("elapsed", [(c[1], python[1]) for c, python in pairs])


if __name__ == "__main__":
    main()
