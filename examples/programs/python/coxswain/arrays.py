"""numpy arrays as buffers of the library, without copies.

SPDX-License-Identifier: Apache-2.0
"""
import threading
import weakref

import numpy

from ._coxswain import ffi, lib

_TYPES = {
    "char": "i1",
    "uchar": "u1",
    "short": "i2",
    "ushort": "u2",
    "half": "f2",
    "int": "i4",
    "uint": "u4",
    "float": "f4",
    "long": "i8",
    "ulong": "u8",
    "double": "f8",
}


def element(name):
    """The numpy type of a type of OpenCL C, and the values of a vector: float3 is f4 and 4. (None, 0): unknown."""
    scalar = name.rstrip("0123456789")
    width = name[len(scalar) :]
    if scalar not in _TYPES or width not in ("", "2", "3", "4", "8", "16"):
        return None, 0
    return numpy.dtype(_TYPES[scalar]), 4 if width == "3" else int(width or 1)


def is_contiguous_in_rows(array):
    """Whether each row is one piece of memory, and rows are in ascending order."""
    step = array.itemsize
    for length, stride in zip(reversed(array.shape[1:]), reversed(array.strides[1:])):
        if length > 1 and stride != step:
            return False
        step *= length
    return array.ndim > 1 and array.strides[0] >= step


def address(array):
    """Where its memory begins."""
    return array.__array_interface__["data"][0]


def room_behind(array):
    """Bytes from the array's first element to the end of the memory that it is a view of."""
    root = array
    while isinstance(root.base, numpy.ndarray):
        root = root.base
    if not root.flags.c_contiguous:
        return 0
    return address(root) + root.nbytes - address(array)


class Buffer:
    """A cox_buffer around memory. `owned`: the memory is the library's."""

    def __init__(self, core, pointer, owned=False):
        self.core = core
        self.c = pointer
        self.owned = owned
        self.data = lib.cox_buffer_data(pointer) if owned else None
        core.retain()

    def has_moved(self):
        """Whether the library finished a frame in other memory, because a device hung."""
        return self.owned and lib.cox_buffer_data(self.c) != self.data

    def __del__(self):
        core = self.core
        if not core.is_forked():
            holder = ffi.new("cox_buffer **", self.c)
            lib.cox_buffer_destroy(holder)
        core.release()


class Buffers:
    """The buffers of one runtime: a wrapped array has one, for as long as the array or a frame lives."""

    def __init__(self, core):
        self._core = core
        self._held = {}  # id of an array: weak reference to it, its buffer, the slots that it fits
        self.has_owned = False  # memory of the library's, see Buffer.has_moved
        self._live = weakref.WeakValueDictionary()  # address and size: buffer
        self._lock = threading.RLock()

    def of(self, array, slot):
        """The buffer for an array that a frame gives for `slot`. A slot checks an array once."""
        entry = self._held.get(id(array))
        if entry is not None and entry[0]() is array and slot in entry[2]:
            return entry[1]

        slot.check(array)
        with self._lock:
            key = (address(array), slot.bytes)
            buffer = self._live.get(key)
            if buffer is None:
                buffer = self._wrap(*key)
                self._live[key] = buffer
            held, identity = self._held, id(array)
            slots = entry[2] if entry is not None and entry[0]() is array and entry[1] is buffer else set()
            slots.add(slot)
            held[identity] = (weakref.ref(array, lambda _: held.pop(identity, None)), buffer, slots)
            return buffer

    def _wrap(self, at, size):
        core, out = self._core, ffi.new("cox_buffer **")
        mark = core.hub.enter()
        core.check(
            lib.cox_buffer_wrap(core.runtime(), ffi.cast("void *", at), size, ffi.NULL, ffi.NULL, out), mark
        )
        return Buffer(core, out[0])

    def empty(self, shape, dtype):
        """A new array in memory of the library's: aligned, and pinned if a device copies."""
        dtype = numpy.dtype(dtype)
        size = int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize
        core, out = self._core, ffi.new("cox_buffer **")
        mark = core.hub.enter()
        core.check(lib.cox_buffer_create(core.runtime(), size, out), mark)
        buffer = Buffer(core, out[0], owned=True)
        self.has_owned = True
        # The array keeps `memory`, and that keeps the buffer.
        memory = ffi.gc(ffi.cast("char *", buffer.data), lambda _, kept=buffer: None)
        array = numpy.frombuffer(ffi.buffer(memory, size), dtype=dtype).reshape(shape)
        with self._lock:
            self._live[(address(array), size)] = buffer
        return array

    def drop(self):
        """Let go of all arrays, when the runtime is closed."""
        self._held.clear()
