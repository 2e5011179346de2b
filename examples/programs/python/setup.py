"""A wheel for the library that pkg-config finds:  pip wheel --no-build-isolation --no-deps .

SPDX-License-Identifier: Apache-2.0
"""
import os
import shlex
import subprocess
import sys

from setuptools import setup

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import cdef  # pylint: disable=wrong-import-position


def pkg_config(*options):
    """What pkg-config says about the library, as words."""
    program = os.environ.get("PKG_CONFIG", "pkg-config")
    try:
        return shlex.split(subprocess.check_output([program, *options, "coxswain"], text=True))
    except (OSError, subprocess.CalledProcessError):
        sys.exit("setup.py: pkg-config does not find coxswain; install the library, or set PKG_CONFIG_PATH")


def extension():
    """The module's extension, for setuptools."""
    include_dirs = [word[2:] for word in pkg_config("--cflags-only-I")] or pkg_config("--variable=includedir")
    library_dirs = [word[2:] for word in pkg_config("--libs-only-L")]
    made = cdef.builder(
        include_dirs,
        sources=["glue.c"],
        include_dirs=[*include_dirs, HERE],
        libraries=["coxswain"],
        library_dirs=library_dirs,
        runtime_library_dirs=library_dirs,
        extra_link_args=["-pthread"],
    ).distutils_extension("build/generated")
    made.py_limited_api = True  # every Python 3 can load it
    return made


setup(version=pkg_config("--modversion")[0], ext_modules=[extension()], options={"bdist_wheel": {"py_limited_api": "cp39"}})
