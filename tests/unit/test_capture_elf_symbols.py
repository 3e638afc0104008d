"""Symbols of this interpreter's own file against pyelftools, and damaged files."""

import io
import shutil
import sys

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.memory.maps import read_maps


@pytest.fixture(scope="module")
def interpreter_file():
    """The file that contains our interpreter, whole."""
    paths = {mapping.file for mapping in read_maps("self") if "/libpython3." in mapping.file}
    path = next((path for path in paths if ".so.1" in path), sys.executable)
    with open(path, "rb") as stream:
        return stream.read()


def test_symbols_are_the_ones_pyelftools_finds(interpreter_file):
    peer = {
        symbol.name: symbol["st_value"]
        for symbol in ELFFile(io.BytesIO(interpreter_file)).get_section_by_name(".dynsym").iter_symbols()
    }
    names = ["_PyRuntime", "Py_BytesMain", "PyEval_EvalCode", "PyObject_Call", "no_such_symbol"]
    mine = ElfSymbols(io.BytesIO(interpreter_file)).look_up(names)
    assert mine == {name: peer[name] for name in names[:-1]}


def test_segments_and_sections_are_the_ones_pyelftools_finds(interpreter_file):
    peer, mine = ELFFile(io.BytesIO(interpreter_file)), ElfSymbols(io.BytesIO(interpreter_file))
    loaded = [segment for segment in peer.iter_segments() if segment["p_type"] == "PT_LOAD"]
    assert [(one.offset, one.address) for one in mine.segments] == [(one["p_offset"], one["p_vaddr"]) for one in loaded]
    assert mine.section_address(".text") == peer.get_section_by_name(".text")["sh_addr"]
    assert mine.section_address(".no-such-section") is None
    assert mine.fixed == (peer["e_type"] == "ET_EXEC")


with open(shutil.which("true"), "rb") as program:
    SMALL = program.read()


@given(st.lists(st.tuples(st.integers(6, 200), st.integers(0, 255)), max_size=4), st.integers(0, len(SMALL)))
def test_a_damaged_file_is_a_value_error_or_harmless(changes, size):
    damaged = bytearray(SMALL)
    for position, byte in changes:
        damaged[position] = byte
    try:
        assert ElfSymbols(io.BytesIO(damaged[:size])).look_up(["_PyRuntime"]) == {}
    except ValueError:
        assert changes or size < len(SMALL)


@pytest.mark.parametrize("content", [b"", b"MZ" * 40, b"\x7fELF\x01\x01" + bytes(90), b"\x7fELF\x02\x02" + bytes(90)])
def test_other_files_are_refused(content):
    with pytest.raises(ValueError):
        ElfSymbols(io.BytesIO(content))
