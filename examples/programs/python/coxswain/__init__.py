"""Coxswain splits every frame of OpenCL kernels over all devices of a machine.

    import coxswain as cox

    inverted = cox.run("kernel void invert(global const uint *in, global uint *out, int columns, int rows) {…}", picture)

Runtime has the devices, Session runs frames that repeat, Frame is a frame under way. Kernels, parameters and records
are those of the library's headers: classes such as Pass, BufferLayout and VideoShape take the fields of the struct of
that name as keyword arguments, and enumerators such as E_INVALID lose their COX_. `ffi` and `lib` are cffi's, with all
functions of the headers.

SPDX-License-Identifier: Apache-2.0
"""
import threading

from . import lab
from ._coxswain import ffi, lib
from .errors import CLASSES, Error
from .library import Pipeline, functions
from .reports import Reports
from .runtime import Runtime
from .session import Frame, Pass, Session
from .structs import struct_class

__version__ = ffi.string(lib.cox_version()).decode()

globals().update({made.__name__: made for made in CLASSES.values()})
globals().update(functions())
globals().update({name[4:]: getattr(lib, name) for name in dir(lib) if name.startswith("COX_")})
for _name in ffi.list_types()[1]:
    if _name.startswith("cox_") and ffi.typeof(f"struct {_name}").fields is not None:
        _made = struct_class(ffi.typeof(f"struct {_name}"))
        globals().setdefault(_made.__name__, _made)
del _name, _made

_default = None
_default_lock = threading.Lock()


def default_runtime():
    """The runtime with every device once. It is made when it is first needed, and lives until the process ends."""
    global _default  # pylint: disable=global-statement
    with _default_lock:
        if _default is None:
            _default = Runtime()
        return _default


def run(source, *arguments, **named):
    """Runtime.run of the default runtime."""
    return default_runtime().run(source, *arguments, **named)


def empty(shape, dtype=float):
    """Runtime.empty of the default runtime."""
    return default_runtime().empty(shape, dtype)


