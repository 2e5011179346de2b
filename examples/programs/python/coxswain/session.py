"""Sessions: frames of one shape, run through a list of kernels on all devices.

SPDX-License-Identifier: Apache-2.0
"""
import concurrent.futures
import contextlib
import threading
import time
import weakref

import numpy

from ._coxswain import ffi, lib
from .callbacks import Callbacks
from .frame_parts import Pack, Slot
from .kernel import Signatures
from .reports import read_reports
from .structs import Builder, Struct, field_name, fields_of, record, struct_class

_FRAME = fields_of(ffi.typeof("struct cox_frame"))
_ARGUMENT = fields_of(ffi.typeof("struct cox_argument"))


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


# ---- frames ----
class Frame(concurrent.futures.Future):
    """A frame under way, as a future: result() waits and returns what the frame wrote, or raises why it failed.

    `number` counts a session's frames from 0; None until the frame is done. Functions of add_done_callback run on the
    thread "coxswain" and may use the library, but must not wait for another frame.
    """

    def __init__(self, session, arrays, buffers, result):
        super().__init__()
        self.number = None
        self._hub = session._core.hub
        self._session = session
        self._kept = arrays, buffers, result
        self._mark = self._hub.enter()
        self.set_running_or_notify_cancel()

    def result(self, timeout=None):
        """Wait for the frame and return what it wrote."""
        self._check_wait()
        return super().result(timeout)

    def exception(self, timeout=None):
        """Wait for the frame and return why it failed, or None."""
        self._check_wait()
        return super().exception(timeout)

    def _check_wait(self):
        if self._hub.is_here() and not self.done():
            raise RuntimeError("coxswain: a function of add_done_callback must not wait for another frame")

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
        self._callbacks = Callbacks()
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
        self._pack = Pack(self._constants)
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
        self._slots = {}
        for i, info in enumerate(self._infos):
            name = info.name if info.name and info.name not in self._slots else f"{info.name}{i}"
            self._slots[name] = Slot(info, signatures.types.get(info.name, ()), row_bytes.get(info.name, 0))
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
            return read_reports(first)
        finally:
            lib.coxpy_report_list_free(first)

    # ---- the end ----
    def close(self, cancel=False):
        """Wait for frames under way, or cancel them, and free the session."""
        if not self._finalizer.alive:
            return
        if self._core.is_forked():
            self._closed = True
            return
        if cancel:
            with contextlib.suppress(RuntimeError):
                self.cancel()
        if not self._core.hub.is_here():
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
