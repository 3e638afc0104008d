"""The exception that nobody caught, found on the stack of a thread that std::terminate ended: in core files as well.

Between `throw` and abort the C++ runtime keeps the exception's header (Itanium C++ ABI: Exception Handling, 2.2.1): the
class "GNUCC++\\0" in _Unwind_Exception, the thrown object behind it, the type's info at the header's beginning.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, Optional

import gdb

from gdbext.capture.machine import SMALLEST_PAGE
from gdbext.inside_gdb.base.exceptions import message_of, type_words, typeinfo_name
from gdbext.inside_gdb.base.memory import NOW
from gdbext.inside_gdb.base.selected_frame import newest_frames

_CLASS = 0x474E5543432B2B00  # "GNUCC++\0"
_OBJECT = 32  # size of _Unwind_Exception: the object follows
_TYPE = -80  # of __cxa_exception, before its last member _Unwind_Exception
_MOST = 64 << 10  # bytes of stack
_PIECE = SMALLEST_PAGE
_DYING = ("terminate", "__cxa_throw", "__cxa_rethrow", "__cxa_call_terminate")
_MOST_FRAMES = 40


class InFlight(NamedTuple):
    """An exception on its way."""

    kind: str  # of the thrown object: "std::runtime_error"
    message: str


def uncaught_exception() -> Optional[InFlight]:
    """The exception that ended the selected thread; None where it did not end so."""
    if not _is_dying():
        return None
    at = int(gdb.newest_frame().read_register("sp")) & ((1 << 64) - 1)
    end = at + _MOST
    while at < end:
        size = _PIECE - at % _PIECE
        data = NOW.read(at, size)
        if data is None:
            return None
        for (word,) in struct.iter_unpack("<Q", data[: len(data) // 8 * 8]):
            found = _exception(word)
            if found is not None:
                return found
        at += size
    return None


def _is_dying() -> bool:
    names = (frame.name() or "" for frame in newest_frames(_MOST_FRAMES))
    return any(word in name for name in names for word in _DYING)


def _exception(place: int) -> Optional[InFlight]:
    if place & 7 or place < 1 << 16 or NOW.read_pointer(place) != _CLASS:
        return None
    kind = typeinfo_name(NOW.read_pointer(place + _TYPE) or 0)
    return InFlight(type_words(kind), message_of(place + _OBJECT)) if kind else None
