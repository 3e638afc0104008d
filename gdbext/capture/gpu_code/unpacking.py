"""Unpacks what Python before 3.14 cannot read itself, by libraries that a Linux host has anyway."""

from __future__ import annotations

import ctypes
from typing import Optional

from gdbext.capture.gpu_code.fatbins import LZ4, ZSTD

LARGEST = 32 << 20
"""Bytes of one piece, unpacked."""


def decompress(data: bytes, flags: int, size: int, most: int = LARGEST) -> Optional[bytes]:
    """The code; None where the library is not here, or the data is not what its header says."""
    if not 0 < size <= most:
        return None
    room = ctypes.create_string_buffer(size)
    if flags & ZSTD:
        library = _library("libzstd.so.1")
        if library is None:
            return None
        library.ZSTD_decompress.restype = ctypes.c_size_t
        library.ZSTD_decompress.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
        done = library.ZSTD_decompress(room, size, data, len(data))
    elif flags & LZ4:
        library = _library("liblz4.so.1")
        if library is None:
            return None
        library.LZ4_decompress_safe.restype = ctypes.c_int
        library.LZ4_decompress_safe.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)
        done = library.LZ4_decompress_safe(data, room, len(data), size)
    else:
        return None
    return room.raw if done == size else None


def _library(name: str) -> Optional[ctypes.CDLL]:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None
