"""The log and the finished frames of one runtime, brought from the library's threads to Python.

glue.c collects both without Python's global lock. One thread of Python's, "coxswain", waits for them. It completes
futures, runs what their add_done_callback asked for, and passes lines on to the logger "coxswain". Error lines are also
in the exception of the call; if no logging is set up, they are only there.
SPDX-License-Identifier: Apache-2.0
"""
import collections
import logging
import os
import threading
import weakref

from ._coxswain import ffi, lib
from .errors import error

logger = logging.getLogger("coxswain")
_LEVELS = {
    lib.COX_LOG_ERROR: logging.ERROR,
    lib.COX_LOG_WARN: logging.WARNING,
    lib.COX_LOG_INFO: logging.INFO,
    lib.COX_LOG_DEBUG: logging.DEBUG,
}
_SPAWN = 'this process was made by fork; start processes with multiprocessing.set_start_method("spawn")'
_hubs = weakref.WeakSet()


class Hub:
    """See the head of this file."""

    def __init__(self):
        self.c = lib.coxpy_hub_create()
        if self.c == ffi.NULL:
            raise MemoryError("coxswain: no memory for a runtime")
        self.c = ffi.gc(self.c, lib.coxpy_hub_destroy)
        self.pid = os.getpid()
        self._frames = {}  # by the number of their ticket
        self._next = 0
        self._jobs = collections.deque()
        self._recent = collections.deque(maxlen=200)  # error lines: (number, caller, text)
        self._lock = threading.Lock()
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, name="coxswain", daemon=True)
        self._thread.start()
        _hubs.add(self)

    # ---- calls ----
    def enter(self):
        """Call this before a function of the library. `check` takes the result."""
        return lib.coxpy_hub_enter(self.c)

    def check(self, status, mark):
        """Raise the exception of a call that failed, with its lines of the log."""
        if status:
            raise self.exception(status, mark)

    def exception(self, status, mark):
        """The exception of a call that began at `mark`. Lines of other callers are left out."""
        self._read_log()
        mine = (lib.coxpy_caller(), 0)
        log = [text for number, caller, text in list(self._recent) if number > mark and caller in mine]
        if os.getpid() != self.pid and not any("spawn" in text for text in log):
            log.append(_SPAWN)
        return error(status, log)

    # ---- frames ----
    def ticket(self, frame):
        """A ticket for a frame that will be submitted."""
        ticket = ffi.new("struct coxpy_ticket *")
        ticket.hub = self.c
        with self._lock:
            self._next += 1
            ticket.id = self._next
        self._frames[ticket.id] = (frame, ticket)
        return ticket

    def withdraw(self, ticket):
        """The frame was not submitted."""
        del self._frames[ticket.id]

    # ---- the thread ----
    def post(self, job):
        """Run `job` on this hub's thread."""
        self._jobs.append(job)
        lib.coxpy_hub_poke(self.c)

    def is_here(self):
        """Whether this is the hub's thread."""
        return threading.current_thread() is self._thread

    def stop(self):
        """End the thread when it has done all that it has to do."""
        self._stopping = True
        if os.getpid() != self.pid:
            return
        lib.coxpy_hub_poke(self.c)
        self.join()

    def join(self):
        """Wait until the thread has ended."""
        if not self.is_here():
            self._thread.join()

    def _serve(self):
        while not self._stopping:
            done = lib.coxpy_hub_wait(self.c)
            self._read_log()
            self._complete(done)
            while self._jobs:
                self._run(self._jobs.popleft())
        self._complete(lib.coxpy_hub_wait(self.c) if self._frames else ffi.NULL)
        self._read_log()

    def _complete(self, ticket):
        while ticket != ffi.NULL:
            following = ticket.next
            frame, _ = self._frames.pop(ticket.id)
            self._run(lambda: frame._complete(ticket.status, ticket.frame))
            ticket = following

    @staticmethod
    def _run(job):
        try:
            job()
        except Exception:  # pylint: disable=broad-except  # a job must not end the thread
            logger.exception("an error in coxswain's thread")

    # ---- the log ----
    def _read_log(self):
        with self._lock:
            first = lib.coxpy_hub_take_lines(self.c)
            lines = []
            line = first
            while line != ffi.NULL:
                lines.append((line.number, line.caller, line.level, ffi.string(line.text).decode(errors="replace")))
                line = line.next
            lib.coxpy_lines_free(first)
            self._recent.extend((n, caller, text) for n, caller, level, text in lines if level == lib.COX_LOG_ERROR)

        for _, _, level, text in lines:
            if level != lib.COX_LOG_ERROR or logger.hasHandlers():
                logger.log(_LEVELS.get(level, logging.ERROR), "%s", text)

    def _forked(self):
        lib.coxpy_hub_forked(self.c)
        self._lock = threading.Lock()


def _forked():
    for hub in list(_hubs):
        hub._forked()


os.register_at_fork(after_in_child=_forked)
