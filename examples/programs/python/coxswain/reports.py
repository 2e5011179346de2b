"""What frames cost, as numpy struct arrays.

SPDX-License-Identifier: Apache-2.0
"""
import collections

import numpy

from ._coxswain import ffi
from .structs import numpy_type

Reports = collections.namedtuple("Reports", "frames passes bands")


def read_reports(first):
    """Reports of a list of struct coxpy_report."""
    frame_type = ffi.typeof("struct cox_frame_report")
    frames, bands, passes = [], [], []
    report = first
    while report != ffi.NULL:
        frame = report.frame
        frames.append(bytes(ffi.buffer(ffi.addressof(report, "frame"))))
        bands.append(bytes(ffi.buffer(frame.bands, frame.band_count * ffi.sizeof("struct cox_band_report"))))
        passes.append(bytes(ffi.buffer(frame.passes, frame.pass_count * ffi.sizeof("struct cox_pass_report"))))
        report = report.next

    whole = numpy.frombuffer(b"".join(frames), numpy_type(frame_type))
    return Reports(
        _packed(whole),
        _with_frame(passes, "struct cox_pass_report", whole, "pass_count"),
        _with_frame(bands, "struct cox_band_report", whole, "band_count"),
    )


def _packed(array, before=()):
    """A copy without the gaps between C's fields, and with more fields before: (name, values)."""
    fields = [(name, values.dtype) for name, values in before]
    fields += [(name, array.dtype[name]) for name in array.dtype.names]
    made = numpy.empty(len(array), fields)
    for name, values in before:
        made[name] = values
    for name in array.dtype.names:
        made[name] = array[name]
    return made


def _with_frame(pieces, ctype, frames, count):
    array = numpy.frombuffer(b"".join(pieces), numpy_type(ffi.typeof(ctype)))
    names = (("frame", "index"), ("warmup", "warmup"), ("shadow", "shadow"))
    return _packed(array, [(name, numpy.repeat(frames[field], frames[count])) for name, field in names])
