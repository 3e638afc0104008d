"""Of which small files an excerpt says the same, and one file with the excerpts of many libraries."""

import struct
import subprocess

import pytest

from gdbext.capture.copies.copied_process import ProcessCopy, ThreadCopy
from gdbext.capture.elf import separate_debug
from gdbext.capture.elf.excerpt_file import Placed, write_file
from gdbext.capture.elf.object_file import build_id_of, file_reader, segments_of
from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.elf.unwind_entries import relocate_entries
from gdbext.capture.symbols import excerpt
from gdbext.capture.symbols.mapped_libraries import MappedFile
from gdbext.collect.gdb_runs import symbol_files
from gdbext.collect.gdb_runs.symbol_files import SymbolFiles
from tests.excerpts import opened, parts_of, weight_of

pytestmark = pytest.mark.process

SOURCE = r"""
extern int elsewhere(int);
int caller(int x) { return elsewhere(x) + 1; }
__asm__(".text\n.globl bare\n.type bare,@function\nbare: nop\n nop\n ret\n.size bare,.-bare\n");
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    (folder / "lib.c").write_text(SOURCE)
    flags = ["-O1", "-shared", "-fPIC", "-Wl,--build-id,-z,lazy"]
    subprocess.run(["gcc", *flags, "-o", folder / "lib.so", folder / "lib.c"], check=True)
    return str(folder / "lib.so")


def address_of(path, name):
    with open(path, "rb") as stream:
        elf = ElfSymbols(stream)
        return elf.look_up([name]).get(name) or elf.section_address(name)


def test_where_gdb_looks_at_more_than_an_excerpt_has_there_is_none(library):
    caller, bare, stub = (address_of(library, name) for name in ("caller", "bare", ".plt"))
    assert parts_of(library, [caller + 4]) is None, "gdb reads it quickly"
    assert parts_of(library, [caller + 4], small=True).symbols[0].name == b"caller"
    assert parts_of(library, sorted([bare + 1, caller + 4]), small=True) is None, "no unwind entry"
    assert parts_of(library, sorted([stub + 16, caller + 4]), small=True) is None, "gdb makes names of stubs"
    assert parts_of(library, sorted([stub + 16, caller + 4]), limit=0) is not None


@pytest.mark.parametrize("linked", [False, True], ids=["by its build-id", "by its name"])
def test_a_file_with_debug_information_elsewhere_is_left_to_gdb_if_that_is_not_too_much(tmp_path, monkeypatch, linked):
    monkeypatch.setattr(separate_debug, "FOLDERS", (str(tmp_path / "debug"),))
    monkeypatch.setattr(excerpt, "LEAST_SYMBOL_BYTES", 1)
    library, source = str(tmp_path / "lib.so"), tmp_path / "lib.c"
    source.write_text("static int inner(int x) { return x; } int outer(int x) { return inner(x); }")
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-Wl,--build-id", "-o", library, source], check=True)
    read = file_reader(library)
    build_id = build_id_of(read, segments_of(read))
    folder = tmp_path / "debug" / (str(tmp_path)[1:] if linked else f".build-id/{build_id[:2]}")
    folder.mkdir(parents=True)
    apart = folder / ("lib.so.debug" if linked else f"{build_id[2:]}.debug")
    subprocess.run(["objcopy", "--only-keep-debug", library, apart], check=True)
    extra = [f"--add-gnu-debuglink={apart}"] if linked else []
    subprocess.run(["objcopy", "--strip-all", *extra, library], check=True)
    inside = [address_of(library, "outer") + 4]
    assert parts_of(library, inside) is None and parts_of(library, inside, small=True) is None
    parts = parts_of(library, inside, limit=weight_of(library) - 1)
    assert parts.debug > 100 and parts.exported and parts.symbols[0].name == b"outer"
    apart.unlink()
    parts = parts_of(library, inside)
    assert parts is not None and not parts.debug and not parts.exported


def test_one_file_has_each_library_where_it_lies(library, tmp_path):
    caller, target = address_of(library, "caller"), str(tmp_path / "all")
    parts = parts_of(library, [caller + 4], small=True)
    biases = [0x7F0000000000, 0x10000, 0x550000000000]
    write_file(target, [Placed(parts, bias) for bias in biases])
    listed = subprocess.run(["nm", target], capture_output=True, text=True, check=True).stdout.splitlines()
    assert sorted(line.split() for line in listed) == sorted(
        [f"{bias + caller:016x}", "T", "caller"] for bias in biases
    )
    entries = subprocess.run(["readelf", "-wf", target], capture_output=True, text=True, check=True).stdout
    assert entries.count(" FDE ") == 3
    assert all(f"pc={bias + caller:016x}.." in entries for bias in biases)
    headers = subprocess.run(["readelf", "-SW", target], capture_output=True, text=True, check=True).stdout
    assert headers.count(" .text ") == 3 and "Warning" not in headers


def test_entries_are_moved_and_come_back():
    common = struct.pack("<II", 12, 0) + bytes(8)
    entry = struct.pack("<IIQQ", 20, len(common) + 4, 0x1000, 16)
    there = relocate_entries(common + entry, 0x7F0000000000)
    assert there[: len(common)] == common and struct.unpack_from("<Q", there, len(common) + 8) == (0x7F0000001000,)
    assert relocate_entries(there, -0x7F0000000000) == common + entry


@pytest.mark.parametrize("many", [0, 100])
def test_without_room_gdb_gets_the_files_themselves(library, tmp_path, monkeypatch, many):
    monkeypatch.setattr(symbol_files, "MANY", many)
    monkeypatch.setattr(symbol_files, "LIMIT", 1)  # no file is small
    file = opened(library)
    mapped = [MappedFile(library, 0, 0, 1 << 40, library, opened=file)]
    for folder, whole in ((tmp_path, False), (tmp_path / "none", True)):
        made = SymbolFiles(folder, lambda text: None, 1e9)
        made.make([ProcessCopy(1, (ThreadCopy(1, (address_of(library, "caller") + 4,)),))], [mapped])
        rows = made.rows(0, mapped, "")
        assert [(row["name"] == library, row["path"].endswith(file.link)) for row in rows] == [
            (whole or many > 0, whole)
        ]
