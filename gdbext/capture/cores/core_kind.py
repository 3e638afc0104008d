"""Whether a file is a core that can be read here, by its first bytes, and what else it is."""

from __future__ import annotations

import os
from typing import Optional

from gdbext.capture.elf.layout import EM_CUDA, ET_CORE, ET_DYN, ET_EXEC, ET_REL, HEADER, MAGIC, Header, header_of
from gdbext.capture.machine import Architecture, machine_of
from gdbext.model.errors import GdbextError

_KINDS = {ET_REL: "an object file", ET_EXEC: "a program", ET_DYN: "a program or a library"}
_PACKED = (
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -d"),
    (b"\x1f\x8b", "gzip", "gunzip -k"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -d"),
    (b"\xfd7zXZ\0", "xz", "xz -dk"),
    (b"BZh", "bzip2", "bunzip2 -k"),
)


def looks_like_core(path: str) -> bool:
    """Whether a file is meant as a core: an ELF file, or a packed or unreadable one that is called core."""
    named = "core" in os.path.basename(path).lower().replace("score", "")
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb", buffering=0) as file:
            head = file.read(8) or b""
    except OSError:
        return named and os.path.exists(path)
    if head.startswith(MAGIC):
        return True
    return named and (not head or any(head.startswith(magic) for magic, _, _ in _PACKED))


def looks_like_gpu_core(path: str) -> bool:
    """Whether a file is meant as a GPU core: one by its first bytes, or one that is called so."""
    named = ".nvcudmp" in os.path.basename(path).lower()
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb", buffering=0) as file:
            head = file.read(HEADER.size) or b""
    except OSError:
        return named and os.path.exists(path)
    header = header_of(head)
    return named if header is None else (header.kind, header.machine) == (ET_CORE, EM_CUDA)


def check_core(path: str, head: bytes) -> Optional[Architecture]:
    """What machine the core is of; None for one that we do not know. Raises GdbextError for what is not a core file."""
    for magic, name, command in _PACKED:
        if head.startswith(magic):
            raise GdbextError(f"{path} is compressed ({name})", f"unpack it first: {command} {path}")
    if not head:
        raise GdbextError(f"{path} is empty: the dump failed", "a full disk or `ulimit -c` does that")
    if not head.startswith(MAGIC):
        raise GdbextError(f"{path} is not a core file", "give text with stacks without core files")
    if len(head) < HEADER.size:
        raise GdbextError(f"{path} is cut short: {len(head)} bytes", "copy it again")
    if head[4] != 2:
        raise GdbextError(f"{path} is of a 32-bit program", "gdbext reads 64-bit ones only; open it with gdb")
    if head[5] != 1:
        raise GdbextError(f"{path} is of a big-endian machine", "open it with gdb-multiarch")
    header = Header(*HEADER.unpack_from(head))
    if header.kind != ET_CORE:
        what = _KINDS.get(header.kind, "another ELF file")
        raise GdbextError(
            f"{path} is {what}, not a core file", "give the program as --exe FILE, and its core files as arguments"
        )
    return machine_of(header.machine)
