"""Ranks that hold the same values find each other; hostile tensors end in an answer or in one line."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gdbext.analysis.tensors.arithmetic.calculator import Calculator
from gdbext.analysis.tensors.comparing.difference import Source, difference
from gdbext.analysis.tensors.comparing.digest import digest
from gdbext.analysis.tensors.comparing.over_ranks import agreement, digested
from gdbext.analysis.tensors.read_blocks import Limits
from gdbext.analysis.tensors.whole_tensor import statistics
from gdbext.knowledge.dtypes import ROWS
from gdbext.model.errors import GdbextError
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo
from gdbext.render import Style, render
from gdbext.render.json.document import document, dumps
from tests.unit.tensor_memory import FakeMemory, save, tensor_of


def source(whole, view=None):
    info, memory = tensor_of(whole, view)
    return Source(info, memory.read)


def test_groups_by_value():
    whole = np.arange(600, dtype=np.float32).reshape(20, 30)
    other = whole.copy()
    other[3, 4] = -1
    alone = whole.astype(np.float16)
    columns = np.ascontiguousarray(whole.T)
    sources = {5: whole, 0: other, 1: whole, 3: alone}
    ranks = {rank: source(array) for rank, array in sources.items()}
    ranks[2] = source(columns, columns.T)
    found = agreement("w", [*((rank, digested(one)) for rank, one in ranks.items()), (4, Missing("lost"))])
    assert [group.ranks for group in found.groups] == [(1, 2, 5), (0,), (3,)]
    assert found.groups[0].differs is None
    assert found.groups[1].differs.first == (3, 4) and found.groups[1].differs.first_values == (94.0, -1.0)
    assert found.groups[2].differs.same  # the values are the same, the type is not
    assert [(one.rank, one.reason) for one in found.unread] == [(4, "lost")]
    part = agreement("w", [(rank, digested(one, "[4:]")) for rank, one in ranks.items()])
    assert (len(part.groups), part.index) == (2, "[4:]")
    assert "ranks 1-2,5 agree" in "\n".join(render(found, Style()))


def of(*arrays, unread=0):
    """What is said of ranks with these values, and more that cannot be read."""
    ranks = [(rank, digested(source(array))) for rank, array in enumerate(arrays)]
    ranks += [(len(arrays) + more, Missing("lost")) for more in range(unread)]
    found = agreement("w", ranks)
    return render(found, Style())[0], document(found)["agree"], document(found)["compared"]


def test_only_ranks_that_were_compared_agree():
    ones, twos = np.ones(3, np.float32), np.full(3, 2, np.float32)
    assert of(ones, ones, ones) == ("w: all 3 ranks agree", True, 3)
    assert of(ones, ones, unread=1) == ("w: 2 of 3 ranks agree, 1 rank could not be read", None, 2)
    assert of(ones, unread=3) == ("w: only one of 4 ranks could be read: nothing was compared", None, 0)
    assert of(ones) == ("w: only one rank: nothing was compared", None, 0)
    assert of(unread=2) == ("w: no rank could be read: nothing was compared", None, 0)
    assert of(ones, twos, unread=1) == ("w: 2 different values", False, 2)


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
        lambda: save(info, memory.read, path, index, force=True, limits=limits()),
    ):
        try:
            answer = ask()
            assert render(answer, Style()) and dumps(answer)
        except GdbextError as error:
            assert "\n" not in str(error)
