"""Stacks as rows that they share: what comes back is what went in, and a row stands once."""

import json

import pytest

from gdbext.model.missing import Missing
from gdbext.model.snapshot_files.frame_table import FrameTable, unpack
from gdbext.model.stack import Frame, ThreadStack

LEAF = Frame("poll", "/lib/libc.so.6", 0x7F01, module_offset=0x101, sp=0x1000)
CALLER = Frame("serve", "/app", 0x5501, "serve.cc", 12, sp=0x1040)


def there_and_back(table, *stacks):
    packed = table.pack(stacks)
    return unpack(*json.loads(json.dumps([table.rows, packed])))


def test_stacks_come_back_as_they_were():
    stacks = (
        ThreadStack("7", (LEAF, CALLER), 7, "main", truncated="limit of 2 frames", problems=("odd",), syscall=(7, 1)),
        ThreadStack("8", (), 8, truncated="not walked"),
        ThreadStack("9", (Frame(None), Frame("f", pc=3, inlined=True, captures={"n": 4, "p": Missing("gone")})), 9),
    )
    assert there_and_back(FrameTable(), *stacks) == stacks


def test_a_place_is_one_row_wherever_its_stack_lies():
    table = FrameTable()
    deeper = [ThreadStack(str(tid), (Frame(**{**vars(LEAF), "sp": tid}), CALLER), tid) for tid in range(50)]
    assert there_and_back(table, *deeper) == tuple(deeper)
    assert len({id(one.calls) for one in there_and_back(table, *deeper)}) == 1, "equal stacks are one object"
    assert len(table.rows) == 2
    assert there_and_back(table, deeper[3]) == (deeper[3],)
    assert len(table.rows) == 2, "one table serves several processes"


@pytest.mark.parametrize(
    "other",
    [{"function": "ppoll"}, {"module": "/x"}, {"pc": 1}, {"file": "p.c"}, {"line": 9}, {"inlined": True}]
    + [{"module_offset": 5}, {"language": "python"}, {"captures": {"fd": 1}}],
)
def test_what_differs_is_another_row(other):
    stack = ThreadStack("1", (LEAF, Frame(**{**vars(LEAF), **other}), LEAF), 1)
    table = FrameTable()
    assert there_and_back(table, stack) == (stack,)
    assert len(table.rows) == 2


@pytest.mark.parametrize("frames", [[[1, 0]], [0], [["x", 0]], 4, [[0]]])
def test_another_shape_is_a_value_error(frames):
    with pytest.raises(ValueError):
        unpack([{"function": "f"}], [{"id": "1", "frames": frames}])
