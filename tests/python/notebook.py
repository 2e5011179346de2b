"""The notebook in examples/ runs, and its first programs are short.

SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import subprocess
import sys
import unittest

import support

NOTEBOOK = os.path.join(support.SOURCE, "examples", "notebook.py")
MOST_LINES = 10


def cells():
    """The lines of code of each cell, by its title."""
    with open(NOTEBOOK, encoding="utf-8") as file:
        parts = re.split(r"^# %% (.*)$", file.read(), flags=re.M)
    return {title: [line for line in body.splitlines() if line.strip()] for title, body in zip(parts[1::2], parts[2::2])}


class Notebook(unittest.TestCase):
    def test_hello_blur_and_video_are_short(self):
        for start in ("Hello", "Blur", "A frame of HDR video"):
            (title,) = [title for title in cells() if title.startswith(start)]
            self.assertLessEqual(len(cells()[title]), MOST_LINES, title)

    def test_it_runs(self):
        support.open_runtime().close()  # or the test is skipped
        done = subprocess.run([sys.executable, NOTEBOOK], capture_output=True, text=True, timeout=1000, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"COX_E_BUILD use of undeclared identifier 'nothing'|COX_E_BUILD .*nothing")


if __name__ == "__main__":
    support.main()
