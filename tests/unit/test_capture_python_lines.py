"""Line tables: this interpreter's own against what it says itself, the older formats by hand, and garbage."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdbext.capture.python import line_table
from gdbext.capture.python.line_table import line_of

KIND = "locations" if sys.version_info >= (3, 11) else "linetable" if sys.version_info >= (3, 10) else "lnotab"


def own_lines(code):
    """(offset, line) of every instruction, from the interpreter."""
    for start, end, line in code.co_lines():
        for offset in range(start, end, 2):
            yield offset, line


@pytest.mark.skipif(
    sys.version_info < (3, 10), reason="code.co_lines came with 3.10; the older format has its own test"
)
def test_every_instruction_of_a_module_has_the_line_the_interpreter_says():
    with open(line_table.__file__, encoding="utf-8") as stream:
        todo, seen = [compile(stream.read(), "x", "exec")], 0
    while todo:
        code = todo.pop()
        todo += [constant for constant in code.co_consts if hasattr(constant, "co_code")]
        for offset, line in own_lines(code):
            assert line_of(KIND, code.co_linetable, code.co_firstlineno, offset) == line
            seen += 1
    assert seen > 200


@pytest.mark.parametrize(
    ("kind", "table", "offset", "line"),
    [
        # lnotab_notes.txt: 6 bytes on line 1, 44 on line 2, 300 bytes later line 361 (both steps in parts)
        ("lnotab", bytes([6, 1, 44, 5]), 0, 1),
        ("lnotab", bytes([6, 1, 44, 5]), 5, 1),
        ("lnotab", bytes([6, 1, 44, 5]), 6, 2),
        ("lnotab", bytes([6, 1, 44, 5]), 50, 7),
        ("lnotab", bytes([6, 1, 44, 5]), 5000, 7),
        ("lnotab", bytes([255, 0, 45, 127, 0, 127, 0, 46]), 299, 1),
        ("lnotab", bytes([255, 0, 45, 127, 0, 127, 0, 46]), 300, 301),
        ("lnotab", bytes([4, 3, 4, 0xFE]), 8, 2),  # a step back
        ("lnotab", b"", 12, 1),
        ("linetable", bytes([2, 0, 4, 2, 2, 0x80, 4, 0xFF]), 0, 1),
        ("linetable", bytes([2, 0, 4, 2, 2, 0x80, 4, 0xFF]), 4, 3),
        ("linetable", bytes([2, 0, 4, 2, 2, 0x80, 4, 0xFF]), 6, None),  # no line
        ("linetable", bytes([2, 0, 4, 2, 2, 0x80, 4, 0xFF]), 8, 2),
        ("linetable", bytes([2, 0]), 2, None),  # behind the end
        # kind 13 (line step +3), kind 15 (none), kind 10 + 1 (next line), kind 14 (step -130, two bytes of it)
        ("locations", bytes([0xE8, 6, 0xF8, 0xD8, 1, 2]), 0, 4),
        ("locations", bytes([0xE8, 6, 0xF8, 0xD8, 1, 2]), 2, None),
        ("locations", bytes([0xE8, 6, 0xF8, 0xD8, 1, 2]), 4, 5),
        ("locations", bytes([0xF0, 0x45, 4, 0, 1, 1]), 0, -129),
    ],
)
def test_tables_by_hand(kind, table, offset, line):
    assert line_of(kind, table, 1, offset) == line


@pytest.mark.parametrize("kind", ["lnotab", "linetable", "locations"])
def test_code_that_has_not_begun_is_on_its_first_line(kind):
    assert line_of(kind, b"\xe8\x06", 7, -2) == 7


@given(st.sampled_from(["lnotab", "linetable", "locations"]), st.binary(), st.integers(-4, 1 << 40))
def test_any_bytes_are_accepted(kind, table, offset):
    assert line_of(kind, table, 1, offset) is None or isinstance(line_of(kind, table, 1, offset), int)
