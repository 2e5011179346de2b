"""One kernel, run once: Runtime.run.

SPDX-License-Identifier: Apache-2.0
"""
import numpy

from ._coxswain import ffi, lib
from .arrays import address, element
from .kernel import parameters_of, wrong_type
from .structs import field_name


class Once:
    """One call of Runtime.run."""

    def __init__(self, runtime, source):
        self._runtime = runtime
        self._core = runtime._core
        self._source = source
        runtime._pointer()
        found = parameters_of(self._core, source, None)
        self._parameters = {p.name: p for p in found if p.kind != "filled_in"}
        self._given = {}

    def take(self, arguments, named):
        """Assign arguments to parameters."""
        if len(arguments) > len(self._parameters):
            raise TypeError(f"the kernel takes {len(self._parameters)} arguments, {len(arguments)} were given")
        self._given = dict(zip(self._parameters, arguments))
        for name, value in named.items():
            name = field_name(name, self._parameters)
            if name not in self._parameters:
                raise TypeError(f"the kernel takes no argument '{name}'; it takes {', '.join(self._parameters)}")
            if name in self._given:
                raise TypeError(f"'{name}' is given twice")
            self._given[name] = value

    def _check_array(self, parameter, array):
        name, (dtype, _) = parameter.name, element(parameter.type)
        if not isinstance(array, numpy.ndarray):
            raise TypeError(f"{name}: a numpy array is needed, not {type(array).__name__}")
        if dtype is None:
            raise TypeError(f"{name}: the size of '{parameter.type}' is not known here; use a session with `buffers`")
        if array.dtype != dtype:
            raise TypeError(wrong_type(name, array, parameter.type, dtype))
        if not array.flags.c_contiguous:
            raise ValueError(f"{name}: the array is not contiguous; use numpy.ascontiguousarray({name})")
        if parameter.writes and not array.flags.writeable:
            raise ValueError(f"{name}: the array is read-only, but the kernel writes it")

    def _shape(self, rows, columns):
        for name, array in self._given.items():
            parameter = self._parameters[name]
            if parameter.kind == "buffer" and (rows is None or columns is None) and array.ndim > 1:
                rows = array.shape[0] if rows is None else rows
                columns = array.nbytes // max(array.shape[0], 1) // parameter.type_bytes if columns is None else columns
        if rows is None or columns is None:
            raise ValueError("no array has two dimensions; give rows=… and columns=…")
        return rows, columns

    def _output(self, parameter, rows, columns):
        dtype, width = element(parameter.type)
        if parameter.kind != "buffer" or not parameter.writes or dtype is None:
            raise TypeError(f"the kernel's argument '{parameter.name}' is missing")
        return numpy.empty((rows, columns) if width == 1 else (rows, columns, width), dtype)

    def run(self, rows, columns):
        """Check all arguments and run."""
        for name, value in self._given.items():
            if self._parameters[name].kind == "buffer":
                self._check_array(self._parameters[name], value)
        rows, columns = self._shape(rows, columns)

        outputs, values = [], []
        for name, parameter in self._parameters.items():
            value = self._given.get(name)
            if value is None:
                value = self._output(parameter, rows, columns)
            if parameter.kind == "buffer":
                needed = rows * columns * parameter.type_bytes
                if value.nbytes != needed:
                    raise ValueError(
                        f"{name}: {value.nbytes} bytes, but {rows} rows of {columns} {parameter.type} are {needed}"
                    )
            elif parameter.kind == "value":
                dtype, width = element(parameter.type)
                value = numpy.array(value, dtype).reshape(-1) if dtype else value
                if dtype and value.size * dtype.itemsize > parameter.type_bytes or value.size not in (1, width, 3):
                    raise ValueError(f"{name}: a {parameter.type} has {width} values, not {value.size}")
                value = numpy.resize(value, width) if value.size < width else value
            if parameter.writes:
                outputs.append(value)
            values.append(value)

        pointers = [ffi.cast("void *", address(value)) for value in values]
        arguments = ffi.new("void *[]", [*pointers, ffi.NULL])
        mark = self._core.hub.enter()
        status = lib.cox_run(self._runtime._pointer(), self._source.encode(), columns, rows, arguments)
        self._core.check(status, mark)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)
