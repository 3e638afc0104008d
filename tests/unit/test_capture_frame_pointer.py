"""The frame pointer of a blocked thread: prologues, calls, unwind rules, and programs that keep their frames in it."""

import pytest
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.elf.unwind_entries import Entry, UnwindTable
from gdbext.capture.elf.unwind_rules import Row, row_at
from gdbext.capture.machine import ARCHITECTURES
from gdbext.capture.machine.x86_64.calls import calls_function
from gdbext.capture.machine.x86_64.prologue import room_below_frame
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.stop.copy_of_process import copy_process
from gdbext.capture.symbols.mapped_libraries import libraries_on_stacks
from gdbext.capture.without_stop.copying import copy_outside
from gdbext.capture.without_stop.frame_pointer import finder_of, with_frame_pointers
from gdbext.capture.without_stop.sleeping_threads import UNKNOWN
from tests.inferiors.capture_process import CaptureProcess, build

FRAME = "55 48 89 e5"  # push %rbp; mov %rsp,%rbp
ENDBR = "f3 0f 1e fa"


@pytest.mark.parametrize(
    "code, room",
    [
        (f"{FRAME} 48 83 ec 20", 0x20),
        (f"{ENDBR} {FRAME} 48 81 ec 00 10 00 00 89 7d fc", 0x1000),
        (f"{ENDBR} {FRAME} 41 57 41 56 53 48 83 ec 18", 0x30),
        (f"{FRAME} e8 00 00 00 00", 0),  # no locals: the first call ends it
        (f"{FRAME} 53 75 10 50 50", 8),  # a branch ends it
        (f"{FRAME} 53", 8),  # the end of what is there
        ("55 31 c0 48 89 e5 41 54 49 89 fc 48 8d 05 10 00 00 00 48 83 ec 08", 16),  # between them other work
        ("55 66 0f ef c0 48 8b ec 0f 29 45 f0 c5 fa 6f 06 48 83 ec 10", 16),
        ("55 48 89 e5 c7 45 fc 07 00 00 00 b8 01 00 00 00 48 c7 c0 01 00 00 00 48 83 ec 40", 0x40),
        ("55 48 89 e5 64 48 8b 04 25 28 00 00 00 48 83 ec 40", 0x40),
        ("48 83 ec 08", None),  # rbp is no frame pointer
        (f"{FRAME} 48 83 e4 e0 48 83 ec 20", None),  # and $-32,%rsp
        (f"{FRAME} 48 29 c4", None),  # sub %rax,%rsp
        (f"{FRAME} 48 8d 64 24 80", None),  # lea -128(%rsp),%rsp
        (f"{FRAME} 48 83 ec 80", None),  # sub $-128,%rsp
        (f"{FRAME} 06", None),  # no instruction at all
        (f"{FRAME} 62 f1 7c 48", None),  # AVX-512: not in the table
        (f"{FRAME} 48 81 ec 00", None),  # cut off
        ("", None),
    ],
)
def test_what_a_prologue_takes_off_the_stack(code, room):
    assert room_below_frame(bytes.fromhex(code)) == room


def memory(pieces):
    def read(address, size):
        for start, text in pieces.items():
            data = bytes.fromhex(text) if isinstance(text, str) else text
            data = data.ljust(64, b"\x90")
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        return None

    return read


CALLER = 0x1000


@pytest.mark.parametrize(
    "before, target, expected",
    [
        ("90 90 e8 f9 0f 00 00", {}, True),  # call 0x2000
        ("90 90 e8 f8 0f 00 00", {}, False),  # another function
        ("90 90 e8 f9 1f 00 00", {0x3000: "ff 25 fa 0f 00 00", 0x4000: (0x2000).to_bytes(8, "little")}, True),  # PLT
        (
            "90 90 e8 f9 1f 00 00",
            {0x3000: f"{ENDBR} f2 ff 25 f5 0f 00 00", 0x4000: (0x2000).to_bytes(8, "little")},
            True,
        ),
        ("90 90 e8 f9 1f 00 00", {0x3000: "ff 25 fa 0f 00 00", 0x4000: (0x2010).to_bytes(8, "little")}, False),
        ("90 90 e8 f9 1f 00 00", {0x3000: "e9 fb ef ff ff"}, True),  # a thunk
        ("90 ff 15 f9 2f 00 00", {0x4000: (0x2000).to_bytes(8, "little")}, True),  # by the global offset table
        ("90 ff 15 f9 2f 00 00", {0x4000: (0x2010).to_bytes(8, "little")}, False),
        ("90 90 90 90 90 ff d0", {}, True),  # call *%rax: may be any function
        ("90 90 90 90 41 ff d4", {}, True),
        ("90 90 90 90 ff 50 18", {}, True),
        ("90 90 90 ff 54 24 08", {}, True),
        ("90 ff 90 88 00 00 00", {}, True),
        ("90 90 90 90 90 90 90", {}, False),
        ("90 90 90 90 90 ff e0", {}, False),  # a jump
        ("90 90 90 90 90 ff c0", {}, False),  # inc
    ],
)
def test_a_return_address_behind_a_call_of_the_function(before, target, expected):
    read = memory({CALLER: before, **target})
    assert calls_function(CALLER + 7, 0x2000, read) is expected


def test_nothing_readable_is_no_call():
    assert calls_function(0x5000, 0x2000, memory({})) is False


class Code:
    """Unwind rules by address."""

    def __init__(self, rows):
        self._rows = rows

    def row(self, address):
        return self._rows.get(address)


X86, ARM = ARCHITECTURES
BY_SP = Row(7, 24, {16: -8})
BY_FRAME = Row(6, 16, {16: -8, 6: -16})


def find(words, rows=None, caller="90 90 e8 f9 0f 00 00"):
    """A system call at 0x500, called by a function at 0x2000 with a frame of 32 bytes, called from 0x1007."""
    rows = rows if rows is not None else {0x500: (0x4F0, BY_SP), 0x2030 - 1: (0x2000, BY_FRAME)}
    code = memory({0x2000: f"{FRAME} 48 83 ec 20", CALLER: caller})
    return finder_of(X86, Code(rows), words.get, code).frame_pointer(0x500, 0x7FF0_0008)


WORDS = {0x7FF0_0018: 0x2030, 0x7FF0_0048: 0x1007}


def test_the_frame_pointer_lies_where_the_prologue_says():
    assert find(WORDS) == 0x7FF0_0040


def test_it_is_not_taken_without_its_call():
    assert find({**WORDS, 0x7FF0_0048: 0x9999}) is None
    assert find(WORDS, caller="90 90 e8 f8 0f 00 00") is None


def test_it_is_not_needed_where_somebody_saved_it():
    assert find(WORDS, {0x500: (0x4F0, BY_SP._replace(saved={16: -8, 6: -16}))}) is None


def test_code_without_rules_ends_the_search():
    assert find(WORDS, {}) is None
    assert find(WORDS, {0x500: (0x4F0, Row(None, 0, {}))}) is None
    assert find({}) is None


def test_more_saved_registers_than_the_prologue_has_room_for():
    deep = BY_FRAME._replace(saved={**BY_FRAME.saved, 3: -72})
    assert find(WORDS, {0x500: (0x4F0, BY_SP), 0x2030 - 1: (0x2000, deep)}) is None


def test_endless_stacks_end():
    rules = Code({0: (0, BY_SP), 1: (0, BY_SP)})
    assert finder_of(X86, rules, lambda address: 1, memory({})).frame_pointer(1, 16) is None


@pytest.mark.parametrize("row", [ARM, None])
def test_code_of_another_machine_is_not_read(row):
    assert finder_of(row, Code({}), lambda address: 1, memory({})) is None


# --- rules ---


@pytest.mark.process
def test_rules_are_those_of_another_reader():
    """Every address of a program where something changes, against pyelftools."""
    program = build("-O0", "-fno-omit-frame-pointer")
    with open(program, "rb") as stream:
        sections = ElfSymbols(stream).sections
        stream.seek(0)
        data = stream.read()
        entries = [one for one in ELFFile(stream).get_dwarf_info().EH_CFI_entries() if isinstance(one, FDE)]
    table = UnwindTable(data, sections)
    compared = 0
    for fde in entries:
        for row in fde.get_decoded().table:
            if isinstance(row["cfa"].expr, list) or row["pc"] >= fde["initial_location"] + fde["address_range"]:
                continue
            entry = table.entry(row["pc"])
            assert (entry.start, entry.size) == (fde["initial_location"], fde["address_range"])
            found = row_at(entry, row["pc"])
            saved = {reg: rule.arg for reg, rule in row.items() if isinstance(reg, int) and rule.type == "OFFSET"}
            assert found == Row(row["cfa"].reg, row["cfa"].offset, saved)
            compared += 1
    assert compared > 50
    assert table.entry(1) is None


@pytest.mark.parametrize("code", [b"\x3f", b"\x0b", b"\x0c\x07", b"\x0f\x05\x01", b"\x80", b"\x05\xff" * 40])
def test_damaged_rules_are_no_rules(code):
    row = row_at(Entry(0x100, 0x10, 1, -8, b"\x0c\x07\x08\x90\x01", code), 0x108)
    assert row is None or row.register in (7, None)


# --- real programs ---


@pytest.mark.process
@pytest.mark.parametrize(
    "flags", [("-O0", "-fno-omit-frame-pointer"), ("-O2", "-fno-omit-frame-pointer")], ids=" ".join
)
def test_what_is_found_is_what_a_stop_shows(flags):
    with CaptureProcess(threads=12, depth=20, program=build(*flags)) as process:
        process.wait_asleep()
        copy = copy_outside(process.pid).copy
        found = with_frame_pointers(copy, libraries_on_stacks(copy), ProcessMemory(process.pid).read)
        stopped = {thread.tid: thread for thread in copy_process(process.pid).threads}
        hearts = {tid for tid in process.tids() if process.name(tid) == "heartbeat"}
    pairs = [
        (thread.registers[4], stopped[thread.tid].registers[4])
        for thread in found.threads
        if thread.registers and thread.tid not in hearts
    ]
    assert all(ours in (UNKNOWN, true) for ours, true in pairs)
    assert sum(ours == true for ours, true in pairs) >= 4  # who waits for a mutex or by epoll has nobody's rbp saved
