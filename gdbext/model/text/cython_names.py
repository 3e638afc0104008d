"""Functions that Cython has compiled, as their source names them."""

from __future__ import annotations

from gdbext.model.text.patterns import regex

_START = regex(r"__pyx_(?P<kind>pw|pf|f|gb)_(?=\d)")
"""Wrapper, body of a def, cdef and generator: Cython's Naming.py."""
_PART = regex(r"(?P<length>[1-9]\d{0,2})(?=[A-Za-z_])")
_NUMBERED = regex(r"(?:\d+|_)?(?=[A-Za-z_])")
_NAME = regex(r"[A-Za-z]")


def source_name(name: str) -> str:
    """`mpi4py.MPI.Comm.Ssend` of `__pyx_pw_6mpi4py_3MPI_4Comm_103Ssend`; another name as it is.

    Scopes stand with their lengths in front; the function comes last, of a `def` with its number among its class's.
    """
    start = _START.match(name)
    if start is None:
        return name
    parts, at = [], start.end()
    while True:
        part = _PART.match(name, at)
        end = part.end() + int(part["length"]) if part else 0
        if part is None or end >= len(name) or name[end] != "_" or not _NAME.search(name, end):
            break
        parts.append(name[part.end() : end])
        at = end + 1
    last = name[at:]
    if start["kind"] != "f":
        number = _NUMBERED.match(last)
        last = last[number.end() :] if number else last
    return ".".join((*parts, last)) if parts and last else name
