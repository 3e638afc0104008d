"""Cubins: functions and lines of real ones, and what is damaged."""

import struct

import pytest

from gdbext.capture.gpu_code.cubin import Cubin, readable
from gdbext.capture.gpu_code.line_rows import sequences
from tests.inferiors import gpu_cubins


@pytest.mark.process
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_lines_of_a_real_cubin_with_what_was_inlined(architecture):
    cubin = Cubin(gpu_cubins.cubin(architecture))
    assert (cubin.architecture, cubin.has_lines, cubin.is_for_debugging) == (architecture, True, False)
    named = {one.name: one for one in cubin.functions}
    assert set(named) == {gpu_cubins.SCALE, gpu_cubins.SPIN}
    assert all(one.is_kernel for one in named.values())
    scale = named[gpu_cubins.SCALE]
    stacks = {
        tuple((one.function, one.line, one.inlined) for one in cubin.frames_at(scale.section, scale.offset + at))
        for at in range(0, scale.size, 16)
    }
    assert (("engine::store", 41, True), ("engine::scale<…>", 52, False)) in stacks
    assert (("engine::scale<…>", 51, False),) in stacks
    spin = named[gpu_cubins.SPIN]
    assert {cubin.frames_at(spin.section, at)[0].line for at in range(0, spin.size, 16)} <= {59, 60, 61}
    assert cubin.frames_at(spin.section, 0)[0].file == "/build/src/engine.cu"


@pytest.mark.process
def test_a_cubin_without_lines_has_names():
    cubin = Cubin(gpu_cubins.cubin("sm_80", False))
    assert not cubin.has_lines
    scale = next(one for one in cubin.functions if one.name == gpu_cubins.SCALE)
    frame = cubin.frames_at(scale.section, 64)[0]
    assert (frame.function, frame.file, frame.line) == ("engine::scale<…>", None, None)


@pytest.mark.process
def test_every_cut_of_a_cubin_is_refused_or_read():
    data = gpu_cubins.cubin()
    refused = 0
    for end in range(0, len(data), 97):
        try:
            cubin = Cubin(data[:end])
            for one in cubin.functions:
                assert cubin.frames_at(one.section, one.offset)
        except ValueError:
            refused += 1
    assert refused > 10


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("$_Z5scaleIfEvPT_i$_Z4deepPfi", "deep"),
        ("_ZN6engine5scaleIfEEvPT_i", "engine::scale<…>"),
        ("Marlin", "Marlin"),
    ],
)
def test_names_are_readable(name, text):
    assert readable(name) == text


def program(*operations, files=b"a.cu\0\0\0\0"):
    """A line program of version 2 with standard opcodes 1 to 9."""
    header = bytes([1, 1, 0xFB, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1]) + b"\0" + files + b"\0"
    body = b"".join(operations)
    return struct.pack("<IHI", 6 + len(header) + len(body), 2, len(header)) + header + body


def at(address):
    return b"\0\x09\x02" + struct.pack("<Q", address)


END = b"\0\x01\x01"


def test_rows_of_a_program_and_where_its_address_stands():
    lines = program(at(0x1000), b"\x03\x09", b"\x01", b"\x02\x20", b"\x03\x7e", b"\x01", b"\x02\x10", END)
    one = next(sequences(lines, b""))
    assert (one.address, one.size) == (0x1000, 0x30)
    assert struct.unpack_from("<Q", lines, one.at) == (0x1000,)
    assert [(row.offset, row.line, row.file) for row in one.rows] == [(0, 10, "a.cu"), (0x20, 8, "a.cu")]


@pytest.mark.parametrize(
    "lines",
    [
        b"\xff" * 64,
        program(at(0), b"\x02" + b"\xff" * 40),
        program(at(0), b"\0\0", END),
        program(at(0), b"\0\x7f\x01"),
        struct.pack("<IHI", 1 << 30, 2, 1 << 29),
        program(at(0), b"\x01", END)[:-2],
    ],
)
def test_a_damaged_program_ends_the_rows(lines):
    assert [row for one in sequences(lines, b"") for row in one.rows] == []


def test_a_program_behind_a_good_one_is_read_until_it_is_damaged():
    good = program(at(0), b"\x01", END)
    assert len(list(sequences(good + good + b"\x20\0\0\0" + b"\xff" * 32, b""))) == 2
