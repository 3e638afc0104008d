"""Symbol tables that are gone through in pieces find what an index finds; what is too much for gdb is left out and
said; threads that a stop was too short for are in the answer."""

import os
import random
import struct
import subprocess

import pytest

from gdbext.capture import excerpt, symbol_sweep
from gdbext.capture.elf_symbols import ElfSymbols
from gdbext.capture.excerpt import weight_of, write_excerpt
from gdbext.capture.libraries import MappedFile
from gdbext.capture.stop import ProcessCopy, ThreadCopy
from gdbext.capture.symbol_index import SymbolIndex
from gdbext.frontend import request, unwinding
from gdbext.frontend.unwinding import Unwound
from gdbext.model.stack import Frame, ThreadStack
from tests.inferiors import size_build
from tests.inferiors.size_build import CODE, Symbols

COUNT = 3000


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library with debug information: 3,000 functions, half of them in the order of a hash table."""
    folder = tmp_path_factory.mktemp("size")
    size_build.build(folder, 1, Symbols(COUNT, debug=True))
    return str(folder / "lib0.so")


@pytest.fixture
def elf(library):
    with open(library, "rb") as file:
        yield ElfSymbols(file)


def covering(elf, addresses):
    """Numbers of the symbols of code that cover an address or begin last before it, by a plain search."""
    rows, number = [], 0
    for table in symbol_sweep.tables_of(elf.sections):
        for _, info, _, section, start, size in struct.iter_unpack("<IBBHQQ", elf.content(table)):
            if section < len(elf.sections) and elf.sections[section].flags & 6 == 6 and info & 15 in (0, 1, 2, 10):
                rows.append((number, start, size))
            number += 1
    found = set()
    for address in addresses:
        last = max((start for _, start, _ in rows if start <= address), default=None)
        found.update(n for n, start, size in rows if start <= address <= start + size or start == last)
    return found


@pytest.mark.parametrize("piece", [16, 1000, 1 << 16])
def test_a_sweep_finds_what_an_index_finds(elf, monkeypatch, piece):
    monkeypatch.setattr(symbol_sweep, "_PIECE", piece)
    pieces, index, dice = symbol_sweep.pieces_of(elf), SymbolIndex.of(elf), random.Random(piece)
    text = elf.section(".text")
    everywhere = range(text.address - 20, text.address + text.size + 20)
    for count in (0, 1, 2, 10, 60):
        addresses = sorted(dice.sample(everywhere, count))
        found = symbol_sweep.around(elf, pieces, addresses)
        # Further ones of an index are those between a symbol that covers an address, and the address.
        assert covering(elf, addresses) <= found <= index.around(addresses)
    assert symbol_sweep.load(symbol_sweep.dump(pieces), elf) == pieces


def test_few_pieces_are_read_for_few_addresses(elf, monkeypatch):
    monkeypatch.setattr(symbol_sweep, "_PIECE", 64)
    pieces = symbol_sweep.pieces_of(elf)
    read = []
    at = elf.at
    monkeypatch.setattr(elf, "at", lambda offset, size: read.append(size) or at(offset, size))
    local = elf.look_up([(size_build._NAME % 100).decode()[:-1].replace("XXXX", "0000")]).popitem()[1]
    read.clear()
    assert symbol_sweep.around(elf, pieces, [local + 4])
    ordered = COUNT // 2 // 64
    assert len(pieces) > 2 * ordered > len(read) + ordered, "the local symbols stand in order: one piece of them"


def test_damaged_pieces_are_not_taken(elf):
    good = symbol_sweep.dump(symbol_sweep.pieces_of(elf))
    dice = random.Random(3)
    for _ in range(100):
        bad = bytearray(good)
        bad[dice.randrange(len(bad))] ^= 1 << dice.randrange(8)
        assert symbol_sweep.load(bytes(bad), elf) is None
    assert all(symbol_sweep.load(good[:size], elf) is None for size in range(len(good)))


def test_an_excerpt_is_the_same_by_pieces_and_by_an_index(library, tmp_path, monkeypatch):
    stripped = str(tmp_path / "stripped.so")
    subprocess.run(["objcopy", "--strip-debug", library, stripped], check=True)
    monkeypatch.setattr(excerpt, "WORTH_IT", 1)
    with open(stripped, "rb") as file:
        text = ElfSymbols(file).section(".text")
    addresses = [text.address + 5, text.address + 40 * CODE, text.address + text.size - 1]
    cache = tmp_path / "cache"
    cache.mkdir(0o700)
    made = []
    for most in (1 << 20, 10, 10):
        monkeypatch.setattr(excerpt, "MOST", most)
        said = []
        target = str(tmp_path / "excerpt")
        folder = str(cache) if most == 10 else None
        assert write_excerpt(stripped, addresses, target, folder, say=lambda *both: said.append(both))
        with open(target, "rb") as file:
            made.append((file.read(), bool(said)))
    assert made[0][0] == made[1][0] == made[2][0]
    assert [said for _, said in made] == [False, True, False], "with what was kept nobody waits"


def excerpts_of(paths, folder, monkeypatch, memory):
    monkeypatch.setattr(request, "readable", lambda: memory)
    made = request._Excerpts(folder, lambda text: None)
    made.make([ProcessCopy(1, (ThreadCopy(1, (5000,)),))], [[MappedFile(path, 0, 0, 1 << 40, path) for path in paths]])
    return made


def test_debug_information_beyond_the_memory_at_hand_is_left_out_and_said(library, tmp_path, monkeypatch):
    weight = weight_of(library)
    assert weight > COUNT * 48
    made = excerpts_of([library], tmp_path, monkeypatch, weight)
    assert made.place(library) == library and not made.notes, "gdb gets it whole"
    made = excerpts_of([library], tmp_path, monkeypatch, weight - 1)
    assert os.path.getsize(made.place(library)) < 8192
    assert "debug information were not read" in made.notes[library]
    other = str(tmp_path / "libother.so")
    os.link(library, other)
    made = excerpts_of([library, other], tmp_path, monkeypatch, weight + weight // 2)
    assert made.place(library) == library and made.place(other) != other, "together they are too much"


def test_what_is_too_much_and_has_no_excerpt_is_not_given_to_gdb(library, tmp_path, monkeypatch):
    bare = str(tmp_path / "bare.so")
    subprocess.run(["objcopy", "--remove-section=.eh_frame_hdr", library, bare], check=True)
    made = excerpts_of([bare], tmp_path, monkeypatch, 1000)
    assert made.place(bare) == ""
    assert "too many to be read" in made.notes[bare]
    assert excerpts_of([bare], tmp_path, monkeypatch, None).place(bare) == bare


def test_threads_that_did_not_stop_in_time_are_not_missing():
    copy = ProcessCopy(
        1,
        (ThreadCopy(1, (1,)), ThreadCopy(2, (1,), truncated="4096 bytes"), ThreadCopy(3, problem="it did not stop")),
        pause_ms=1.0,
    )
    stacks = tuple(ThreadStack(str(tid), (Frame("f"),), tid) for tid in (1, 2))
    found = unwinding._complete(Unwound(stacks), copy)
    assert [(one.lwp, len(one.frames), one.truncated) for one in found.stacks] == [
        (1, 1, None),
        (2, 1, "4096 bytes"),
        (3, 0, "it did not stop"),
    ]
    assert found.cut[0] == "1 of 3 threads were not read (it did not stop)"
    assert found.cut[1].startswith("the stacks of 1 of 3 threads were not copied to their outer end")
    assert unwinding._complete(Unwound(stacks), ProcessCopy(1, copy.threads[:1], pause_ms=1.0)) == Unwound(stacks)
