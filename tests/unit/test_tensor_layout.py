"""Values look as numpy prints them: the text itself is compared."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdbext.analysis.tensors.decoding.shown_values import read_values
from gdbext.analysis.tensors.decoding.small_floats import float_of
from gdbext.knowledge.dtypes import DTYPES
from gdbext.model.missing import Missing
from gdbext.model.tensor import NumberFormat, TensorInfo, TensorValues
from gdbext.render.text.tensors.arrays import array_lines, round_to
from tests.unit.tensor_memory import tensor_of

# How numpy prints fp16 of a thousand and more changed with 2.4, which needs Python 3.11; ours is the newer way.
pytestmark = pytest.mark.skipif(
    tuple(map(int, np.__version__.split(".")[:2])) < (2, 4), reason="numpy before 2.4 lays numbers out another way"
)
FP16, BF16 = DTYPES["fp16"].number, DTYPES["bf16"].number


def ours(array, width=75, **options):
    info, memory = tensor_of(np.ascontiguousarray(array).reshape(array.shape))
    return "\n".join(array_lines(read_values(info, memory.read, **options), width))


def assert_as_numpy(array, width=75):
    assert ours(array, width) == np.array2string(array, max_line_width=width)


def test_examples():
    for dtype in (np.float32, np.float64):
        for text in ([0.1, 0.25, 1 / 3], [1e-5, 1], [123456.0, 1.5], [-0.0, 1, 2], [np.nan, 1, -2.5], [np.inf, 1e-9],
                     [-np.inf, np.nan], [np.nan], [np.inf], [0.0], [1e30], [1.0, 1001.0], [1.0, 1000.0], [0.0001, 0.01],
                     [12345.678, -0.5, 1e5 / 3], [1e8], [99999.0, 100.0]):  # fmt: skip
            assert_as_numpy(np.array(text, dtype))
    assert_as_numpy(np.array([[True, False], [False, False]]))
    assert_as_numpy(np.array([[1 + 2j, 3.5 - 4.25j], [np.nan, -np.inf]]))
    assert_as_numpy(np.arange(2000).reshape(20, 100))
    assert_as_numpy(np.array([2**63, 1], np.uint64))
    assert_as_numpy(np.arange(2.0**20).reshape(16, 16, 16, 16, 16) / 7)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_empty(shape):
    assert ours(np.zeros(shape)) == str(np.zeros(shape)) == "[]"


@pytest.mark.parametrize("value", [0.1, -2.5, 1e9, 3e-7, np.nan, -np.inf, True, 7, -9])
def test_scalars(value):
    assert_as_numpy(np.array(value))


shapes = st.lists(st.integers(1, 12), max_size=3).map(tuple)


def arrays(dtype, numbers):
    def fill(shape):
        size = int(np.prod(shape))
        return st.lists(numbers, min_size=size, max_size=size).map(lambda some: np.array(some, dtype).reshape(shape))

    return shapes.flatmap(fill)


@settings(max_examples=150, deadline=None)
@given(arrays(np.float32, st.floats(width=32)), st.integers(20, 120))
def test_any_floats(array, width):
    assert_as_numpy(array, width)


@settings(max_examples=100, deadline=None)
@given(arrays(np.float64, st.floats()))
def test_any_doubles(array):
    assert_as_numpy(array)


@settings(max_examples=60, deadline=None)
@given(arrays(np.int64, st.integers(-(2**63), 2**63 - 1)), st.integers(20, 120))
def test_any_integers(array, width):
    assert_as_numpy(array, width)


@settings(max_examples=60, deadline=None)
@given(arrays(np.bool_, st.booleans()))
def test_any_bools(array):
    assert_as_numpy(array)


@settings(max_examples=100, deadline=None)
@given(arrays(np.complex64, st.complex_numbers(width=64)))
def test_any_complex(array):
    assert_as_numpy(array)


def test_many_random_arrays():
    """What tensors really hold: normal numbers of one scale."""
    rng = np.random.default_rng(1)
    for number in range(200):
        shape = rng.integers(1, 40, number % 4)
        array = rng.normal(size=shape) * 10.0 ** rng.integers(-4, 5)
        assert_as_numpy(np.asarray(array).astype([np.float32, np.float64, np.float32, np.int32][number % 4 - 1]))
        assert_as_numpy(np.asarray(array).astype(np.float32), 100)


SMALL = ("fp16", "bf16", "fp8_e4m3fn", "fp8_e5m2", "fp8_e4m3fnuz", "fp6_e2m3", "fp4_e2m1")


def test_small_types_are_written_as_they_are():
    values = TensorValues(TensorInfo("x"), (4,), (0.10009765625, 10.1875, 95.0, -1.0625), BF16)
    assert array_lines(values) == ["[ 0.10009766 10.1875     95.         -1.0625    ]"]
    one = TensorValues(TensorInfo("x"), (), (-2.75,), DTYPES["fp8_e4m3fn"].number)
    assert array_lines(one) == ["-2.75"]
    two = TensorValues(TensorInfo("x"), (2,), (0.10000000149011612, 10.1875), NumberFormat("float", 23, -126))
    assert array_lines(two) == ["[ 0.1    10.1875]"]  # wider ones by the shortest text that reads back


@pytest.mark.parametrize("name", SMALL)
def test_every_number_of_a_small_type_has_its_own_text(name):
    dtype = DTYPES[name]
    if dtype.bits == 16:
        patterns = np.arange(0, 1 << 16, 5, dtype=np.uint16)
        with np.errstate(invalid="ignore"):
            numbers = patterns.view(np.float16 if name == "fp16" else ml_dtypes.bfloat16).astype(np.float64)
    else:
        numbers = np.array([float_of(pattern, dtype) for pattern in range(1 << dtype.bits)])
    numbers = numbers[np.isfinite(numbers)].tolist()
    texts = [array_lines(TensorValues(TensorInfo("x"), (), (number,), dtype.number))[0] for number in numbers]
    assert [float(text) for text in texts] == [float(f"{number:.7e}") for number in numbers]
    assert len(set(texts)) == len({repr(number) for number in numbers})


def test_rounding():
    rng = np.random.default_rng(1)
    with np.errstate(over="ignore"):
        for value in rng.normal(size=2000) * 10.0 ** rng.integers(-9, 4, 2000):
            assert round_to(value, FP16) == float(np.float16(value))
            assert round_to(value, DTYPES["fp32"].number) == float(np.float32(value))


def test_what_could_not_be_read_stands_in_its_place():
    lost = Missing("unreadable")
    values = TensorValues(TensorInfo("x"), (2, 2), (1.5, lost, lost, -2.0), NumberFormat("float"))
    assert array_lines(values) == ["[[ 1.5   ??]", " [  ?? -2. ]]"]
    assert array_lines(TensorValues(TensorInfo("x"), (2,), (lost, lost), NumberFormat("int"))) == ["[?? ??]"]
    assert array_lines(TensorValues(TensorInfo("x"), (), (lost,), NumberFormat("bool"))) == ["??"]
