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

    def __init__(self, core, source):
        self._core = core
        self._source = source
        self._parameters = {p.name: p for p in parameters_of(core, source, None) if p.kind != "filled_in"}
        self._given = {}
        for parameter in self._parameters.values():
            if parameter.kind not in ("buffer", "value"):
                raise TypeError(f"'{parameter.name}' is an image or local memory; use a session")

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

        for name, value in self._given.items():
            if self._parameters[name].kind == "buffer":
                _check_array(self._parameters[name], value)

    def run(self, rows, columns):
        """Run the kernel, and return what it wrote."""
        rows, columns = self._shape(rows, columns)
        outputs, values = [], []
        for name, parameter in self._parameters.items():
            value = self._given.get(name)
            if parameter.kind == "value":
                value = _value(parameter, value)
            else:
                value = _output(parameter, rows, columns) if value is None else value
                _check_size(parameter, value, rows, columns)
                if parameter.writes:
                    outputs.append(value)
            values.append(value)

        pointers = [ffi.cast("void *", address(value)) for value in values]
        arguments = ffi.new("void *[]", [*pointers, ffi.NULL])
        mark = self._core.hub.enter()
        status = lib.cox_run(self._core.runtime(), self._source.encode(), columns, rows, arguments)
        self._core.check(status, mark)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _shape(self, rows, columns):
        """Rows and columns, if need be those of the first array with two dimensions."""
        for name, array in self._given.items():
            parameter = self._parameters[name]
            if parameter.kind != "buffer" or array.ndim < 2 or array.size == 0:
                continue
            if rows is None:
                rows = array.shape[0]
            if columns is None:
                columns = array.nbytes // array.shape[0] // parameter.type_bytes
        if rows is None or columns is None:
            raise ValueError("no array has two dimensions; give rows=… and columns=…")
        return rows, columns


def _check_array(parameter, array):
    name, (dtype, _) = parameter.name, element(parameter.type)
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"{name}: a numpy array is needed, not {type(array).__name__}")
    if dtype is None:
        raise TypeError(f"{name}: '{parameter.type}' is no type of OpenCL C; use a session with `buffers`")
    if array.dtype != dtype:
        raise TypeError(wrong_type(name, array, parameter.type, dtype))
    if not array.flags.c_contiguous:
        raise ValueError(f"{name}: the array is not contiguous; use numpy.ascontiguousarray({name})")
    if parameter.writes and not array.flags.writeable:
        raise ValueError(f"{name}: the array is read-only, but the kernel writes it")


def _check_size(parameter, array, rows, columns):
    needed = rows * columns * parameter.type_bytes
    if array.nbytes != needed:
        raise ValueError(
            f"{parameter.name}: {array.nbytes} bytes, but {rows} rows of {columns} {parameter.type} are {needed}"
        )


def _output(parameter, rows, columns):
    dtype, width = element(parameter.type)
    if not parameter.writes or dtype is None:
        raise TypeError(f"the kernel's argument '{parameter.name}' is missing")
    return numpy.empty((rows, columns) if width == 1 else (rows, columns, width), dtype)


def _value(parameter, value):
    """An array with a value, as many numbers as its type has."""
    name, (dtype, width) = parameter.name, element(parameter.type)
    if value is None:
        raise TypeError(f"the kernel's argument '{name}' is missing")
    if dtype is None:
        raise TypeError(f"{name}: '{parameter.type}' is no type of OpenCL C; use a session with `constants`")

    given = numpy.array(value, dtype).reshape(-1)
    count = 3 if parameter.type.endswith("3") else width
    if given.size != count:
        raise ValueError(f"{name}: a {parameter.type} has {count} values, not {given.size}")
    return numpy.resize(given, width)
