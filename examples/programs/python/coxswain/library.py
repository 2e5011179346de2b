"""The library's functions for filters, tone mapping and video, as the headers declare them.

cox_filter_gaussian(&shape, &pipeline) is coxswain.filter_gaussian(shape). Structs are dicts or their classes. A function
that makes a pipeline or a frame's constants returns it, and raises Error.

SPDX-License-Identifier: Apache-2.0
"""
from ._coxswain import ffi, lib
from .errors import error
from .structs import Builder

_PIPELINE = ffi.typeof("cox_pipeline **")
_CONSTANTS = ffi.typeof("struct cox_constants *")


class Pipeline:
    """Passes that the library provides, for Runtime.session(pipeline=…)."""

    def __init__(self, holder):
        self._holder = ffi.gc(holder, lib.cox_pipeline_destroy)

    def _pointer(self):
        return self._holder[0]

    def use_variant(self, device_type):
        """Make every device run the kernels' variant for "cpu" or "gpu"."""
        number = {"cpu": lib.COX_DEVICE_CPU, "gpu": lib.COX_DEVICE_GPU}[device_type]
        status = lib.cox_pipeline_use_variant(self._pointer(), number)
        if status:
            raise error(status)


def _wrap(name, function):
    parameters = ffi.typeof(function).args
    result = parameters[-1]

    def call(*arguments):
        if len(arguments) != len(parameters) - 1:
            raise TypeError(f"{name} takes {len(parameters) - 1} arguments, {len(arguments)} were given")
        builder = Builder()
        converted = []
        for ctype, value in zip(parameters, arguments):
            converted.append(builder._pointer(ctype, value) if ctype.kind == "pointer" else value)

        out = ffi.new("cox_pipeline **" if result is _PIPELINE else "struct cox_constants *")
        status = function(*converted, out)
        if status:
            raise error(status, [f"{name}: an argument, or a field of the shape, is out of its range"])
        return Pipeline(out) if result is _PIPELINE else out

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"cox_{name} of the headers. Takes {', '.join(p.cname for p in parameters[:-1])}."
    return call


def functions():
    """All functions of the headers that make a pipeline or constants, by their names without cox_."""
    found = {}
    for name in dir(lib):
        if name.startswith(("cox_filter_", "cox_tonemap_", "cox_video_")):
            function = getattr(lib, name)
            if ffi.typeof(function).args[-1] in (_PIPELINE, _CONSTANTS):
                found[name[4:]] = _wrap(name[4:], function)
    return found
