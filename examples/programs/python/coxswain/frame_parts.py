"""The parts of a frame: what it gives for each buffer, and its constants.

SPDX-License-Identifier: Apache-2.0
"""
import struct

import numpy

from .arrays import element, is_contiguous_in_rows, room_behind
from .kernel import wrong_type


class Slot:
    """What a frame gives for one buffer."""

    def __init__(self, info, types, row_bytes):
        self.name = info.name
        self.bytes = info.bytes
        self.pitch = info.pitch_bytes
        self.writes = info.writes
        self.row_bytes = row_bytes
        known = {of: element(of) for of in types}
        self.dtypes = {dtype: of for of, (dtype, _) in known.items()}
        if None in self.dtypes:
            self.dtypes = {}
        self.width = next((width for _, width in known.values()), 1) if len(known) == 1 else 1

    def check(self, array):
        """Raise what is wrong with an array."""
        if not isinstance(array, numpy.ndarray):
            raise TypeError(f"{self.name}: a numpy array is needed, not {type(array).__name__}")
        if self.dtypes and array.dtype not in self.dtypes:
            dtype, of = next(iter(self.dtypes.items()))
            raise TypeError(wrong_type(self.name, array, of, dtype))
        flags = array.flags
        if self.writes and not flags.writeable:
            raise ValueError(f"{self.name}: the array is read-only, but a kernel writes it")
        if flags.c_contiguous:
            self._check_size(array)
        else:
            self._check_rows(array)

    def _check_size(self, array):
        rows_fit = array.ndim < 2 or not self.pitch or array.shape[0] < 2 or array.strides[0] == self.pitch
        if array.nbytes != self.bytes or not rows_fit:
            raise ValueError(f"{self.name}: an array of shape {array.shape} has {array.nbytes} bytes{self._expected()}")

    def _check_rows(self, array):
        if not is_contiguous_in_rows(array):
            raise ValueError(
                f"{self.name}: elements of a row are not next to each other; use numpy.ascontiguousarray({self.name})"
            )
        if array.strides[0] != self.pitch or array.shape[0] * self.pitch != self.bytes:
            raise ValueError(
                f"{self.name}: {array.shape[0]} rows, each {array.strides[0]} bytes after the one before{self._expected()}; "
                f"create the session with buffers=[…, BufferLayout('{self.name}', pitch_bytes={array.strides[0]})], "
                f"or use numpy.ascontiguousarray({self.name})"
            )
        if self.writes and not self.row_bytes:
            raise ValueError(f"{self.name}: a frame may write between the rows of this view; use a contiguous array")
        if room_behind(array) < self.bytes:
            raise ValueError(
                f"{self.name}: the last row needs {self.pitch} bytes of memory, as the others; "
                f"use numpy.ascontiguousarray({self.name})"
            )

    def _expected(self):
        if not self.pitch:
            return f"; the session needs {self.bytes}"
        return f"; the session needs {self.bytes // self.pitch} rows of {self.pitch} bytes"

    def make(self, given):
        """A new array for what a frame writes, with the shape of another one of the same size."""
        for other in given:
            if isinstance(other, numpy.ndarray) and other.dtype in self.dtypes and other.nbytes == self.bytes:
                if other.flags.c_contiguous:
                    return numpy.empty(other.shape, other.dtype)
        dtype = next(iter(self.dtypes), numpy.dtype("u1"))
        rows = self.bytes // self.pitch if self.pitch else 1
        shape = (rows, self.bytes // rows // dtype.itemsize // self.width, self.width)
        shape = shape if self.width > 1 else shape[:2]
        return numpy.empty(shape if self.pitch else shape[1:], dtype)


class Pack:
    """Makes a frame's constants of values by name."""

    def __init__(self, dtype):
        self._dtype = dtype
        self.names = dtype.names if dtype is not None else ()
        self._struct = self._plain_struct() if dtype is not None else None

    def _plain_struct(self):
        """For numbers alone, a struct.Struct is faster than numpy."""
        text, at = "=", 0
        for name in self.names:
            of, offset = self._dtype.fields[name][:2]
            if of.char not in "bBhHiIlLefd" or not of.isnative or offset < at:
                return None
            text += f"{offset - at}x" + {"l": "q", "L": "Q"}.get(of.char, of.char)
            at = offset + of.itemsize
        return struct.Struct(text + f"{self._dtype.itemsize - at}x")

    def check(self, values):
        """All constants are given."""
        missing = [name for name in self.names if name not in values]
        if missing:
            raise TypeError(f"a frame needs the constants {', '.join(missing)}")

    def __call__(self, values):
        """Memory for values in the order of `names`."""
        if self._struct is not None:
            try:
                return self._struct.pack(*values)
            except (struct.error, OverflowError):
                pass  # numpy converts it, or says what is wrong
        made = numpy.zeros((), self._dtype)
        for name, value in zip(self.names, values):
            made[name] = value
        return made.tobytes()
