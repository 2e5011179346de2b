"""Sessions: frames of one shape, run through a list of kernels on all devices.

SPDX-License-Identifier: Apache-2.0
"""
import collections
import concurrent.futures
import contextlib
import struct
import threading
import time
import weakref

import numpy

from ._coxswain import ffi, lib
from .arrays import element, is_contiguous_in_rows, room_behind
from .kernel import Signatures, wrong_type
from .structs import Builder, Struct, field_name, fields_of, numpy_type, record, struct_class

_FRAME = fields_of(ffi.typeof("struct cox_frame"))
_ARGUMENT = fields_of(ffi.typeof("struct cox_argument"))

Reports = collections.namedtuple("Reports", "frames passes bands")


class _PassBase(Struct):
    """Adds: fields of struct cox_argument for arguments by name, such as halo_rows={"in": 1} or whole=["table"]."""

    def _set(self, name, value):
        if name in fields_of(self.ctype) or name not in _ARGUMENT:
            super()._set(name, value)
            return
        by_name = value if isinstance(value, dict) else {n: True for n in ([value] if isinstance(value, str) else value)}
        arguments = self.setdefault("arguments", [])
        for argument, setting in by_name.items():
            found = next((a for a in arguments if a["name"] == argument), None)
            if found is None:
                found = {"name": argument}
                arguments.append(found)
            found[name] = setting


Pass = struct_class(ffi.typeof("struct cox_pass"), _PassBase)
Pass.__doc__ += "\n\n" + _PassBase.__doc__


# ---- callbacks in Python ----
@ffi.def_extern()
def python_cox_merge_fn(into, partial, size, user):  # pylint: disable=missing-function-docstring
    ffi.from_handle(user)(into, partial, size)


@ffi.def_extern()
def python_cox_pass_done_fn(user, buffers, constants):  # pylint: disable=missing-function-docstring
    ffi.from_handle(user)(buffers, constants)


@ffi.def_extern(error=-1.0)
def python_cox_meter_fn(user):  # pylint: disable=missing-function-docstring
    return ffi.from_handle(user)()


class _Callbacks:
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


# ---- frames ----
class Frame(concurrent.futures.Future):
    """A frame under way, as a future: result() waits and returns what the frame wrote, or raises why it failed.

    `number` counts a session's frames from 0; None until the frame is done. Functions of add_done_callback run on the
    thread "coxswain" and may use the library, but must not wait for another frame.
    """

    def __init__(self, session, arrays, buffers, result):
        super().__init__()
        self.number = None
        self._session = session
        self._kept = arrays, buffers, result
        self._mark = session._core.hub.enter()
        self.set_running_or_notify_cancel()

    def _complete(self, status, number):
        session, (_, buffers, result) = self._session, self._kept
        self._session = self._kept = None
        self.number = number
        session._has_ended(self)
        problem = session._problem(status, buffers, self._mark)
        if problem:
            self.set_exception(problem)
        else:
            self.set_result(result)


class _Slot:
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

    def make(self, arrays):
        """A new array for what a frame writes."""
        for other in arrays:
            if other is not None and self.dtypes and other.dtype in self.dtypes and other.nbytes == self.bytes:
                if other.flags.c_contiguous:
                    return numpy.empty(other.shape, other.dtype)
        dtype = next(iter(self.dtypes), numpy.dtype("u1"))
        rows = self.bytes // self.pitch if self.pitch else 1
        shape = (rows, self.bytes // rows // dtype.itemsize // self.width, self.width)
        shape = shape if self.width > 1 else shape[:2]
        return numpy.empty(shape if self.pitch else shape[1:], dtype)


class Session:
    """Runs frames of one shape. Made by Runtime.session, which explains the parameters.

    run and submit take arrays in the order of `buffers`, or by name, and constants by name. A name that is a keyword of
    Python's gets an underscore: in_. Arrays that frames write may be left out: they are made. Both return what the
    frame wrote: an array, or a tuple if there are several. Fields of struct cox_frame, such as deadline_ns, are keyword
    arguments too.

    Arrays are not copied. Do not change them while a frame is under way. A frame keeps its arrays alive. Frames that
    share an array run in order; arrays that overlap in another way are not known to share memory.

    Any thread may use a session.
    """

    def __init__(self, core, buffers, passes, shape, params):
        self._core = core
        self._buffers = buffers
        self._session = ffi.new("cox_session **")
        self._closed = False
        self._inside = []
        self._under_way = set()
        self._closing = threading.Lock()
        self._callbacks = _Callbacks()
        self._reports = None
        self._create(passes, shape, params)

        core.retain()
        core.sessions.add(self)
        self._finalizer = weakref.finalize(self, _close, core, self._session, self._reports, self._builder)
        self._finalizer.atexit = False

    # ---- creation ----
    def _create(self, passes, shape, params):
        core = self._core
        if passes is not None:
            one = isinstance(passes, (str, dict))
            listed = [Pass(p) if isinstance(p, str) else p for p in ([passes] if one else passes)]
            params["passes"] = listed
        if shape is not None:
            params["rows"], params["columns"] = shape[:2]
        signatures = Signatures(core, params.get("passes") or ())
        self._constants = self._take_constants(signatures, params)
        self._callbacks.types = signatures.types
        self._callbacks.constants = self._constants
        self._pack = _Pack(self._constants)
        self._plans = {}

        reports = params.pop("reports", False)
        self._builder = Builder(self._callbacks.table())
        c_params = self._builder.new(ffi.typeof("struct cox_session_params"), params)
        if reports:
            self._reports = lib.coxpy_reports_create()
            c_params.report = ffi.addressof(lib, "coxpy_report")
            c_params.report_user = self._reports

        mark = core.hub.enter()
        status = lib.cox_session_create(core.runtime(), c_params, self._session)
        if status and self._reports:
            lib.coxpy_reports_destroy(self._reports)
        core.check(status, mark)
        self._describe(signatures, params)

    @staticmethod
    def _take_constants(signatures, params):
        constants = params.pop("constants", None)
        if isinstance(constants, dict):
            constants = numpy.dtype(list(constants.items()), align=True)
        elif constants is not None:
            constants = numpy.dtype(constants)
        elif not params.get("fields") and not params.get("constants_bytes"):
            constants = signatures.constants()
        if constants is None:
            return None

        params["constants_bytes"] = constants.itemsize
        params["fields"] = [
            {"name": name, "offset": offset, "bytes": of.itemsize} for name, (of, offset, *_) in constants.fields.items()
        ]
        return constants

    def _describe(self, signatures, params):
        row_bytes = {b["name"]: b.get("row_bytes", 0) for b in params.get("buffers") or ()}
        infos = []
        for i in range(lib.cox_session_buffer_count(self._session[0])):
            info = ffi.new("struct cox_session_buffer *")
            lib.cox_session_buffer_info(self._session[0], i, info)
            infos.append(record(info))
        self._callbacks.buffers = infos
        self._infos = [info for info in infos if not info.scratch]
        self._slots = {
            info.name or f"buffer{i}": _Slot(info, signatures.types.get(info.name, ()), row_bytes.get(info.name, 0))
            for i, info in enumerate(self._infos)
        }
        self._names = list(self._slots)

    # ---- what it is ----
    @property
    def buffers(self):
        """Records with the fields of struct cox_session_buffer: what each frame gives, in order."""
        return list(self._infos)

    @property
    def info(self):
        """A record with the fields of struct cox_session_info."""
        with self._call() as session:
            info = ffi.new("struct cox_session_info *")
            lib.cox_session_info(session, info)
            found = record(info)
            return found._replace(devices=found.devices[: found.device_count])

    def __repr__(self):
        if not self._finalizer.alive:
            return "<coxswain.Session, closed>"
        return f"<coxswain.Session: {', '.join(self._names)}; policy {self.info.policy}>"

    # ---- frames ----
    def run(self, *arrays, **named):
        """Run one frame and wait for it. Faster than submit and result."""
        given, buffers, result, constants, more = self._gather(arrays, named)
        inside = self._inside
        inside.append(None)
        try:
            if self._closed:
                raise RuntimeError("coxswain: the session is closed")
            pointers = [buffer.c for buffer in buffers]
            pointers.append(ffi.NULL)
            status = lib.coxpy_run(self._core.hub.c, self._session[0], more, pointers, constants)
        finally:
            inside.pop()
        if status or self._callbacks.raised or self._buffers.has_owned:
            problem = self._problem(status, buffers, lib.coxpy_mark())
            if problem:
                raise problem
        del given  # until here the arrays are kept
        return result

    def submit(self, *arrays, **named):
        """Start one frame and return a Frame, which is a future.

        Blocks only while `in_flight` frames are under way; nowait=True raises BusyError instead.
        """
        given, buffers, result, constants, more = self._gather(arrays, named)
        frame = Frame(self, given, buffers, result)
        hub = self._core.hub
        with self._call() as session:
            ticket = hub.ticket(frame)
            self._under_way.add(frame)
            pointers = [*(buffer.c for buffer in buffers), ffi.NULL]
            status = lib.coxpy_submit(ticket, session, more, pointers, constants)
            if status:
                hub.withdraw(ticket)
                self._under_way.discard(frame)
                raise hub.exception(status, lib.coxpy_mark())
        return frame

    def wait(self, timeout=None):
        """Wait until no frame is under way. Raises the exception of the first of these frames that failed."""
        frames = list(self._under_way)
        pending = concurrent.futures.wait(frames, timeout).not_done
        if pending:
            raise TimeoutError(f"{len(pending)} frames are still under way after {timeout} s")
        for frame in sorted(frames, key=lambda frame: frame.number):
            frame.result()

    def cancel(self):
        """End all frames under way soon, with CancelledError."""
        with self._call() as session:
            lib.cox_session_cancel(session)

    def warm(self, **constants):
        """Run one frame of zeros on every device now, so that the first frame is not slower than others."""
        self._pack.check(constants)
        given = ffi.from_buffer(self._pack([constants[name] for name in self._pack.names])) if constants else ffi.NULL
        with self._call() as session:
            mark = self._core.hub.enter()
            self._core.check(lib.cox_session_warm(session, given), mark)

    def reports(self):
        """What frames cost since the last call, if the session was made with reports=True.

        Returns three numpy struct arrays, which pandas.DataFrame takes: frames, passes, bands. Their fields are those
        of cox_frame_report, cox_pass_report and cox_band_report. Passes and bands also have the frame's number, and
        whether it was a warm-up or a shadow.
        """
        if self._reports is None:
            raise RuntimeError("coxswain: the session was made without reports=True")
        with self._call():
            first = lib.coxpy_reports_take(self._reports)
        try:
            return _read_reports(first)
        finally:
            lib.coxpy_report_list_free(first)

    # ---- the end ----
    def close(self, cancel=False):
        """Wait for frames under way, or cancel them, and free the session."""
        if not self._finalizer.alive:
            return
        if cancel:
            with contextlib.suppress(RuntimeError):
                self.cancel()
        concurrent.futures.wait(list(self._under_way))
        with self._closing:
            if self._finalizer.detach():
                self._closed = True
                while self._inside:
                    time.sleep(0.001)
                mark = self._core.hub.enter()
                lib.cox_session_destroy(self._session)
                if self._session[0] != ffi.NULL:
                    raise self._core.hub.exception(lib.COX_E_INVALID, mark)
                _free(self._core, self._reports)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.close(cancel=kind is not None)

    # ---- inside ----
    def _pointer(self):
        if self._closed:
            raise RuntimeError("coxswain: the session is closed")
        return self._session[0]

    @contextlib.contextmanager
    def _call(self):
        """Keeps close() from freeing the session during a call."""
        self._inside.append(None)
        try:
            yield self._pointer()
        finally:
            self._inside.pop()

    def _has_ended(self, frame):
        self._under_way.discard(frame)

    def _problem(self, status, buffers, mark):
        """The exception of a frame, or None."""
        raised = self._callbacks.take_raised()
        if raised is not None:
            return raised
        if not status and any(buffer.has_moved() for buffer in buffers):
            status = lib.COX_E_MEMORY_UNSAFE
        if status:
            return self._core.hub.exception(status, mark)
        return None

    def _plan(self, count, named):
        """How arguments become a frame: for each buffer its position, its name or None; names of constants; others."""
        names = self._names
        if count > len(names):
            raise TypeError(f"a frame has {len(names)} buffers ({', '.join(names)}), {count} were given")
        places = [*range(count), *[None] * (len(names) - count)]
        constants, others = {}, {}
        for given in named:
            name = self._sort_out(given)
            if name in self._slots:
                place = names.index(name)
                if places[place] is not None:
                    raise TypeError(f"'{name}' is given twice")
                places[place] = given
            elif name in _FRAME:
                others[name] = given
            else:
                constants[name] = given
        for place, slot in zip(places, self._slots.values()):
            if place is None and not slot.writes:
                raise TypeError(f"a frame needs the array '{slot.name}'")
        if "constants" not in others:
            self._pack.check(constants)
        ordered = [constants[name] for name in self._pack.names if name in constants]
        return list(zip(self._slots.values(), places)), ordered, others

    def _gather(self, given, named):
        """A frame's arrays, their buffers, its result, its constants, and a struct cox_frame for other fields."""
        key = (len(given), *named)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(len(given), named)
        slots, constants, others = plan

        arrays, buffers, outputs = [], [], []
        for slot, place in slots:
            array = None
            if place is not None:
                array = given[place] if type(place) is int else named[place]
            if array is None and slot.writes:
                array = slot.make([*given, *named.values()])
            arrays.append(array)
            buffers.append(self._buffers.of(array, slot))
            if slot.writes:
                outputs.append(array)

        packed = self._pack([named[field] for field in constants]) if constants else ffi.NULL
        more = ffi.NULL
        if others:
            fields = {name: named[field] for name, field in others.items()}
            if "constants" in fields:
                packed = _memory(fields.pop("constants"))
                arrays.append(packed)
            builder = Builder()
            more = builder.new(ffi.typeof("struct cox_frame"), fields)
        return arrays, buffers, outputs[0] if len(outputs) == 1 else tuple(outputs), packed, more

    def _sort_out(self, name):
        known = self._pack.names
        if name in self._slots or name in known or name in _FRAME and name not in ("buffers", "data"):
            return name
        short = field_name(name, {**self._slots, **dict.fromkeys(known)})
        if short == name:
            raise TypeError(
                f"a frame takes no '{name}'; buffers: {', '.join(self._names)}; constants: {', '.join(known) or 'none'}"
            )
        return short


class _Pack:
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


def _memory(constants):
    """A pointer to constants: a cdata object, an array or bytes."""
    if isinstance(constants, ffi.CData):
        return ffi.cast("char *", constants)
    return ffi.from_buffer(constants)


def _free(core, reports):
    if reports is not None:
        lib.coxpy_reports_destroy(reports)
    core.release()


def _close(core, session, reports, _builder):
    """The session was not closed, and nobody has it any more. No frame is under way: frames keep their session."""
    if core.is_forked():
        return

    def destroy():
        lib.cox_session_destroy(session)
        _free(core, reports)

    core.hub.post(destroy)


# ---- reports ----
def _read_reports(first):
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
