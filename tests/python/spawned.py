"""What life.py runs in a process that was spawned.

SPDX-License-Identifier: Apache-2.0
"""
import coxswain as cox
import numpy as np

from support import INVERT


def work(value):
    """Invert a number."""
    with cox.Runtime("cpu:2x1") as runtime:
        return int(runtime.run(INVERT, np.full((4, 4), value, np.uint32))[0, 0])
