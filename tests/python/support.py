"""What the tests of the Python module share.

Each file is a test of its own: python3 FILE SOURCE_DIR BIN_DIR, with PYTHONPATH. Exit status 77: skipped.
SPDX-License-Identifier: Apache-2.0
"""
import os
import subprocess
import sys
import textwrap
import threading
import unittest

import coxswain as cox

SOURCE, BIN = (sys.argv[1:3] + [".", "."])[:2]

INVERT = """kernel void invert(global const uint *in, global uint *out, int columns, int rows)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x < columns && y < rows)
        out[y * columns + x] = ~in[y * columns + x];
}"""

SCALE = """kernel void scale(global const float *in, global float *out, int columns, int rows, float factor, int more)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x < columns && y < rows)
        out[y * columns + x] = factor * in[y * columns + x] + more;
}"""

# Each work-item computes for a while, so that frames are probably under way when the test goes on.
SLOW = """kernel void slow(global const uint *in, global uint *out, int columns, int rows)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= columns || y >= rows)
        return;
    uint value = in[y * columns + x];
    for (int i = 0; i < 1000; i++)
        value = value * 1664525u + 1013904223u;
    out[y * columns + x] = value;
}"""


class Gate:
    """A function for Pass.done that holds a frame until `open` is set."""

    def __init__(self):
        self.entered = threading.Event()
        self.open = threading.Event()

    def __call__(self, buffers, constants):
        self.entered.set()
        self.open.wait(600)


def open_runtime(devices="cpu:2x1", **params):
    """A runtime, or the process ends with status 77."""
    try:
        return cox.Runtime(devices, **params)
    except (cox.NoPlatformError, cox.NoDeviceError, cox.NotFoundError, cox.InvalidError) as problem:
        print(f"skipped, because there is no OpenCL device {devices}: {problem}")
        sys.exit(77)


class OnDevices(unittest.TestCase):
    """Tests with one runtime for all."""

    @classmethod
    def setUpClass(cls):
        cls.runtime = open_runtime()

    @classmethod
    def tearDownClass(cls):
        cls.runtime.close()


def run_script(text, *arguments, timeout=600):
    """Run a script in a process of its own. Returns its status, output and errors."""
    setup = "import sys; sys.path.insert(0, sys.argv.pop(1))\nimport coxswain as cox, numpy as np\nfrom support import *\n"
    done = subprocess.run(
        [sys.executable, "-c", setup + textwrap.dedent(text), os.path.dirname(os.path.abspath(__file__)), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def main():
    """Run the tests of the file."""
    unittest.main(argv=sys.argv[:1], verbosity=1)
