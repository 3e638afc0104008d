"""Writes fat binaries of CUDA and cubins as far as their headers go: no code for a GPU is in them."""

import ctypes
import struct

from gdbext.capture.elf.layout import ET_DYN, ET_EXEC, SHT_PROGBITS
from gdbext.capture.elf.writer import SectionFile

CUDA, X86_64 = 190, 62  # e_machine
PTX, CUBIN, LINKER_CODE = 1, 2, 8
PLAIN, DEBUG, LZ4, ZSTD, FOR_ONE_GPU, FOR_ONE_FAMILY = 0x11, 0x2, 0x2000, 0x8000, 0x100000, 0x200000


def cubin(folder, *sections):
    """A cubin with sections of these names."""
    made = SectionFile()
    for name in (".text.kernel", *sections):
        made.put(name.encode(), SHT_PROGBITS, b"\0" * 16)
    made.write(str(folder / "kernel.cubin"), ET_EXEC, CUDA)
    return (folder / "kernel.cubin").read_bytes()


def entry(kind, gpu, content, flags=PLAIN, name=b"", unpacked=0, **wrong):
    """One piece of code. `wrong`: what its header says instead of the truth."""
    own = 64 + len(name) + -len(name) % 8
    body = content + bytes(-len(content) % 8)
    packed = len(content) if flags & (LZ4 | ZSTD) else 0
    said = {"own": own, "size": len(body), "packed": packed, "unpacked": unpacked, **wrong}
    head = struct.pack("<HHIQI", kind, 0x101, said["own"], said["size"], said["packed"])
    head += struct.pack("<IHHIII", 0, 1, 8, gpu, 64 if name else 0, len(name))
    head += struct.pack("<QQQ", flags, 0, said["unpacked"])
    return head + name + bytes(-len(name) % 8) + body


def container(*entries, size=None, magic=0xBA55ED50):
    body = b"".join(entries)
    return struct.pack("<IHHQ", magic, 1, 16, len(body) if size is None else size) + body


def library(folder, *containers, section=".nv_fatbin", gap=0):
    """An object file with them; its path."""
    made = SectionFile()
    made.put(section.encode(), SHT_PROGBITS, b"".join(one + bytes(gap) for one in containers))
    path = folder / "libkernels.so"
    made.write(str(path), ET_DYN, X86_64)
    return path


def packed_by_zstd(data):
    """None where the host has no such library."""
    return _packed("libzstd.so.1", lambda library, room: library.ZSTD_compress(room, len(room), data, len(data), 3))


def packed_by_lz4(data):
    return _packed("liblz4.so.1", lambda library, room: library.LZ4_compress_default(data, room, len(data), len(room)))


def _packed(name, pack):
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return None
    room = ctypes.create_string_buffer(1 << 16)
    size = pack(library, room)
    return room.raw[:size]
