"""Ranks that hold the same values find each other; hostile tensors end in an answer or in one line."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdbext.analysis.tensors.agreement import agreement
from gdbext.analysis.tensors.calculator import Calculator
from gdbext.analysis.tensors.difference import Source, difference
from gdbext.analysis.tensors.digest import digest
from gdbext.analysis.tensors.files import save
from gdbext.analysis.tensors.reading import Limits
from gdbext.analysis.tensors.statistics import statistics
from gdbext.knowledge.dtypes import ROWS
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo
from gdbext.render import Style, render
from gdbext.render.document import dumps
from tests.unit.tensor_memory import FakeMemory, tensor_of


def source(whole, view=None):
    info, memory = tensor_of(whole, view)
    return Source(info, memory.read)


def test_groups_by_value():
    whole = np.arange(600, dtype=np.float32).reshape(20, 30)
    other = whole.copy()
    other[3, 4] = -1
    alone = whole.astype(np.float16)
    columns = np.ascontiguousarray(whole.T)
    sources = {5: source(whole), 0: source(other), 1: source(whole), 2: source(columns, columns.T), 3: source(alone),
               4: Missing("lost")}  # fmt: skip
    found = agreement("w", sources)
    assert [group.ranks for group in found.groups] == [(1, 2, 5), (0,), (3,)]
    assert found.groups[0].differs is None
    assert found.groups[1].differs.first == (3, 4) and found.groups[1].differs.first_values == (-1.0, 94.0)
    assert found.groups[2].differs.same  # the values are the same, the type is not
    assert [(one.rank, one.reason) for one in found.unread] == [(4, "lost")]
    assert len(agreement("w", sources, "[4:]").groups) == 2
    assert "ranks 1-2,5 agree" in "\n".join(render(found, Style()))


def test_a_rank_that_cannot_be_read_has_a_reason():
    device = TensorInfo("w", dtype="fp32", shape=(2,), address=4096, unreadable="on GPU 0")
    found = agreement("w", {0: Source(device, lambda address, size: None), 1: source(np.zeros(2, np.float32))})
    assert found.unread[0].reason == "w: on GPU 0" and [group.ranks for group in found.groups] == [(1,)]
    with pytest.raises(UsageError):
        agreement("w", {0: source(np.zeros(2))}, "[7]")


numbers = st.one_of(st.integers(0, 9), st.integers(-3, 2**62))
wild_strides = st.one_of(st.integers(-9, 9), st.integers(-(2**66), 2**66))


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([row.name for row in ROWS] + ["TYPE_77"]),
    st.lists(numbers, max_size=6),
    st.one_of(st.none(), st.lists(wild_strides, max_size=6)),
    st.integers(0, 2**64),
    st.binary(max_size=400),
    st.sampled_from(["", "[0]", "[..., -1]", "[::-2]"]),
)
def test_nothing_hostile_gets_through(tmp_path_factory, dtype, shape, strides, address, content, index):
    """Random bytes as any dtype in any shape and strides, through everything that can be asked."""
    strides = None if strides is None else tuple(strides)
    info = TensorInfo("x", dtype=dtype, shape=tuple(shape), strides=strides, address=address)
    memory = FakeMemory(content, base=address)
    path = str(tmp_path_factory.getbasetemp() / "hostile.npy")
    here = Calculator(numpy_here=False)

    def limits():
        return Limits(seconds=0.05, failures=20)

    for ask in (
        lambda: statistics(info, memory.read, index, here, limits=limits()),
        lambda: digest(info, memory.read, index, here, limits=limits()),
        lambda: difference(Source(info, memory.read), Source(info, memory.read), index, limits=limits()),
        lambda: save(info, memory.read, path, index, overwrite=True, limits=limits()),
    ):
        try:
            answer = ask()
            assert render(answer, Style()) and dumps(answer)
        except GdbextError as error:
            assert "\n" not in str(error)
