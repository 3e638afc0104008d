"""Global memory out of a GPU core file (.nvcudmp), which the CUDA driver writes when a kernel fails.

Format: NVIDIA's public header cudacoredump.h: ELF64 of type core for machine 190 (EM_CUDA), whose sections are typed.
Global memory is in sections of the type below, each with the device address it begins at. Tried on files that the
tests make; one from a real device was not at hand.
"""

from __future__ import annotations

import bisect
import os
import struct
from typing import BinaryIO, List, NamedTuple, Optional

from gdbext.capture.gpu_cores.gpu_core_file import GpuCoreFile
from gdbext.capture.memory.process_memory import READ_LIMIT
from gdbext.knowledge.runtimes.gpu_core_format import GLOBAL_MEMORY
from gdbext.model.errors import GdbextError

_FLAGS = "CUDA_COREDUMP_GENERATION_FLAGS=skip_global_memory, or as a lightweight one"


class _Piece(NamedTuple):
    start: int
    end: int
    offset: int  # in the file


class GpuCore:
    """What a file has of the device's memory. Use `open`."""

    def __init__(self, path: str, pieces: List[_Piece]) -> None:
        self._path, self._pieces = path, pieces
        self._starts = [piece.start for piece in pieces]

    @classmethod
    def open(cls, path: str) -> GpuCore:
        """Raises `GdbextError` with one line for what is no GPU core, is cut short, or holds no global memory."""
        path = os.path.expanduser(path)
        try:
            with open(path, "rb") as file:
                return cls(path, _pieces(file))
        except OSError as error:
            raise GdbextError(f"{path}: {error.strerror}") from None
        except (ValueError, struct.error, MemoryError) as error:
            raise GdbextError(f"{path}: {error}") from None

    def read(self, address: int, size: int) -> Optional[bytes]:
        """Bytes of device memory; None unless the file has all of them."""
        if not 0 <= size <= READ_LIMIT:
            return None
        found, at = b"", address
        try:
            with open(self._path, "rb") as file:
                while at < address + size:
                    index = bisect.bisect_right(self._starts, at) - 1
                    if index < 0 or at >= self._pieces[index].end:
                        return None
                    piece = self._pieces[index]
                    file.seek(piece.offset + at - piece.start)
                    data = file.read(min(piece.end, address + size) - at)
                    if not data:
                        return None
                    found, at = found + data, at + len(data)
        except OSError:
            return None
        return found


def _pieces(file: BinaryIO) -> List[_Piece]:
    """What the file has of global memory, by address. Raises `ValueError` with the reason when it is nothing."""
    core = GpuCoreFile(file)
    sections = core.of(GLOBAL_MEMORY)
    if not sections:
        raise ValueError(f"this GPU core holds no global memory: it was made with {_FLAGS}")
    if any(one.offset + one.size > core.length for one in sections):
        raise ValueError("the GPU core is cut short: its global memory reaches beyond the end of the file")
    return sorted(_Piece(one.address, one.address + one.size, one.offset) for one in sections if one.size)
