#!/usr/bin/env python3
"""Make the C source of the module's extension from the public headers, so that the two cannot differ.

    cdef.py INCLUDE_DIR... -o OUTPUT.c      write the source (CMake)
    import cdef; cdef.builder(dirs, ...)    the same for setuptools (setup.py)

The preprocessor reads coxswain/coxswain.h and glue.h. The result, without standard headers, is what cffi parses. For
each type of callback there is also a function PYTHON_NAME that calls Python.
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import re
import shlex
import subprocess
import tempfile

import cffi

HERE = os.path.dirname(os.path.abspath(__file__))
STANDARD = ("stdbool.h", "stddef.h", "stdint.h")  # cffi knows their types


def declarations(include_dirs):
    """All declarations of the public headers and of glue.h, preprocessed."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    with tempfile.TemporaryDirectory() as empty:
        for name in STANDARD:
            open(os.path.join(empty, name), "w", encoding="utf-8").close()
        folders = [f"-I{folder}" for folder in (empty, *include_dirs)]
        text = subprocess.check_output(
            [*compiler, "-E", "-P", "-nostdinc", "-D__attribute__(x)=", *folders, os.path.join(HERE, "glue.h")], text=True
        )
    return re.sub(r"^#.*$", "", text, flags=re.M)


def python_callbacks(text):
    """A function for each `typedef RESULT cox_NAME_fn(PARAMETERS)`."""
    found = re.findall(r"typedef\s+([^;{}()]*?)\b(cox_\w+_fn)\s*\(([^;]*)\)\s*;", text)
    return "\n".join(f"{result} python_{name}({parameters});" for result, name, parameters in found)


def builder(header_dirs, **options):
    """A cffi.FFI that makes coxswain._coxswain. `options`: more for set_source."""
    ffi = cffi.FFI()
    text = declarations(header_dirs)
    ffi.cdef(text)
    ffi.cdef('extern "Python" {' + python_callbacks(text) + "}")
    ffi.set_source("coxswain._coxswain", '#include "glue.h"', **options)
    return ffi


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("include_dirs", nargs="+")
    parser.add_argument("-o", required=True, dest="output")
    arguments = parser.parse_args()
    builder(arguments.include_dirs).emit_c_code(arguments.output)


if __name__ == "__main__":
    main()
