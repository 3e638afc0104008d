"""Where a file lies in memory, and how large the pages of a core are."""

import struct

import pytest

from gdbext.capture.cores.core_notes import read_notes
from gdbext.capture.elf.core_notes_layout import NT_FILE
from gdbext.capture.elf.layout import HEADER, OURS, PT_LOAD, Segment, header_of
from gdbext.capture.elf.object_file import bias_among, bias_of
from gdbext.capture.elf.writer import note
from gdbext.capture.memory.maps import Mapping

BASE = 0x7F00_0000_0000


def load(flags, offset, address, size):
    return Segment(PT_LOAD, flags, offset, address, size, size)


def mapping(start, end, permissions, offset):
    return Mapping(start, end, permissions, offset, "08:01", 7, "/lib/libx.so")


# As lld lays them out: the end of one and the beginning of the next share a page of the file, a page further in memory.
LLD = [load(4, 0, 0, 0x640), load(5, 0x640, 0x1640, 0x1900), load(6, 0x1F40, 0x3F40, 0x200)]


def mapped(base):
    return [
        mapping(base, base + 0x1000, "r--p", 0),
        mapping(base + 0x1000, base + 0x3000, "r-xp", 0),
        mapping(base + 0x3000, base + 0x4000, "rw-p", 0x1000),
    ]


def test_a_file_whose_segments_share_pages_lies_where_its_code_shows():
    assert bias_among(LLD, False, mapped(BASE)) == BASE
    assert bias_among(LLD, False, reversed(mapped(BASE))) == BASE
    assert bias_among(LLD, False, mapped(BASE)[:1]) == BASE  # its code was moved to large pages
    assert bias_among(LLD, False, [mapping(BASE, BASE + 0x1000, "rw-p", 0x9000)]) is None


@pytest.mark.parametrize("base, found", [(0, 0), (0x1000, None)])
def test_what_is_linked_to_a_fixed_address_lies_there_or_is_another_file(base, found):
    assert bias_among(LLD, True, mapped(base)) == found


def test_large_pages_are_those_of_the_process():
    """Of 64 KiB: a mapping begins at a multiple, in the file as in memory."""
    code = [load(5, 0x12340, 0x22340, 0x9000)]
    assert bias_of(code, mapping(BASE + 0x20000, BASE + 0x30000, "r-xp", 0x10000), page=0x10000) == BASE


@pytest.mark.parametrize("page, read", [(4096, 4096), (65536, 65536), (0, None), (5000, None), (1 << 40, None)])
def test_pages_of_a_core_are_as_large_as_its_files_say(page, read):
    data = note(NT_FILE, struct.pack("<5Q", 1, page, BASE, BASE + 0x10000, 1) + b"/lib/libx.so\0")
    usual = read_notes(lambda at, size: b"", 0).page
    notes = read_notes(lambda at, size: data[at : at + size], len(data))
    assert notes.page == (read or usual)
    assert [one.offset for one in notes.files] == [page]


def test_a_header_is_of_a_64_bit_little_endian_file_and_whole():
    data = HEADER.pack(OURS + bytes(10), 3, 62, 1, 0, 64, 0, 0, 64, 56, 9, 64, 30, 29)
    assert (header_of(data).machine, header_of(data).segment_count, header_of(data).names) == (62, 9, 29)
    assert header_of(data[:-1]) is header_of(b"\x7fELF\x01" + data[5:]) is None
