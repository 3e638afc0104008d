"""Symbol tables that are gone through in pieces find what an index finds; what is too much for gdb is left out and
said; threads that a stop was too short for are in the answer."""

import math
import os
import random
import shutil
import struct
import subprocess

import pytest

from gdbext.capture.copies.copied_process import ProcessCopy, ThreadCopy
from gdbext.capture.elf.excerpt_file import Placed, write_file
from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.symbols import excerpt, large_symbol_tables
from gdbext.capture.symbols.mapped_libraries import MappedFile
from gdbext.capture.symbols.symbol_index import SymbolIndex
from gdbext.collect.gdb_runs import symbol_files, unwinding
from gdbext.collect.gdb_runs.symbol_files import SymbolFiles
from gdbext.collect.gdb_runs.unwinding import Unwound
from gdbext.model.stack import Frame, ThreadStack
from tests.excerpts import opened, parts_of, weight_of
from tests.inferiors import size_build
from tests.inferiors.size_build import CODE, Symbols

pytestmark = pytest.mark.process

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
    for table in large_symbol_tables.tables_of(elf.sections):
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
    monkeypatch.setattr(large_symbol_tables, "_PIECE", piece)
    pieces, index, dice = large_symbol_tables.pieces_of(elf), SymbolIndex.of(elf), random.Random(piece)
    text = elf.section(".text")
    everywhere = range(text.address - 20, text.address + text.size + 20)
    for count in (0, 1, 2, 10, 60):
        addresses = sorted(dice.sample(everywhere, count))
        found = large_symbol_tables.symbols_around(elf, pieces, addresses)
        # Further ones of an index are those between a symbol that covers an address, and the address.
        assert covering(elf, addresses) <= found <= index.around(addresses)
    assert large_symbol_tables.load(large_symbol_tables.dump(pieces), elf) == pieces


def test_few_pieces_are_read_for_few_addresses(elf, monkeypatch):
    monkeypatch.setattr(large_symbol_tables, "_PIECE", 64)
    pieces = large_symbol_tables.pieces_of(elf)
    read = []
    at = elf.at
    monkeypatch.setattr(elf, "at", lambda offset, size: read.append(size) or at(offset, size))
    local = elf.look_up([(size_build._NAME % 100).decode()[:-1].replace("XXXX", "0000")]).popitem()[1]
    read.clear()
    assert large_symbol_tables.symbols_around(elf, pieces, [local + 4])
    ordered = COUNT // 2 // 64
    assert len(pieces) > 2 * ordered > len(read) + ordered, "the local symbols stand in order: one piece of them"


def test_damaged_pieces_are_not_taken(elf):
    good = large_symbol_tables.dump(large_symbol_tables.pieces_of(elf))
    dice = random.Random(3)
    for _ in range(100):
        bad = bytearray(good)
        bad[dice.randrange(len(bad))] ^= 1 << dice.randrange(8)
        assert large_symbol_tables.load(bytes(bad), elf) == []
    assert all(large_symbol_tables.load(good[:size], elf) == [] for size in range(len(good)))


def test_an_excerpt_is_the_same_by_pieces_and_by_an_index(library, tmp_path, monkeypatch):
    stripped = str(tmp_path / "stripped.so")
    subprocess.run(["objcopy", "--strip-debug", library, stripped], check=True)
    monkeypatch.setattr(excerpt, "LEAST_SYMBOL_BYTES", 1)
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
        parts = parts_of(stripped, addresses, folder, say=lambda *both: said.append(both))
        write_file(target, [Placed(parts, 0)])
        with open(target, "rb") as file:
            made.append((file.read(), bool(said)))
    assert made[0][0] == made[1][0] == made[2][0]
    assert [said for _, said in made] == [False, True, False], "with what was kept nobody waits"


def symbols_of(paths, folder, monkeypatch, memory=None, until=math.inf):
    """(what gdb gets of each file, the notes) for one address in each of them."""
    monkeypatch.setattr(symbol_files, "readable", lambda: memory)
    with open(paths[0], "rb") as file:
        address = ElfSymbols(file).section(".text").address + 40 * CODE + 5
    mapped = [
        MappedFile(path, number << 40, number << 40, number + 1 << 40, path, opened=opened(path))
        for number, path in enumerate(paths)
    ]
    words = tuple(address + file.bias for file in mapped)
    made = SymbolFiles(folder, lambda text: None, until)
    copy = ProcessCopy(1, (ThreadCopy(1, words),))
    made.make([copy], [mapped])
    rows = made.rows(0, mapped, "")
    assert [row["bias"] for row in rows] in ([0], [file.bias for file in mapped], [])
    places = [row["name"] if row["path"].startswith("/proc/") else row["path"] for row in rows]
    return places, made.notes(copy, mapped)


def test_debug_information_beyond_the_memory_at_hand_is_left_out_and_said(library, tmp_path, monkeypatch):
    weight = weight_of(library)
    assert weight > COUNT * 48
    assert symbols_of([library], tmp_path, monkeypatch, weight) == ([library], []), "gdb gets it whole"
    (place,), (note,) = symbols_of([library], tmp_path, monkeypatch, weight - 1)
    assert os.path.getsize(place) < 8192
    assert note.startswith("lib0.so: its ") and "debug information were not read" in note
    other = str(tmp_path / "libother.so")
    shutil.copy(library, other)
    places, notes = symbols_of([library, other], tmp_path, monkeypatch, weight + weight // 2)
    assert places[0] == library and places[1] != other and len(notes) == 1, "together they are too much"


def test_what_is_too_much_and_has_no_excerpt_is_not_given_to_gdb(library, tmp_path, monkeypatch):
    bare = str(tmp_path / "bare.so")
    subprocess.run(["objcopy", "--remove-section=.eh_frame_hdr", library, bare], check=True)
    places, (note,) = symbols_of([bare], tmp_path, monkeypatch, 1000)
    assert places == [] and "too many to read" in note
    assert symbols_of([bare], tmp_path, monkeypatch) == ([bare], [])


@pytest.fixture
def without_debug(library, tmp_path):
    stripped = str(tmp_path / "stripped.so")
    subprocess.run(["objcopy", "--strip-debug", library, stripped], check=True)
    return stripped


def names_in(path):
    return subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.split()[2::3]


def test_files_for_whose_symbols_there_is_no_time_have_no_names_and_are_told(without_debug, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(excerpt, "LEAST_SYMBOL_BYTES", 1)
    paths = [without_debug, *(f"{without_debug}.{number}" for number in range(4))]
    for path in paths[1:]:
        shutil.copy(without_debug, path)
    places, (note,) = symbols_of(paths, tmp_path, monkeypatch, until=0.0)
    assert note.startswith("5 files (stripped.so, stripped.so.0, stripped.so.1, ...): no names for their frames")
    assert "--deadline" in note and "a second run is faster" in note
    assert [names_in(place) for place in places] == [[]] * 5
    entries = subprocess.run(["readelf", "-wF", places[0]], capture_output=True, text=True, check=True).stdout
    assert len(places) == 5 and "CFA" in entries, "they are unwound"
    _, notes = symbols_of(paths[:1], tmp_path, monkeypatch, until=0.0)
    assert len(notes) == 1 and notes[0].startswith("stripped.so: no names for its frames")
    monkeypatch.setenv("GDBEXT_CACHE", "off")
    _, notes = symbols_of(paths[:1], tmp_path, monkeypatch, until=0.0)
    assert "Without a cache" in notes[0] and "longer --deadline" in notes[0] and "faster" not in notes[0]
    monkeypatch.delenv("GDBEXT_CACHE")
    for until in (math.inf, 0.0):  # what was kept takes no time
        (place,), notes = symbols_of(paths[:1], tmp_path, monkeypatch, until=until)
        assert notes == [] and len(names_in(place)) == 1


def test_looks_without_time_get_to_an_end_together(without_debug, tmp_path, monkeypatch):
    """Each goes on where the one before was cut off."""
    monkeypatch.setattr(excerpt, "LEAST_SYMBOL_BYTES", 1)
    monkeypatch.setattr(excerpt, "MOST", 10)
    monkeypatch.setattr(large_symbol_tables, "_PIECE", 1000)
    cache = tmp_path / "cache"
    cache.mkdir(0o700)
    with open(without_debug, "rb") as file:
        address = ElfSymbols(file).section(".text").address + 40 * CODE + 5
    begun = []
    for _ in range(5):
        parts = parts_of(without_debug, [address], str(cache), say=lambda done, _: begun.append(done), until=0.0)
        assert not parts.named and not parts.symbols
    assert begun[0] == 0 and begun[-1] >= COUNT and len(set(begun)) == 5, "one piece each"
    parts = parts_of(without_debug, [address], str(cache), say=lambda done, _: begun.append(done))
    assert len(begun) == 5 and parts == parts_of(without_debug, [address])
    assert parts.named and len(parts.symbols) == 1


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
