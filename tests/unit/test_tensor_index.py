"""Indexes mean what they mean in numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gdbext.analysis.tensors.index import View, contiguous, position_of, product, select, view_of
from gdbext.knowledge.dtypes import DTYPES
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo

WHOLE = np.arange(4 * 5 * 6).reshape(4, 5, 6)


def selected(text, array=WHOLE):
    view = View(DTYPES["int64"], 4096, array.shape, contiguous(array.shape))
    got = select(view, text)
    flat = array.reshape(-1)
    return np.array(
        [flat[got.origin + sum(map(int.__mul__, at, got.strides))] for at in np.ndindex(*got.shape)], np.int64
    ).reshape(got.shape)


@pytest.mark.parametrize(
    "text",
    ["", "[0]", "[0, :, -3:]", "[...]", "[..., 1]", "[1, ..., ::-2]", "[::2, ::-1]", "[-1, -1, -1]", "[5:]", "[:]",
     "[3:1]", "[1:100:3]", "[]", "[1,]", " [ 2 , 0:2 ] ", "[::-1, 4::-3, -2:]", "[+1]",
     "[0][1]", "[1:][0, ::2]", "[:, 1][..., -2:] [2]"],
)  # fmt: skip
def test_as_numpy(text):
    expected = eval(f"WHOLE{text.strip()}") if text.strip() not in ("", "[]") else WHOLE
    assert (selected(text) == expected).all() and selected(text).shape == np.shape(expected)


bounds = st.one_of(st.none(), st.integers(-9, 9))
items = st.one_of(st.integers(-4, 3), st.slices(6), st.builds(slice, bounds, bounds, st.sampled_from([None, 1, 2, -1])))


@given(st.lists(items, max_size=3))
def test_any_index_as_numpy(chosen):
    def text(item):
        if isinstance(item, int):
            return str(item)
        parts = [item.start, item.stop] + ([item.step] if item.step is not None else [])
        return ":".join("" if part is None else str(part) for part in parts)

    expected = WHOLE[tuple(chosen)]
    got = selected("[" + ", ".join(map(text, chosen)) + "]")
    assert got.shape == np.shape(expected) and (got == expected).all()


@pytest.mark.parametrize(
    "text, word",
    [("[4]", "out of bounds for dimension 0 with size 4"), ("[0, -6]", "out of bounds for dimension 1"),
     ("[0,0,0,0]", "too many indices"), ("[..., ...]", "one '...'"), ("[a]", "an index"), ("0", "an index"),
     ("[1:2:3:4]", "an index"), ("[::0]", "step"), ("[,]", "nothing"), ("[1.5]", "an index"), ("[[0]]", "an index"),
     ("[" + "9" * 30 + "]", "an index"), ("[:" + "1" * 5000 + "]", "an index")],
)  # fmt: skip
def test_what_is_none(text, word):
    with pytest.raises(UsageError) as caught:
        selected(text)
    assert word in str(caught.value) and len(str(caught.value)) < 200


def test_scalars():
    assert select(View(DTYPES["fp32"], 1, (), ()), "[]").shape == ()
    assert select(View(DTYPES["fp32"], 1, (), ()), "[...]").count == 1
    with pytest.raises(UsageError):
        select(View(DTYPES["fp32"], 1, (), ()), "[0]")


def info(**fields):
    return TensorInfo("x", **{"dtype": "fp32", "shape": (2, 3), "address": 4096, **fields})


def test_a_view_of_a_tensor_is_contiguous_when_it_says_nothing():
    assert view_of(info()).strides == (3, 1)
    assert view_of(info(strides=(1, 2))).strides == (1, 2)
    assert view_of(info(shape=(0, 3), address=0)).count == 0
    assert view_of(info(shape=(0,), address=Missing("undefined"))).count == 0


@pytest.mark.parametrize(
    "fields, word",
    [({"dtype": Missing("enum 77")}, "element type unknown (enum 77)"), ({"dtype": "iq2_s"}, "does not dequantise"),
     ({"dtype": "TYPE_STR"}, "unknown element type"), ({"shape": Missing("optimized out")}, "optimized out"),
     ({"shape": (1,) * 65}, "65 dimensions"), ({"shape": (-1, 2)}, "negative"), ({"shape": (2**40, 2**40)}, "larger"),
     ({"strides": (1,)}, "do not go together"), ({"strides": (2**70, 1)}, "larger"), ({"address": 0}, "null"),
     ({"address": Missing("no storage")}, "no storage"), ({"unreadable": "on GPU 0"}, "on GPU 0")],
)  # fmt: skip
def test_tensors_that_cannot_be_read_say_why(fields, word):
    with pytest.raises(GdbextError) as caught:
        view_of(info(**fields))
    assert word in str(caught.value)


def test_positions():
    for flat in range(WHOLE.size):
        assert position_of(flat, WHOLE.shape) == np.unravel_index(flat, WHOLE.shape)
    assert position_of(0, ()) == ()
    assert product([2**62, 2**62, 0]) == 0
