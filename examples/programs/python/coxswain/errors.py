"""Exceptions: one class for each status of the library.

SPDX-License-Identifier: Apache-2.0
"""
from ._coxswain import ffi, lib

# What a Python programmer would catch.
_ALSO = {
    "COX_E_INVALID": ValueError,
    "COX_E_NOMEM": MemoryError,
    "COX_E_DEVICE_MEMORY": MemoryError,
    "COX_E_NOT_FOUND": LookupError,
    "COX_E_TIMEOUT": TimeoutError,
}


class Error(Exception):
    """A function of the library failed, or a frame did.

    status   the number, such as cox.E_INVALID
    name     its name, such as "COX_E_INVALID"
    log      the library's error lines about it, a list of strings
    """

    status = 0

    def __init__(self, status, log=()):
        self.status = status
        self.name = ffi.string(lib.cox_status_name(status)).decode()
        self.log = list(log)
        text = "\n".join(self.log) or ffi.string(lib.cox_status_text(status)).decode()
        super().__init__(f"{self.name}: {text}")

    def __reduce__(self):
        return error, (self.status, self.log)


def _make_classes():
    classes = {}
    for value, name in ffi.typeof("enum cox_status").elements.items():
        if value:
            words = name[len("COX_E_") :].split("_")
            bases = (Error, _ALSO[name]) if name in _ALSO else (Error,)
            text = ffi.string(lib.cox_status_text(value)).decode()
            made = type("".join(map(str.capitalize, words)) + "Error", bases, {"__doc__": f"{name}: {text}."})
            made.__module__ = "coxswain"
            classes[value] = made
    return classes


CLASSES = _make_classes()


def error(status, log=()):
    """The exception for a status."""
    return CLASSES.get(status, Error)(status, log)
