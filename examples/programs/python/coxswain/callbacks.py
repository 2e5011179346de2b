"""Callbacks of the library that are written in Python.

They run on the scheduler thread, which waits for Python's global lock. What one raises is raised by its frame.
SPDX-License-Identifier: Apache-2.0
"""
import numpy

from ._coxswain import ffi, lib
from .arrays import element


@ffi.def_extern()
def python_cox_merge_fn(into, partial, size, user):  # pylint: disable=missing-function-docstring
    ffi.from_handle(user)(into, partial, size)


@ffi.def_extern()
def python_cox_pass_done_fn(user, buffers, constants):  # pylint: disable=missing-function-docstring
    ffi.from_handle(user)(buffers, constants)


@ffi.def_extern(error=-1.0)
def python_cox_meter_fn(user):  # pylint: disable=missing-function-docstring
    return ffi.from_handle(user)()


class Callbacks:
    """Makes C callbacks of Python's functions. What one raises is raised by the frame that it belongs to."""

    def __init__(self):
        self.types = {}  # of buffers' elements, by name
        self.buffers = []  # records of all buffers of the session
        self.constants = None
        self.raised = None

    def table(self):
        """For Builder."""
        makers = {"cox_merge_fn": self._merge, "cox_pass_done_fn": self._done, "cox_meter_fn": self._meter}
        return {ffi.typeof(f"{name} *"): maker for name, maker in makers.items()}

    def take_raised(self):
        """What a callback has raised since the last call, or None."""
        raised, self.raised = self.raised, None
        return raised

    def _guard(self, function):
        def guarded(*arguments):
            try:
                return function(*arguments)
            except BaseException as problem:  # pylint: disable=broad-except  # C cannot pass it on
                self.raised = problem
                return -1.0

        return guarded

    def _array(self, name, pointer, size):
        dtypes = {element(of)[0] for of in self.types.get(name, ())}
        dtype = dtypes.pop() if len(dtypes) == 1 else None
        return numpy.frombuffer(ffi.buffer(pointer, size), dtype or numpy.uint8)

    def _merge(self, function, layout):
        name = layout["name"]
        function = getattr(numpy, function) if isinstance(function, str) else function

        def merge(into, partial, size):
            target, part = self._array(name, into, size), self._array(name, partial, size)
            if isinstance(function, numpy.ufunc):
                function(target, part, out=target)
            else:
                function(target, part)

        return self._extern("cox_merge_fn", merge)

    def _done(self, function, _):
        def done(buffers, constants):
            arrays = {}
            for i, buffer in enumerate(self.buffers):
                if buffer.bytes and buffers[i] != ffi.NULL:
                    array = self._array(buffer.name, buffers[i], buffer.bytes)
                    array.flags.writeable = False
                    arrays[buffer.name] = array
            given = None
            if self.constants is not None:
                given = numpy.frombuffer(ffi.buffer(constants, self.constants.itemsize), self.constants)[:1]
            function(arrays, given)

        return self._extern("cox_pass_done_fn", done)

    def _meter(self, function, _):
        return self._extern("cox_meter_fn", lambda: float(function()))

    def _extern(self, name, function):
        return ffi.addressof(lib, f"python_{name}"), ffi.new_handle(self._guard(function))
