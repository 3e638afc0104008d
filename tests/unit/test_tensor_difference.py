"""Digests and differences: independent of strides, exact in counts, places and tolerances."""

import hashlib
import math
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdbext.analysis.tensors import read_blocks
from gdbext.analysis.tensors.arithmetic import calculator
from gdbext.analysis.tensors.arithmetic.calculator import Calculator
from gdbext.analysis.tensors.arithmetic.elements import Tolerance
from gdbext.analysis.tensors.comparing.difference import Source, difference
from gdbext.analysis.tensors.comparing.digest import digest
from gdbext.model.errors import UsageError
from gdbext.model.tensor import TensorInfo
from tests.unit.tensor_memory import BASE, FakeMemory, tensor_of

NONE = Calculator(numpy_here=False)
HERE = Calculator()
BESIDE = Calculator([sys.executable], numpy_here=False)
_BESIDE = pytest.param(BESIDE, marks=pytest.mark.process)
WORKERS = pytest.mark.parametrize("worker", [NONE, HERE, _BESIDE], ids=["lists", "numpy", "helper"])


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch):
    monkeypatch.setattr(calculator, "LARGE", 0)


def source(whole, view=None, holes=()):
    info, memory = tensor_of(whole, view, holes)
    return Source(info, memory.read)


def compared(left, right, worker=HERE, index="", **tolerance):
    return difference(left, right, index, Tolerance(**tolerance), worker)


def test_a_digest_is_what_its_recipe_says():
    whole = np.arange(24, dtype=np.float16).reshape(4, 6)
    recipe = hashlib.blake2b(b"gdbext-tensor-1\nfp16\n4,6\n" + whole.tobytes(), digest_size=16).hexdigest()
    info, memory = tensor_of(whole)
    assert digest(info, memory.read).digest == recipe
    columns = np.ascontiguousarray(whole.T)  # the same values, the other way round in memory
    info, memory = tensor_of(columns, columns.T)
    assert digest(info, memory.read).digest == recipe
    info, memory = tensor_of(whole, whole.T)
    assert digest(info, memory.read).digest != recipe


def test_a_digest_knows_dtype_shape_and_every_bit():
    whole = np.zeros(24, np.int32)
    negative_zero = np.zeros(24, np.float32)
    negative_zero[3] = -0.0
    variants = [whole, whole.reshape(4, 6), whole.view(np.float32), negative_zero, whole.view(np.uint8)]
    digests = {digest(info, memory.read).digest for info, memory in map(tensor_of, variants)}
    assert len(digests) == len(variants)


def test_no_digest_of_what_was_not_read():
    whole = np.arange(30_000, dtype=np.int32)
    info, memory = tensor_of(whole, holes=[(8192, 12288)])
    found = digest(info, memory.read)
    assert found.digest is None and "unreadable" in found.problem
    assert digest(info, memory.read, "[:1000]").count == 1000


@WORKERS
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int64, np.complex64, np.bool_])
def test_what_differs(dtype, worker):
    rng = np.random.default_rng(1)
    left = (rng.normal(size=(70, 80)) * 40).astype(dtype)
    right = left.copy()
    assert compared(source(left), source(right), worker).same
    places = [(3, 4), (3, 5), (60, 0)]
    for at in places:
        right[at] = not right[at] if dtype is np.bool_ else right[at] + np.array(2).astype(dtype)
    found = compared(source(left), source(right), worker)
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    away = np.abs(left.astype(wide) - right.astype(wide))
    assert (found.differing, found.first, found.compared, found.total) == (3, (3, 4), 5600, 5600)
    assert found.first_values == (left[3, 4].item(), right[3, 4].item())
    assert math.isclose(found.max_absolute, away.max())
    assert found.max_absolute_at == np.unravel_index(away.argmax(), away.shape)
    assert not found.same and found.nan_mismatches == 0
    scale = np.abs(right.astype(wide))
    ratio = np.where(scale > 0, away / np.where(scale > 0, scale, 1), -1)
    if ratio.max() > 0:
        assert math.isclose(found.max_relative, ratio.max())
    if dtype is not np.bool_:
        assert compared(source(left), source(right), worker, absolute=2.1).same


@WORKERS
def test_nan_and_infinity(worker):
    left = np.array([np.nan, np.nan, 1, np.inf, np.inf, -np.inf, 0.0], np.float32)
    right = np.array([np.nan, 1, np.nan, np.inf, -np.inf, 5, -0.0], np.float32)
    found = compared(source(left), source(right), worker)
    assert (found.differing, found.nan_mismatches, found.first) == (4, 2, (1,))
    assert found.max_absolute is None
    assert compared(source(left), source(right), worker, absolute=math.inf, relative=0).differing == 4
    found = compared(source(left), source(right), worker, nan_equal=False)
    assert (found.differing, found.nan_mismatches, found.first) == (5, 3, (0,))
    assert compared(source(left), source(left), worker).same
    assert compared(source(left), source(left), worker, nan_equal=False).differing == 2


@WORKERS
def test_integers_that_floats_cannot_tell_apart(worker):
    left = np.array([2**53, 2**64 - 1, 5], np.uint64)
    right = np.array([2**53 + 1, 2**64 - 2, 7], np.uint64)
    found = compared(source(left), source(right), worker)
    assert (found.differing, found.max_absolute, found.max_absolute_at) == (3, 2.0, (2,))
    assert compared(source(left), source(right), worker, absolute=1).differing == 1


@WORKERS
def test_different_strides_and_dtypes(worker, monkeypatch):
    monkeypatch.setattr(read_blocks, "BLOCK_BYTES", 1024)
    whole = (np.arange(9000).reshape(90, 100) % 251).astype(np.float32)
    half = np.ascontiguousarray(whole.T).astype(np.float16)
    assert compared(source(whole), source(half, half.T), worker).same
    half[5, 6] += 1
    found = compared(source(whole), source(half, half.T), worker)
    assert (found.differing, found.first) == (1, (6, 5))
    found = compared(source(whole), source(half, half.T), worker, "[6:, ::5]")
    assert (found.differing, found.first, found.total) == (1, (0, 1), 84 * 20)


@WORKERS
def test_holes(worker):
    left = np.arange(20_000, dtype=np.int32)
    right = left.copy()
    right[3000] = 0
    hole = (8192 - BASE % 4096, 12288 - BASE % 4096)
    found = compared(source(left), source(right, holes=[hole]), worker)
    assert found.compared == 19_000 - 24 and found.problem == "1,024 of 20,000 elements are unreadable on one side"
    assert found.differing == 0 and not found.same


def test_shapes_that_do_not_match():
    found = compared(source(np.zeros((2, 3))), source(np.zeros((3, 2))))
    assert found.problem == "shapes differ: [2, 3] and [3, 2]" and not found.same
    with pytest.raises(UsageError):
        compared(source(np.zeros((2, 3))), source(np.zeros(3)), index="[0, 0]")
    assert compared(source(np.zeros((2, 3))), source(np.zeros(3)), index="[0]").problem is not None
    assert compared(source(np.zeros((0, 3))), source(np.zeros((0, 3)))).same


def test_small_types():
    info = TensorInfo("x", dtype="fp8_e4m3fn", shape=(4,), address=BASE)
    left, right = (Source(info, FakeMemory(data).read) for data in (b"\x38\x38\x7f\0", b"\x38\x40\x7f\x80"))
    found = compared(left, right)
    assert (found.differing, found.first, found.first_values) == (1, (1,), (1.0, 2.0))
    values = np.array([1.0, 1.0, np.nan, 0.0], ml_dtypes.bfloat16).view(np.uint16)
    bf16 = TensorInfo("x", dtype="bf16", shape=(4,), address=BASE)
    assert compared(left, Source(bf16, FakeMemory(values.tobytes()).read)).same


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.floats(width=16), st.floats(width=16)), min_size=1, max_size=30),
    st.sampled_from([0.0, 1e-3, 0.5]),
    st.booleans(),
)
def test_both_ways_as_numpy_isclose(pairs, tolerance, nan_equal):
    left, right = (np.array(side, np.float16) for side in zip(*pairs))
    close = np.isclose(left.astype(float), right.astype(float), tolerance, tolerance, equal_nan=nan_equal)
    for worker in (NONE, HERE):
        found = compared(
            source(left), source(right), worker, absolute=tolerance, relative=tolerance, nan_equal=nan_equal
        )
        assert found.differing == (~close).sum()
        assert found.first == (None if close.all() else (int((~close).argmax()),))
