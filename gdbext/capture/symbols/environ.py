"""The environment of a process as it is now, from its memory.

/proc/PID/environ is what the program was started with: variables set later are not in it, and the setproctitle
package overwrites it with zeros (measured with 1.3.8; vLLM, SGLang and RTP-LLM use it). The C library's `environ`
points at the truth. Nothing is stopped for this: the array is read as it stands.
"""

from __future__ import annotations

import functools
import os
import re
import struct
from typing import Callable, Dict, List, Optional, Sequence

from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.memory.maps import Mapping, read_maps
from gdbext.capture.memory.process_memory import Memory, ProcessMemory
from gdbext.knowledge.launch.environment import RECORDED
from gdbext.model.missing import Maybe, Missing
from gdbext.safe_open import files, regular_files

MAX_VARIABLES = 4096
MAX_LENGTH = 4096  # bytes of one NAME=value; longer values are cut

_C_LIBRARY = re.compile(r"/(libc[.-][^/]*so[^/]*|ld-musl[^/]*)$")
_MOST_LIBRARIES = 16  # lines of the map
_POINTERS = 512  # read at a time


def read_environ(pid: int, root: str = "/proc") -> Maybe[Dict[str, str]]:
    """The variables of a live process, or why they cannot be read."""
    try:
        mappings = [mapping for mapping in read_maps(pid) if mapping.is_file and not mapping.deleted]
        program = os.readlink(f"{root}/{pid}/exe")
    except OSError as error:
        return Missing(f"environment of {pid}: {error.strerror}")
    return environ_in(ProcessMemory(pid), mappings, program, lambda path: f"{root}/{pid}/root{path}")


def recorded(environ: Maybe[Dict[str, str]]) -> Dict[str, str]:
    """Those that a snapshot may have; none where they cannot be read."""
    return {} if isinstance(environ, Missing) else {name: environ[name] for name in sorted(RECORDED) if name in environ}


def environ_in(
    memory: Memory, mappings: Sequence[Mapping], program: str, opens: Callable[[str], Optional[str]]
) -> Maybe[Dict[str, str]]:
    """The variables by the C library's `environ`. `opens` says where to open a mapped file; None: nowhere."""
    # A program linked to a fixed address has its own copy of the variable, which then is the one in use.
    libraries = [mapping.file for mapping in mappings if _C_LIBRARY.search(mapping.file)]
    for path in dict.fromkeys([program, *libraries[:_MOST_LIBRARIES]]):
        file = opens(path)
        address = None if file is None else _address_of_environ(path, file, mappings)
        pointer = memory.read_pointer(address) if address is not None else None
        if pointer:
            return _strings(memory, pointer)
    return Missing("the C library's `environ` was not found")


def _address_of_environ(path: str, file: str, mappings: Sequence[Mapping]) -> Optional[int]:
    try:
        value = _linked_address(file, regular_files.identity_of(files.status(file)))
    except OSError:
        return None
    if value is None:
        return None
    start = next((mapping.start for mapping in mappings if mapping.file == path and mapping.offset == 0), None)
    if value[1]:
        return value[0]
    return None if start is None else start + value[0]


@functools.lru_cache(maxsize=64)
def _linked_address(path: str, _identity: regular_files.Identity) -> Optional[tuple[int, bool]]:
    """Address of `environ` as linked, and whether that is where it is loaded (ET_EXEC)."""
    try:
        with files.stream(path) as stream:
            elf = ElfSymbols(stream)
            found = elf.look_up(("environ", "__environ"))
    except (OSError, ValueError, struct.error):
        return None
    value = found.get("environ") or found.get("__environ")
    return None if value is None else (value, elf.fixed)


def _strings(memory: Memory, array: int) -> Maybe[Dict[str, str]]:
    pointers: List[int] = []
    while len(pointers) < MAX_VARIABLES:
        # In small pieces: what follows the array may not be mapped.
        word = memory.read(array + 8 * len(pointers), 8 * _POINTERS) or memory.read(array + 8 * len(pointers), 8)
        if word is None:
            return Missing("the environment's array cannot be read")
        block = struct.unpack(f"<{len(word) // 8}Q", word)
        pointers += block[: block.index(0)] if 0 in block else block
        if 0 in block:
            break
    return variables_at(memory, pointers)


def variables_at(memory: Memory, pointers: Sequence[int]) -> Dict[str, str]:
    """The variables that these pointers point to, as NAME=value."""
    found: Dict[str, str] = {}
    for pointer in pointers[:MAX_VARIABLES]:
        name, equals, value = (memory.read_cstring(pointer, MAX_LENGTH) or "").partition("=")
        if equals and name:
            found.setdefault(name, value)  # getenv takes the first of several
    return found
