"""Variables by their addresses: those of this very process."""

import ctypes
import os
from pathlib import Path

import pytest

from gdbext.capture.memory.maps import MemoryMap, read_maps
from gdbext.capture.symbols.global_variables import variable_in

FLAG = "Py_VerboseFlag"


def address_of(name):
    return ctypes.addressof(ctypes.c_int.in_dll(ctypes.pythonapi, name))


def names(memory, readable=lambda name: None):
    return variable_in(memory, "", readable)


@pytest.fixture
def memory():
    return read_maps(os.getpid())


def test_a_variable_and_what_lies_in_it(memory):
    named = names(memory)
    assert named(address_of(FLAG)) == FLAG
    assert named(address_of(FLAG) + 2) == f"{FLAG}+0x2"


def test_names_are_made_for_people(memory):
    assert names(memory, lambda name: f"<{name}>")(address_of(FLAG) + 1) == f"<{FLAG}>+0x1"


def test_memory_of_no_file_has_no_names(memory):
    here = ctypes.create_string_buffer(8)
    assert names(memory)(ctypes.addressof(here)) == ""
    assert names(memory)(16) == ""


def test_another_file_under_the_same_path_names_nothing(memory):
    replaced = MemoryMap([one._replace(inode=one.inode + 1) for one in memory])
    removed = MemoryMap([one._replace(path=f"{one.path} (deleted)") for one in memory])
    away = variable_in(memory, "/nonexistent", lambda name: None)
    assert names(replaced)(address_of(FLAG)) == names(removed)(address_of(FLAG)) == away(address_of(FLAG)) == ""


def test_damaged_files_name_nothing(memory, tmp_path):
    address = address_of(FLAG)
    own = next(one for one in memory if one.start <= address < one.end)
    path = next(one.path for one in memory if one.end == own.start) if not own.path else own.path
    whole = Path(path).read_bytes()[: 1 << 22]
    for text in (b"", b"\x7fELF", whole[:64], whole[: 1 << 12], whole):
        file = tmp_path / "damaged"
        file.write_bytes(text)
        inode = file.stat().st_ino
        moved = MemoryMap([one._replace(path=str(file), inode=inode) if one.path == path else one for one in memory])
        assert names(moved)(address) in ("", FLAG)
