"""Structs of the headers from keyword arguments, and records of structs that the library fills in.

Nothing here lists fields: they come from the headers, so new ones can be used at once.

    Python                                   field
    number, bool, str                        number, bool, string
    "background" or cox.WARMUP_BACKGROUND    enum
    dict or the class of that name           struct, or pointer to one
    list of these                            COX_LIST; an array of numbers; NAME_count is set for NAMEs

A name that is a keyword of Python's may end with an underscore: `in_`.
SPDX-License-Identifier: Apache-2.0
"""
import collections
import functools

import numpy

from ._coxswain import ffi


@functools.lru_cache(maxsize=None)
def fields_of(ctype):
    """The fields of a struct type by name."""
    return dict(ctype.fields)


def field_name(name, known):
    """`name`, or without the underscore that a keyword of Python's needs."""
    if name not in known and name.endswith("_") and name[:-1] in known:
        return name[:-1]
    return name


def _unknown(ctype, name):
    return TypeError(f"{ctype.cname} has no field '{name}'; its fields: {', '.join(fields_of(ctype))}")


# ---- enums ----
@functools.lru_cache(maxsize=None)
def enum_texts(ctype):
    """The values of an enum by their short names, such as "background"."""
    names = {name: value for value, name in sorted(ctype.elements.items())}
    words = [name.split("_") for name in names]
    common = 0
    while all(len(w) > common + 1 and w[common] == words[0][common] for w in words):
        common += 1
    return {"_".join(name.split("_")[common:]).lower(): value for name, value in names.items()}


@functools.lru_cache(maxsize=None)
def enum_text(ctype, value):
    """The short name of a value, or the number."""
    for text, number in enum_texts(ctype).items():
        if number == value:
            return text
    return value


def _enum_value(ctype, value):
    if not isinstance(value, str):
        return int(value)
    texts = enum_texts(ctype)
    if value not in texts:
        raise ValueError(f"'{value}' is no {ctype.cname}; allowed: {', '.join(texts)}")
    return texts[value]


# ---- parameters ----
class Struct(dict):
    """A struct of the headers: keyword arguments are its fields, the first may come without names."""

    ctype = None

    def __init__(self, *values, **named):
        super().__init__()
        known = fields_of(self.ctype)
        if len(values) > len(known):
            raise TypeError(f"{self.ctype.cname} has {len(known)} fields, {len(values)} were given")
        for name, value in (*zip(known, values), *named.items()):
            self._set(field_name(name, known), value)

    def _set(self, name, value):
        if name not in fields_of(self.ctype):
            raise _unknown(self.ctype, name)
        self[name] = value

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.items())})"


def struct_class(ctype, base=Struct):
    """The class of a struct: Pass for struct cox_pass."""
    name = "".join(word.capitalize() for word in ctype.cname.split("cox_")[1].split("_"))
    text = f"{ctype.cname}, as keyword arguments. Fields: {', '.join(fields_of(ctype))}. The headers describe them."
    return type(name, (base,), {"ctype": ctype, "__doc__": text, "__module__": "coxswain"})


class Builder:
    """Makes structs of the headers, and keeps alive what they point to.

    `callbacks` maps the type of a function pointer to a function that takes (callable, values of the struct) and
    returns the C function and the handle for the field NAME_user.
    """

    def __init__(self, callbacks=None):
        self.keep = []
        self._callbacks = callbacks or {}

    def new(self, ctype, values):
        """A pointer to a new struct with these fields."""
        pointer = ffi.new(ffi.getctype(ctype, "*"))
        self.keep.append(pointer)
        self.fill(pointer, ctype, values)
        return pointer

    def fill(self, pointer, ctype, values):
        """Set fields of a struct."""
        known = fields_of(ctype)
        for name, value in values.items():
            name = field_name(name, known)
            if name not in known:
                raise _unknown(ctype, name)
            if value is not None:
                self._set(pointer, known, name, value, values)

    def _set(self, pointer, known, name, value, values):
        ctype = known[name].type
        try:
            if ctype.kind == "function":
                self._set_callback(pointer, known, name, value, values)
            elif ctype.kind == "struct":
                self.fill(ffi.addressof(pointer, name), ctype, value)
            elif ctype.kind == "array":
                self._set_array(getattr(pointer, name), ctype, value)
            elif ctype.kind == "pointer":
                setattr(pointer, name, self._pointer(ctype, value))
                if name.endswith("s") and f"{name[:-1]}_count" in known:
                    setattr(pointer, f"{name[:-1]}_count", len(value))
            elif ctype.kind == "enum":
                setattr(pointer, name, _enum_value(ctype, value))
            else:
                setattr(pointer, name, value)
        except (TypeError, OverflowError) as problem:
            raise type(problem)(f"{name}: {problem}") from None

    @staticmethod
    def _set_array(array, ctype, value):
        if len(value) > ctype.length:
            raise TypeError(f"{len(value)} values; room for {ctype.length}")
        for i, element in enumerate(value):
            array[i] = element

    def _set_callback(self, pointer, known, name, value, values):
        make = self._callbacks.get(known[name].type)
        if make is None or f"{name}_user" not in known:
            raise TypeError("a callback of this type cannot be written in Python")
        function, handle = make(value, values)
        self.keep.append(handle)
        setattr(pointer, name, function)
        setattr(pointer, f"{name}_user", handle)

    def _pointer(self, ctype, value):
        item = ctype.item
        if isinstance(value, ffi.CData):
            self.keep.append(value)
            return value
        if hasattr(value, "_pointer"):  # an object of this module
            self.keep.append(value)
            return value._pointer()
        if isinstance(value, str):
            made = ffi.new("char[]", value.encode())
        elif isinstance(value, dict):
            return self.new(item, value)
        elif item.kind == "struct":
            made = self._list(item, value)
        else:
            made = ffi.new(ffi.getctype(item, "[]"), list(value))
        self.keep.append(made)
        return made

    def _list(self, item, values):
        values = list(values)
        made = ffi.new(ffi.getctype(item, "[]"), len(values) + 1)  # the last is zero
        for i, value in enumerate(values):
            self.fill(ffi.addressof(made, i), item, value)
        return made


# ---- results ----
@functools.lru_cache(maxsize=None)
def record_class(ctype):
    """A named tuple with the fields of a struct."""
    name = ctype.cname.split("cox_")[1]
    return collections.namedtuple(name, list(fields_of(ctype)), module="coxswain")


def _plain(ctype, value):
    if ctype.kind == "enum":
        return enum_text(ctype, int(ffi.cast("int", value)) if isinstance(value, ffi.CData) else value)
    if ctype.kind == "struct":
        return record(value)
    if ctype.kind == "array" and ctype.item.cname == "char":
        return ffi.string(value).decode(errors="replace")
    if ctype.kind == "array":
        return tuple(_plain(ctype.item, v) for v in value)
    return value


def _enum_number(pointer, name):
    return int.from_bytes(ffi.buffer(ffi.addressof(pointer, name)), "little", signed=True)


def record(pointer):
    """A named tuple of a struct: strings for char arrays and enums, tuples for arrays."""
    ctype = ffi.typeof(pointer)
    if ctype.kind == "pointer":
        ctype = ctype.item
    values = []
    for name, field in fields_of(ctype).items():
        if field.type.kind == "enum":
            values.append(enum_text(field.type, _enum_number(pointer, name)))
        else:
            values.append(_plain(field.type, getattr(pointer, name)))
    return record_class(ctype)(*values)


_NUMBERS = {("primitive", "_Bool"): "?", ("primitive", "double"): "f8", ("primitive", "float"): "f4"}


@functools.lru_cache(maxsize=None)
def numpy_type(ctype):
    """The numpy type of a struct, for arrays of it. Structs inside are flattened, pointers left out."""
    names, formats, offsets = [], [], []

    def add(of, prefix, start):
        for name, field in of.fields:
            if field.type.kind == "struct":
                add(field.type, f"{prefix}{name}_", start + field.offset)
            elif field.type.kind in ("primitive", "enum"):
                signed = field.type.kind == "enum" or field.type.cname.startswith("int")
                plain = f"{'i' if signed else 'u'}{ffi.sizeof(field.type)}"
                names.append(prefix + name)
                formats.append(_NUMBERS.get((field.type.kind, field.type.cname), plain))
                offsets.append(start + field.offset)

    add(ctype, "", 0)
    return numpy.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": ffi.sizeof(ctype)})
