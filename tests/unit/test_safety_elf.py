"""Object files that lie: sizes, numbers, names and rules of unknown size cost neither time nor memory."""

import lzma
import struct
import subprocess
import sys
import threading
import time
import zlib

import pytest

from gdbext.capture.bounded_reader import in_time
from gdbext.capture.copies.copied_process import ProcessCopy, ThreadCopy
from gdbext.capture.elf.reader import ElfSymbols, Section
from gdbext.capture.elf.unpacked import unpacked_size
from gdbext.capture.elf.unwind_entries import Entry
from gdbext.capture.elf.unwind_rules import row_at
from gdbext.capture.memory.process_memory import Block
from gdbext.capture.nccl import dwarf_layout
from gdbext.capture.symbols import excerpt, mapped_libraries
from gdbext.capture.symbols.mapped_libraries import MappedFile, words_of
from gdbext.capture.symbols.symbol_index import SymbolIndex
from gdbext.capture.without_stop.frame_pointer import _Files
from gdbext.safe_open import files
from tests.excerpts import opened

HEADER, SECTION = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ")
SOON = 60.0  # seconds: each takes milliseconds, or seconds where it is given up for the time it takes
PROGBITS, SYMTAB, STRTAB, NOBITS = 1, 2, 3, 8
CODE = 6


def elf(sections, count=None, names=None, machine=62):
    """An ELF file. `sections`: (name, type, flags, address, content or (offset, size), link)."""
    texts = b"\0" + b"".join(name + b"\0" for name, *_ in sections) + b".shstrtab\0"
    blob, rows, at = b"", [(0,) * 10], 1
    for name, kind, flags, address, content, link in [*sections, (b".shstrtab", STRTAB, 0, 0, names or texts, 0)]:
        place, size = (HEADER.size + len(blob), len(content)) if isinstance(content, bytes) else content
        rows.append((at, kind, flags, address, place, size, link, 0, 1, 24 if kind == SYMTAB else 0))
        at += len(name) + 1
        blob += content if isinstance(content, bytes) else b""
    number = len(rows)
    if count is not None:  # the numbers stand in the first section header
        rows[0] = (0, 0, 0, 0, 0, count, number - 1, 0, 0, 0)
    head = (b"\x7fELF\x02\x01\x01" + bytes(9), 3, machine, 1, 0, 0, HEADER.size + len(blob), 0, 64, 56, 0, 64)
    head += (0 if count is not None else number, 0 if count is not None else number - 1)
    return HEADER.pack(*head) + blob + b"".join(SECTION.pack(*row) for row in rows)


def symbol(name=0, info=0x12, section=1, value=0x1000, size=16):
    return struct.pack("<IBBHQQ", name, info, 0, section, value, size)


def written(folder, data):
    (folder / "hostile.so").write_bytes(data)
    return str(folder / "hostile.so")


def quickly(work, *arguments):
    begun = time.monotonic()
    result = work(*arguments)
    assert time.monotonic() - begun < SOON
    return result


TEXT = (b".text", NOBITS, CODE, 0x1000, (0, 0x100000), 0)
NAMES = 1 << 24
LIES = {
    "70,000 sections that are not there": elf([TEXT], count=70_000),
    "more sections than there can be": elf([TEXT], count=(1 << 32) - 1),
    "a section at the end of the world": elf([TEXT, (b".eh_frame", PROGBITS, 2, 0, ((1 << 64) - 8, 8), 0)]),
    "a section of 2**63 bytes": elf([TEXT, (b".strtab", STRTAB, 0, 0, (64, 1 << 63), 0)]),
    "names without an end": elf([TEXT] * 200, names=b"a" * (1 << 20)),
    "names beyond all measure": elf([TEXT], names=bytes(NAMES + 1)),
}


@pytest.mark.parametrize("data", LIES.values(), ids=LIES)
def test_headers_that_lie(tmp_path, data):
    path = written(tmp_path, data)
    found = quickly(excerpt.look, opened(path), [0x1004])
    assert found.parts is None
    with files.stream(path) as stream:
        try:
            sections = ElfSymbols(stream).sections
        except ValueError:
            return
    assert sum(len(section.name) for section in sections) < 1 << 16


def test_a_file_that_cannot_be_read_is_not_given_to_gdb(tmp_path):
    found = excerpt.look(opened(written(tmp_path, LIES["a section of 2**63 bytes"])), [0x1004])
    assert found.problem == "it cannot be read (an ELF table is damaged: a section of unknown size)"


def test_a_name_that_occurs_again_and_again(tmp_path):
    strings = b"environ\0" * (1 << 20)
    table = symbol(name=8, value=0x1234)
    path = written(tmp_path, elf([TEXT, (b".strtab", STRTAB, 0, 0, strings, 0), (b".symtab", SYMTAB, 0, 0, table, 2)]))
    with files.stream(path) as stream, pytest.raises(ValueError, match="again and again"):
        quickly(ElfSymbols(stream).look_up, ["environ"])


def test_a_string_table_that_is_a_hole(tmp_path, monkeypatch):
    """60 GiB of nothing: it is searched for as long as a name is worth."""
    monkeypatch.setattr("gdbext.capture.elf.reader._SECONDS", 0.5)
    data = elf([TEXT, (b".strtab", STRTAB, 0, 0, (4096, 60 << 30), 0), (b".symtab", SYMTAB, 0, 0, symbol(), 2)])
    path = written(tmp_path, data)
    with open(path, "r+b") as file:
        file.truncate(61 << 30)
    with files.stream(path) as stream, pytest.raises(ValueError, match=r"within 0\.5 s"):
        quickly(ElfSymbols(stream).look_up, ["environ"])


def test_sections_that_lie_over_each_other(tmp_path):
    covering = [TEXT] * 5000
    found = quickly(excerpt.look, opened(written(tmp_path, elf(covering))), list(range(0x1000, 0x9000, 8)), None, 0)
    assert found.parts is None


@pytest.mark.parametrize("size", [0, 10 << 20])
def test_symbols_that_cover_everything_and_names_of_ten_megabytes(tmp_path, monkeypatch, size):
    """All of them reach over all addresses, or start at one; their names are one long word."""
    monkeypatch.setattr(excerpt, "LEAST_SYMBOL_BYTES", 1)
    monkeypatch.setattr(excerpt, "UnwindTable", lambda *_: Nothing())
    count = 200_000
    strings = b"\0" + b"n" * size + b"\0"
    table = b"".join(symbol(name=number % 100 if size else 1 << 31, size=1 << 40) for number in range(count))
    data = elf([TEXT, (b".strtab", STRTAB, 0, 0, strings, 0), (b".symtab", SYMTAB, 0, 0, table, 2)])
    found = quickly(excerpt.look, opened(written(tmp_path, data)), list(range(0x1000, 0x2000, 8)))
    names = sum(len(one.name) for one in found.parts.symbols) if found.parts else 0
    assert names <= excerpt._MOST_NAMES


class Nothing:
    def excerpt(self, addresses):
        return b""


def test_an_index_of_symbols_that_reach_everywhere_has_limits(monkeypatch):
    monkeypatch.setattr("gdbext.capture.symbols.symbol_index._MOST_FOUND", 10_000)
    count = 100_000
    index = SymbolIndex(range(count), [1 << 60] * count, range(count))
    with pytest.raises(ValueError, match="cover everything"):
        quickly(index.around, range(0, count, 100))


# --- unwind rules ---


def ruled(instructions, initial=b""):
    return Entry(0x1000, 0x1000, 1, -8, initial, instructions)


@pytest.mark.parametrize(
    "instructions",
    [
        b"\x0a" * 100_000,  # remember_state
        b"".join(b"\x05" + bytes([128 | number & 127, 1 + (number >> 7)]) + b"\x01\x0a" for number in range(500)),
        b"\x0b" * 10,  # restore_state of nothing
        b"\x0c" + b"\xff" * 100,  # a number without an end
        b"\x3f",
    ],
)
def test_rules_without_a_measure(instructions):
    assert quickly(row_at, ruled(instructions), 0x1800) is None


def unwound(tmp_path, frames, address=0x3000):
    """A library whose .eh_frame is `frames`, with one entry in the search table, at offset 0x20 of it."""
    at = 0x2000
    header = struct.pack("<BBBB", 1, 0x1B, 3, 0x3B) + struct.pack("<iI", 0, 1)
    header += struct.pack("<ii", 0x1000 - address, at + 0x20 - address)
    sections = [TEXT, (b".eh_frame", PROGBITS, 2, at, frames, 0), (b".eh_frame_hdr", PROGBITS, 2, address, header, 0)]
    return written(tmp_path, elf(sections))


CIE = struct.pack("<II", 0x1C, 0) + b"\x01zR\0\x01\x78\x10\x01\x00" + bytes(0x20 - 17)
FRAMES = {
    "an entry of 4 GB": CIE + struct.pack("<II", 0xFFFFFFE0, 0x24) + bytes(64),
    "a common part that is the entry": CIE + struct.pack("<II", 0x20, 0x04) + bytes(64),
    "a common part before the beginning": CIE + struct.pack("<II", 0x20, 0x7FFFFFFF) + bytes(64),
    "a common part of 4 GB": struct.pack("<II", 0xFFFFFFE0, 0) + CIE[8:] + struct.pack("<II", 0x20, 0x24) + bytes(64),
    "cut off": CIE[:0x20] + b"\x20",
}


@pytest.mark.parametrize("frames", FRAMES.values(), ids=FRAMES)
def test_unwind_entries_that_lie(tmp_path, frames):
    file = opened(unwound(tmp_path, frames))
    found = quickly(excerpt.look, file, [0x1004], None, 0)
    assert found.parts is None
    table = _Files([MappedFile("lib", 0, 0, 1 << 20, "lib", opened=file)])
    assert quickly(table.row, 0x1004) is None


def test_stacks_without_two_equal_words_have_a_measure(monkeypatch):
    monkeypatch.setattr(mapped_libraries, "MOST_WORDS", 1000)
    stack = Block(0x7000, struct.pack("<5000Q", *range(5000)))
    copy = ProcessCopy(1, (ThreadCopy(1, (0xFFFF, 0xEEEE)),), (stack, stack))
    words = words_of(copy)
    assert len(words) == 1000 and {0xFFFF, 0xEEEE} <= set(words), "registers count first"


MEASURED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))
from gdbext.capture.symbols import excerpt
from gdbext.safe_open.kept_open_files import Shelf
excerpt.LEAST_SYMBOL_BYTES = 1
found = excerpt.look(Shelf().open(sys.argv[1]), list(range(0x1000, 0x9000, 4)))
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print("done", int(peak.split()[1]) >> 10)
"""


@pytest.mark.process
@pytest.mark.slow
def test_ten_million_symbols_take_little_memory(tmp_path):
    """With names that lie outside of their table."""
    count = 10_000_000
    table = symbol(name=0xFFFFFF00, size=1 << 30)
    data = elf([TEXT, (b".strtab", STRTAB, 0, 0, b"\0x\0", 0), (b".symtab", SYMTAB, 0, 0, (1 << 20, count * 24), 2)])
    path = written(tmp_path, data)
    with open(path, "r+b") as file:
        file.seek(1 << 20)
        for _ in range(count // 100_000):
            file.write(table * 100_000)
    done = subprocess.run([sys.executable, "-c", MEASURED, path], capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith("done "), done.stderr[-500:]
    assert int(done.stdout.split()[1]) < 300, "MiB"


# --- debug information ---

CIRCLE = r"""
    .section .debug_abbrev
    .byte 1, 0x11, 1, 0x03, 0x08, 0, 0
    .byte 2, 0x39, 1, 0x01, 0x13, 0, 0
    .byte 3, 0x39, 1, 0, 0
    .byte 0
    .section .debug_info
    .long end - begin
begin:
    .short 4
    .long 0
    .byte 8
    .byte 1
    .asciz "init.cc"
    {body}
    .byte 0, 0
end:
"""
BODIES = {
    "a sibling that is itself": ".byte 2\n.long 0x14\n.byte 0",
    "a sibling inside of another": ".byte 3\n.byte 2\n.long 0x15\n.byte 0\n.byte 0",
    "a million levels": ".fill 1000000, 1, 3\n",
}


@pytest.mark.process
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_debug_information_that_goes_in_circles(tmp_path, monkeypatch, body):
    monkeypatch.setattr(dwarf_layout, "_SECONDS", 1.0)
    (tmp_path / "circle.s").write_text(CIRCLE.format(body=body))
    subprocess.run(["gcc", "-shared", "-o", tmp_path / "libnccl.so", tmp_path / "circle.s"], check=True)
    before = threading.active_count()
    assert quickly(dwarf_layout.layout_of, str(tmp_path / "libnccl.so")) is None
    assert threading.active_count() == before, "nobody goes on with it"


def test_packed_debug_information_that_lies_about_its_size(tmp_path):
    chdr = struct.pack("<IIQQ", 1, 0, 1 << 40, 1) + zlib.compress(bytes(1 << 20))
    sections = [TEXT, (b".debug_info", PROGBITS, 0x800, 0, chdr, 0), (b".debug_abbrev", PROGBITS, 0, 0, b"\0", 0)]
    assert quickly(dwarf_layout.layout_of, written(tmp_path, elf(sections))) is None


def xz(size):
    return lzma.compress(bytes(size), preset=0)


TABLE = (b".eh_frame_hdr", PROGBITS, 2, 0x3000, struct.pack("<BBBBiI", 1, 0x1B, 3, 0x3B, 0, 0), 0)
UNWOUND = [TEXT, (b".eh_frame", PROGBITS, 2, 0x2000, bytes(4), 0), TABLE]
HUGE = 3 << 30
NUMBER = bytes([0x80, 0x80, 0x80, 0x80, 0x04])  # 1 GiB, seven bits a byte
PACKED = {
    "the form of today": (b".debug_info", 0x800, struct.pack("<IIQQ", 1, 0, HUGE, 1) + b"x"),
    "names beside it": (b".debug_str", 0x830, struct.pack("<IIQQ", 2, 0, HUGE, 1) + b"x"),
    "the older form": (b".zdebug_line", 0, b"ZLIB" + struct.pack(">Q", HUGE) + b"x"),
    "no room for its size": (b".debug_info", 0x800, b"x"),
    "symbols of several blocks": (b".gnu_debugdata", 0, lzma.compress(b"")[:12] + b"\0\3" + 3 * (b"\5" + NUMBER)),
    "an index beyond all measure": (b".gnu_debugdata", 0, bytes(16) + struct.pack("<II2s2s", 0, 1 << 30, b"", b"YZ")),
}


@pytest.mark.parametrize(("name", "flags", "data"), PACKED.values(), ids=PACKED)
def test_what_gdb_would_unpack_counts_as_it_will_be(tmp_path, name, flags, data):
    """250 KB of .gnu_debugdata became 1.5 GiB in gdb."""
    if b"\0\3" in data:
        index = data[12:] + bytes(-len(data[12:]) % 4) + bytes(4)
        data = data[:12] + index + struct.pack("<II2s2s", 0, len(index) // 4 - 1, b"\0\4", b"YZ")
    path = written(tmp_path, elf([*UNWOUND, (name, PROGBITS, flags, 0, data, 0)]))
    found = quickly(excerpt.look, opened(path), [0x1004])
    assert found.symbol_bytes >= HUGE and found.parts is not None, "gdb gets an excerpt of such a file"
    assert found.parts.debug >= HUGE, "and the answer says why frames have no lines"


def test_symbols_that_are_packed_as_they_should_be(tmp_path):
    data = xz(1 << 20)
    more = (b".gnu_debugdata", PROGBITS, 0, 0, data, 0)
    sections = [*UNWOUND, more, (b".zdebug_x", PROGBITS, 0, 0, b"as it is", 0)]
    file = opened(written(tmp_path, elf(sections)))
    found = excerpt.look(file, [0x1004])
    assert found.symbol_bytes == (1 << 20) + len(b"as it is") and found.parts is None, "gdb gets the file"
    assert excerpt.look(file, [0x1004], limit=1 << 20).parts.exported, "only exported functions have a name then"


def test_packed_bytes_that_are_cut_off_anywhere():
    data = xz(1 << 16)
    section = Section(b".gnu_debugdata", PROGBITS, 0, 0, len(data), 0)
    for at in range(len(data)):
        for mutated in (data[:at], data[:at] + b"\xff" + data[at + 1 :]):
            size = unpacked_size(lambda offset, size, of=mutated: of[max(offset, 0) :][:size], section)
            assert size >= len(data), (at, size)


def test_work_that_ends_in_time_is_what_it_is():
    assert in_time(60, lambda: 7) == 7
    with pytest.raises(KeyError):
        in_time(60, lambda: {}[1])
    with pytest.raises(ValueError, match="RecursionError"):
        in_time(60, endless)


def endless():
    return endless()
