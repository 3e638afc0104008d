"""Functions as their source names them, where a compiler has made another name of that: of Cython and Rust."""

from __future__ import annotations

from typing import Match

from gdbext.model.text.patterns import regex

_START = regex(r"__pyx_(?P<kind>pw|pf|f|gb)_(?=\d)")
"""Wrapper, body of a def, cdef and generator: Cython's Naming.py."""
_PART = regex(r"(?P<length>[1-9]\d{0,2})(?=[A-Za-z_])")
_NUMBERED = regex(r"(?:\d+|_)?(?=[A-Za-z_])")
_NAME = regex(r"[A-Za-z]")
_RUST_HASH = regex(r"(?P<name>.+)::h[0-9a-f]{16}$")
_RUST_SIGN = regex(r"\$(?P<sign>LT|GT|RF|BP|LP|RP|SP|C|u[0-9a-f]{2,4})\$|\.\.")
_RUST_CERTAIN = regex(r"\$(LT|GT|RF|u[0-9a-f]{2,4})\$")
"""Other compilers write `$` and `..`, too."""
_RUST_PREFIX = regex(r"(?:^|(?<=::))_(?=\$)")
_RUST_SIGNS = {"LT": "<", "GT": ">", "RF": "&", "BP": "*", "LP": "(", "RP": ")", "SP": "@", "C": ","}
"""rustc's legacy names: rustc_codegen_utils symbol_names/legacy.rs."""


def source_name(name: str) -> str:
    """The name in the source; a name that no compiler has changed as it is."""
    return _of_cython(name) if name.startswith("__pyx_") else _of_rust(name)


def _of_rust(name: str) -> str:
    """`<hyper::Client as Drop>::drop` of `_$LT$hyper..Client$u20$as$u20$Drop$GT$::drop::h0123456789abcdef`."""
    hashed = _RUST_HASH.match(name)
    name = hashed["name"] if hashed is not None else name
    if hashed is None and _RUST_CERTAIN.search(name) is None:
        return name
    return _RUST_SIGN.sub(_rust_sign, _RUST_PREFIX.sub("", name))


def _rust_sign(match: Match[str]) -> str:
    sign = match["sign"]
    if sign is None:
        return "::"
    if sign in _RUST_SIGNS:
        return _RUST_SIGNS[sign]
    character = chr(int(sign[1:], 16))
    return character if character.isascii() and character.isprintable() else match.group()


def _of_cython(name: str) -> str:
    """`mpi4py.MPI.Comm.Ssend` of `__pyx_pw_6mpi4py_3MPI_4Comm_103Ssend`.

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
