"""What kernels take, as the library reads it from their source.

SPDX-License-Identifier: Apache-2.0
"""
import numpy

from ._coxswain import ffi, lib
from .arrays import element
from .structs import record


def parameters_of(core, source, kernel):
    """Records with the fields of struct cox_parameter."""
    found = ffi.new("struct cox_parameter[]", lib.COX_ARGUMENTS_MAX)
    count = ffi.new("uint32_t *")
    name = kernel.encode() if kernel else ffi.NULL
    mark = core.hub.enter()
    core.check(lib.cox_kernel_parameters(core.runtime(), source.encode(), name, found, count), mark)
    return [record(found[i]) for i in range(count[0])]


class Signatures:
    """The parameters of all kernels of a session."""

    def __init__(self, core, passes):
        self.types = {}  # OpenCL's types of each buffer's elements, by the buffer's name
        self.values = {}  # OpenCL's type of each constant
        self.takes_all_constants = False
        source = None
        for one in passes:
            source = one.get("source") or source
            if source is None:
                continue
            buffers = {a["name"]: a["buffer"] for a in one.get("arguments") or () if a.get("buffer")}
            for parameter in parameters_of(core, source, one.get("kernel")):
                self._take(parameter, buffers)

    def _take(self, parameter, buffers):
        name = parameter.name
        if parameter.kind == "buffer":
            self.types.setdefault(buffers.get(name, name), set()).add(parameter.type)
        elif parameter.kind == "value" and name == "constants":
            self.takes_all_constants = True
        elif parameter.kind == "value":
            if self.values.setdefault(name, parameter.type) != parameter.type:
                raise TypeError(f"'{name}' is {self.values[name]} in one kernel and {parameter.type} in another")

    def constants(self):
        """The numpy struct type of all constants, or None."""
        if self.takes_all_constants:
            raise TypeError("a kernel takes `constants`; describe them: constants=numpy.dtype([…], align=True)")
        if not self.values:
            return None

        fields = []
        for name, of in self.values.items():
            dtype, width = element(of)
            if dtype is None:
                raise TypeError(f"'{of} {name}' is no type of OpenCL C; describe it: constants=numpy.dtype([…])")
            fields.append((name, dtype) if width == 1 else (name, dtype, (width,)))
        return numpy.dtype(fields)


def wrong_type(name, array, of, dtype):
    """The message for an array of another type than the kernel's."""
    return f"{name}: the array's type is {array.dtype}, the kernel's is {of}; use {name}.astype(numpy.{dtype})"
