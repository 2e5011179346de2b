"""The runtime: this machine's devices.

SPDX-License-Identifier: Apache-2.0
"""
import atexit
import os
import threading
import weakref

from ._coxswain import ffi, lib
from .arrays import Buffers
from .hub import Hub
from .once import Once
from .session import Session
from .structs import Builder, record

_cores = weakref.WeakSet()


class _Core:
    """Owns a cox_runtime. It is destroyed when the Runtime, its sessions and all buffers have let go of it."""

    def __init__(self, params):
        self.hub = Hub()
        self.sessions = weakref.WeakSet()
        self._users = 0
        self._lock = threading.Lock()
        self._runtime = ffi.new("cox_runtime **")

        builder = Builder()
        c_params = builder.new(ffi.typeof("struct cox_runtime_params"), params)
        c_params.log = ffi.addressof(lib, "coxpy_log")
        c_params.log_user = self.hub.c
        mark = self.hub.enter()
        status = lib.cox_runtime_create(c_params, self._runtime)
        if status:
            problem = self.hub.exception(status, mark)
            self.hub.stop()
            raise problem
        _cores.add(self)

    def runtime(self):
        """The cox_runtime pointer."""
        if self._runtime[0] == ffi.NULL:
            raise RuntimeError("coxswain: the runtime is closed")
        return self._runtime[0]

    def check(self, status, mark):
        """As Hub.check."""
        self.hub.check(status, mark)

    def is_forked(self):
        """Whether this process is a child of the one that made the runtime."""
        return os.getpid() != self.hub.pid

    def retain(self):
        """One more user."""
        if self.is_forked():
            return
        with self._lock:
            self._users += 1

    def release(self):
        """One user less. The last one destroys the runtime, on the hub's thread: this may be a callback's thread."""
        if self.is_forked():
            return
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last:
            self.hub.post(self._destroy)

    def join(self):
        """Wait until the runtime is destroyed, if nobody uses it any more."""
        if not self._users and not self.is_forked():
            self.hub.join()

    def _destroy(self):
        lib.cox_runtime_destroy(self._runtime)
        self.hub.stop()

    def end(self):
        """At the end of the process: no thread of the library may run any more."""
        if self.is_forked():
            return
        for session in list(self.sessions):
            session.close(cancel=True)


@atexit.register
def _end():
    for core in list(_cores):
        core.end()


class Runtime:
    """The OpenCL devices of this machine, or those that `devices` selects, such as "gpu" or "cpu:2x1".

    Other keyword arguments are the fields of struct cox_runtime_params, such as cache_dir="…" or log_level="info". Log
    lines go to the logger "coxswain".

        with coxswain.Runtime("cpu:2x1") as runtime:
            inverted = runtime.run(source, picture)

    Any thread may use a runtime. Leaving the `with` block, or close(), closes its sessions.
    """

    def __init__(self, devices=None, **params):
        self._core = _Core({"devices": devices, **params})
        self._core.retain()
        self._buffers = Buffers(self._core)
        self._finalizer = weakref.finalize(self, self._core.release)

    # ---- life ----
    def close(self):
        """Wait for frames under way and close all sessions. Arrays of empty() stay valid."""
        for session in list(self._core.sessions):
            session.close()
        self._buffers.drop()
        self._finalizer()
        self._core.join()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind:
            for session in list(self._core.sessions):
                session.close(cancel=True)
        self.close()

    def __repr__(self):
        if not self._finalizer.alive:
            return "<coxswain.Runtime, closed>"
        return f"<coxswain.Runtime: {', '.join(device.name for device in self.devices)}>"

    def _pointer(self):
        if not self._finalizer.alive:
            raise RuntimeError("coxswain: the runtime is closed")
        return self._core.runtime()

    # ---- what it has ----
    def _records(self, count, get, ctype):
        found = []
        for i in range(count):
            info = ffi.new(f"{ctype} *")
            self._core.check(get(self._pointer(), i, info), self._core.hub.enter())
            found.append(record(info))
        return found

    @property
    def devices(self):
        """A list of records with the fields of struct cox_device_info. pandas.DataFrame takes it."""
        count = lib.cox_runtime_device_count(self._pointer())
        return self._records(count, lib.cox_runtime_device_info, "struct cox_device_info")

    @property
    def platforms(self):
        """A list of records with the fields of struct cox_platform_info."""
        count = lib.cox_runtime_platform_count(self._pointer())
        return self._records(count, lib.cox_runtime_platform_info, "struct cox_platform_info")

    @property
    def host(self):
        """A record with the fields of struct cox_host_info."""
        info = ffi.new("struct cox_host_info *")
        lib.cox_runtime_host_info(self._pointer(), info)
        return record(info)

    def pitch_bytes(self, row_bytes):
        """The smallest pitch with which bands may begin at any row on all devices."""
        return lib.cox_runtime_pitch_bytes(self._pointer(), row_bytes)

    # ---- what it does ----
    def empty(self, shape, dtype=float):
        """A new array in memory that suits all devices: aligned, and pinned if a device copies. Its content is zero.

        It is a plain numpy array, and stays valid when the runtime is closed. Any other array works too.
        """
        self._pointer()
        return self._buffers.empty(shape, dtype)

    def session(self, passes=None, shape=None, **params):
        """Compile kernels for frames that repeat, and return a Session.

        passes     the source of a kernel, a Pass, or a list of these
        shape      rows and columns of a frame: shape=picture.shape
        constants  a numpy struct type, or a dict of types by name, for constants that kernels take by value. Without
                   it, the kernels' signatures say the types.
        reports    True: keep what frames cost, see Session.reports

        Other keyword arguments are the fields of struct cox_session_params: policy="static",
        policy_options={"ratios": [0.7, 0.3]}, in_flight=3, buffers=[…], pipeline=coxswain.filter_gaussian({…}).
        """
        self._pointer()
        return Session(self._core, self._buffers, passes, shape, params)

    def run(self, source, *arguments, rows=None, columns=None, **named):
        """Compile a kernel, run it once over all devices, and return what it wrote.

        Arguments are those of the kernel in its order, or by name: arrays for pointers, numbers for values. Leave out
        `columns`, `rows` and others that the library fills in. Arrays that the kernel writes may be left out: they
        are made. Rows and columns are those of the first array, unless they are given.
        """
        self._pointer()
        call = Once(self._core, source)
        call.take(arguments, named)
        return call.run(rows, columns)
