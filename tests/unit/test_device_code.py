"""GPU code in object files: for which GPUs, with or without lines, and headers that lie."""

import struct

import pytest

from gdbext.capture.elf.reader import Section
from gdbext.capture.gpu_code import has_lines, unpacking
from gdbext.capture.gpu_code.fatbins import Damaged, entries_in
from gdbext.capture.gpu_code.has_lines import device_code_of
from tests import fat_binaries
from tests.excerpts import opened
from tests.fat_binaries import (
    CUBIN,
    DEBUG,
    FOR_ONE_FAMILY,
    FOR_ONE_GPU,
    LINKER_CODE,
    LZ4,
    PLAIN,
    PTX,
    ZSTD,
    container,
    cubin,
    entry,
    library,
)

LINES = (".debug_line", ".nv_debug_line_sass")
PTX_TEXT = b".version 9.0\n.target sm_80\n"


@pytest.fixture
def with_lines(tmp_path):
    return cubin(tmp_path, ".debug_frame", *LINES)


@pytest.fixture
def without(tmp_path):
    return cubin(tmp_path, ".debug_frame")


def read(path):
    return device_code_of(opened(path))


def entries_of(data):
    return entries_in(lambda at, size: data[at : at + size], [Section(b".nv_fatbin", 1, 0, 0, len(data), 0)])


def test_lines_and_gpus_of_all_containers(tmp_path, with_lines, without):
    first = container(entry(CUBIN, 80, with_lines, name=b"gpt.cu"), entry(PTX, 80, PTX_TEXT, name=b"gpt.cu"))
    second = container(entry(CUBIN, 90, with_lines, PLAIN | FOR_ONE_GPU), entry(CUBIN, 100, without, FOR_ONE_FAMILY))
    found = read(library(tmp_path, first, second, gap=24))
    assert (found.sass, found.ptx) == (("sm_80", "sm_90a", "sm_100f"), ("compute_80",))
    assert (found.cubins, found.looked_into, found.with_lines, found.with_debug) == (3, 3, 2, 0)
    assert found.lines == "some" and not found.problem


@pytest.mark.parametrize(("names", "said"), [(LINES, "yes"), ((".debug_line", ".debug_info"), "yes"), ((), "no")])
@pytest.mark.parametrize("section", [".nv_fatbin", "__nv_relfatbin"])
def test_one_cubin(tmp_path, names, said, section):
    found = read(library(tmp_path, container(entry(CUBIN, 80, cubin(tmp_path, *names))), section=section))
    assert found.lines == said
    assert found.with_debug == (".debug_info" in names)


def test_ptx_and_linker_code_have_no_lines_to_look_for(tmp_path):
    found = read(library(tmp_path, container(entry(PTX, 90, PTX_TEXT), entry(LINKER_CODE, 90, b"IR"))))
    assert (found.lines, found.sass, found.ptx) == ("none", (), ("compute_90",))


def test_a_file_without_gpu_code_is_none(tmp_path):
    assert read(library(tmp_path, section=".rodata")) is None


@pytest.mark.parametrize(
    ("pack", "flag"), [(fat_binaries.packed_by_zstd, ZSTD), (fat_binaries.packed_by_lz4, LZ4)], ids=["zstd", "lz4"]
)
def test_compressed_code_is_looked_into_where_the_host_can(tmp_path, with_lines, monkeypatch, pack, flag):
    content = pack(with_lines)
    assert content is not None, "every host of the tests has both libraries"
    path = library(tmp_path, container(entry(CUBIN, 90, content, PLAIN | flag, unpacked=len(with_lines))))
    found = read(path)
    assert (found.packed, found.looked_into, found.lines) == (1, 1, "yes")
    monkeypatch.setattr(unpacking, "_library", lambda name: None)
    found = read(path)
    assert (found.packed, found.looked_into, found.lines) == (1, 0, "unknown")


def test_compressed_code_of_a_debug_build_says_so_in_its_header(tmp_path):
    path = library(tmp_path, container(entry(CUBIN, 90, b"packed", PLAIN | ZSTD | DEBUG, unpacked=900)))
    found = read(path)
    assert (found.with_debug, found.lines) == (1, "yes")


@pytest.mark.parametrize("said", [0, 1, 1 << 20, 1 << 40, (1 << 64) - 1])
def test_a_false_size_of_unpacked_code_tells_nothing(tmp_path, with_lines, said):
    content = fat_binaries.packed_by_zstd(with_lines)
    found = read(library(tmp_path, container(entry(CUBIN, 90, content, PLAIN | ZSTD, unpacked=said))))
    assert (found.looked_into, found.lines) == (0, "unknown")


@pytest.mark.parametrize(
    "wrong",
    [{"own": 0}, {"own": 63}, {"own": 1 << 31}, {"size": (1 << 64) - 1}, {"size": 1 << 40}],
    ids=lambda wrong: str(wrong),
)
def test_an_entry_that_lies_is_said_and_what_stands_before_it_is_kept(tmp_path, with_lines, wrong):
    found = read(library(tmp_path, container(entry(CUBIN, 80, with_lines)), container(entry(CUBIN, 90, b"", **wrong))))
    assert (found.sass, found.with_lines) == (("sm_80",), 1)
    assert "damaged" in found.problem and found.lines == "some"


@pytest.mark.parametrize("size", [(1 << 64) - 1, 1 << 40, 4096])
def test_a_container_that_is_longer_than_its_section(tmp_path, with_lines, size):
    found = read(library(tmp_path, container(entry(CUBIN, 80, with_lines), size=size)))
    assert (found.cubins, found.lines) == (0, "unknown") and "cut off" in found.problem


def test_a_cut_file_is_refused_or_said(tmp_path, with_lines):
    path = library(tmp_path, container(entry(CUBIN, 80, with_lines)))
    whole = path.read_bytes()
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"ELF|section|name"):
            read(path)


def test_a_section_beyond_the_end_of_the_file(tmp_path):
    file = opened(library(tmp_path, section=".rodata"))
    assert list(entries_in(file.read, [Section(b".nv_fatbin", 1, 0, 1 << 40, 1 << 50, 0)])) == []


def test_many_entries_and_many_signs_of_containers_have_an_end(monkeypatch):
    monkeypatch.setattr("gdbext.capture.gpu_code.fatbins._MOST_ENTRIES", 100)
    data = container(*[entry(PTX, 80, b"")] * 101)
    with pytest.raises(Damaged, match="more than 100"):
        list(entries_of(data))
    signs = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 0) * 10000
    assert (
        list(entries_in(lambda at, size: signs[at : at + size], [Section(b".nv_fatbin", 1, 0, 0, len(signs), 0)])) == []
    )


def test_no_byte_of_a_fat_binary_makes_it_fail(tmp_path, with_lines):
    path = library(
        tmp_path,
        container(entry(CUBIN, 80, with_lines), entry(PTX, 80, PTX_TEXT)),
        container(entry(CUBIN, 90, with_lines)),
    )
    whole = path.read_bytes()
    begins = whole.index((0xBA55ED50).to_bytes(4, "little"))
    read_well = 0
    for place in range(begins, begins + 160):
        for value in (0x00, 0x7F, 0xFF):
            path.unlink()
            path.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            found = read(path)
            read_well += found is not None and found.lines in ("yes", "some", "no", "unknown")
    assert read_well > 300


def test_a_cubin_that_is_none_is_not_looked_into(tmp_path):
    found = read(library(tmp_path, container(entry(CUBIN, 80, b"\x7fELF but not really"))))
    assert (found.cubins, found.looked_into, found.lines) == (1, 0, "unknown")


def test_of_more_cubins_than_there_is_time_for_some_are_looked_into(tmp_path, monkeypatch, without):
    monkeypatch.setattr(has_lines, "_MOST_LOOKED_INTO", 3)
    found = read(library(tmp_path, *[container(entry(CUBIN, 80, without))] * 10))
    assert (found.cubins, found.looked_into, found.lines) == (10, 3, "unknown")
