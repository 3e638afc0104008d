"""Statistics equal numpy's, with numpy here, with numpy in a helper, and without any."""

import math
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdbext.analysis.tensors import whole_tensor
from gdbext.analysis.tensors.arithmetic import calculator
from gdbext.analysis.tensors.arithmetic.calculator import Calculator
from gdbext.analysis.tensors.decoding import decode
from gdbext.analysis.tensors.read_blocks import Limits
from gdbext.knowledge.dtypes import DTYPES
from gdbext.model.errors import GdbextError
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
    monkeypatch.setattr(whole_tensor, "BLOCK_BYTES", 8192)


def assert_as_numpy(stats, view, smallest_normal=None):
    with np.errstate(invalid="ignore"):
        wide = view.astype({"c": np.complex128, "u": np.uint64, "i": np.int64}.get(view.dtype.kind, np.float64))
    sizes = np.abs(wide) if view.dtype.kind == "c" else wide
    with np.errstate(all="ignore"):
        finite = sizes[np.isfinite(sizes)]
        assert stats.count == stats.total == view.size
        assert stats.nan == np.isnan(sizes).sum()
        assert stats.positive_infinity == (sizes == np.inf).sum()
        assert stats.negative_infinity == (sizes == -np.inf).sum()
        assert stats.zeros == (sizes == 0).sum()
        if smallest_normal:
            assert stats.subnormals == ((np.abs(finite) < smallest_normal) & (finite != 0)).sum()
        if stats.nan:
            assert stats.first_nan == np.unravel_index(np.isnan(sizes).argmax(), view.shape)
        else:
            assert stats.first_nan is None
        if not finite.size:
            assert stats.minimum is stats.maximum is stats.mean is stats.std is stats.absolute_maximum is None
            return
        assert stats.minimum == finite.min() and stats.maximum == finite.max()
        of_finite = wide[np.isfinite(sizes)]
        assert np.isclose(stats.mean, of_finite.mean(), rtol=1e-9, atol=1e-12 * np.abs(finite).max())
        assert np.isclose(stats.std, of_finite.std(), rtol=1e-6, atol=1e-9 * np.abs(finite).max())
        masked = np.where(np.isfinite(sizes), np.abs(sizes), -1)
        assert stats.absolute_maximum == masked.max()
        assert stats.absolute_maximum_at == np.unravel_index(masked.argmax(), view.shape)
        try:
            counts, sides = np.histogram(finite.astype(np.float64), 8)
        except ValueError:  # the values are too close to each other for eight different borders
            return
        assert stats.histogram.counts == tuple(counts.tolist())
        assert (stats.histogram.low, stats.histogram.high) == (sides[0], sides[-1])


def specials(array):
    if array.dtype.kind in "fc" or array.dtype == ml_dtypes.bfloat16:
        array[3, 5:7] = np.nan
        array[17, ::9] = np.inf
        array[23, 4] = -np.inf
        array[1, :5] = 0
        array[2, 2] = -0.0
        array[5, 5] = ml_dtypes.finfo(array.dtype).smallest_subnormal
    return array


@WORKERS
@pytest.mark.parametrize(
    "dtype",
    [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.uint16, np.int32, np.int64, np.complex64,
     np.complex128, np.bool_],
)  # fmt: skip
def test_as_numpy(dtype, worker):
    rng = np.random.default_rng(1)
    whole = specials((rng.normal(size=(60, 90)) * 50).astype(dtype))
    normal = ml_dtypes.finfo(dtype).smallest_normal if whole.dtype.kind in "f" or dtype == ml_dtypes.bfloat16 else None
    views = (whole, whole.T, whole[::-2, 3:])
    # Each look starts the helper anew: it gets one view of each type.
    for view in views if worker is not BESIDE else [views[np.dtype(dtype).itemsize.bit_length() % 3]]:
        info, memory = tensor_of(whole, view)
        info = TensorInfo(**{**vars(info), "dtype": {"bfloat16": "bf16"}.get(info.dtype, info.dtype)})
        stats = whole_tensor.statistics(info, memory.read, calculator=worker)
        assert_as_numpy(stats, view, normal)
        assert stats.problem is None
        assert worker is NONE or "numpy" in stats.computed_by


@WORKERS
@pytest.mark.parametrize("name", ["fp8_e4m3fn", "fp8_e5m2", "fp4_e2m1", "int4", "uint6", "q4_0", "q6_k", "bcomplex32"])
def test_other_types_as_their_values(name, worker):
    dtype = DTYPES[name]
    units = 1000 if dtype.kind != "block" else 64
    raw = bytearray(np.random.default_rng(2).bytes(dtype.unit * units))
    for offset in {"q4_0": [1], "q6_k": [209]}.get(name, []):
        raw[offset :: dtype.unit] = b"\x2c" * units
    values = np.array(decode.values(decode.expand(bytes(raw), dtype), dtype)).reshape(units, -1)
    info = TensorInfo("w", dtype=name, shape=values.shape, address=BASE)
    assert_as_numpy(whole_tensor.statistics(info, FakeMemory(raw).read, calculator=worker), values)
    if values.shape[1] > 1:
        part = whole_tensor.statistics(info, FakeMemory(raw).read, "[::3, :-1]", calculator=worker)
        assert_as_numpy(part, values[::3, :-1])


@WORKERS
def test_holes_are_left_out_and_said(worker):
    for dtype in (np.float16, np.float32, np.complex128):
        whole = (np.arange(40_000) % 977 + 1).astype(dtype)
        hole = (8192 - BASE % 4096, 12288 - BASE % 4096)
        info, memory = tensor_of(whole, holes=[hole])
        stats = whole_tensor.statistics(info, memory.read, calculator=worker)
        kept = np.delete(whole, range(hole[0] // whole.itemsize, hole[1] // whole.itemsize))
        assert (stats.count, stats.zeros) == (kept.size, 0)
        assert stats.problem == f"{4096 // whole.itemsize:,} of 40,000 elements are unreadable"
        assert np.isclose(stats.mean, kept.mean(dtype=np.complex128))
        assert stats.minimum == 1 and sum(stats.histogram.counts) == kept.size


@WORKERS
def test_holes_in_blocks(worker):
    dtype = DTYPES["q8_0"]
    raw = bytearray(b"\x00\x3c" + b"\5" * 32) * 1000
    info = TensorInfo("w", dtype="q8_0", shape=(32_000,), address=BASE)
    stats = whole_tensor.statistics(info, FakeMemory(raw, holes=[(4096, 8192)]).read, calculator=worker)
    lost = 8192 // dtype.unit - 4096 // dtype.unit + 1
    assert stats.count == 32_000 - lost * 32 and stats.minimum == stats.maximum == stats.mean == 5.0


@WORKERS
def test_empty_and_scalar(worker):
    info, memory = tensor_of(np.zeros((0, 4), np.float32))
    stats = whole_tensor.statistics(info, memory.read, calculator=worker)
    assert stats.total == stats.count == 0 and stats.mean is None and stats.problem is None
    info, memory = tensor_of(np.array(2.5, np.float16))
    stats = whole_tensor.statistics(info, memory.read, calculator=worker)
    assert (stats.mean, stats.std, stats.absolute_maximum_at) == (2.5, 0.0, ())
    assert (stats.histogram.low, stats.histogram.high) == (2.0, 3.0)


@WORKERS
def test_numbers_at_the_end_of_the_range(worker):
    whole = np.array([1.7e308, -1.7e308, 1.6e308, 5e-324])
    info, memory = tensor_of(whole)
    stats = whole_tensor.statistics(info, memory.read, calculator=worker)
    assert (stats.minimum, stats.maximum, stats.subnormals) == (-1.7e308, 1.7e308, 1)
    assert stats.histogram is None
    info, memory = tensor_of(np.array([2**64 - 1, 2**64 - 3], np.uint64))
    assert whole_tensor.statistics(info, memory.read, calculator=worker).maximum == 2**64 - 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(width=32), min_size=1, max_size=40), st.integers(1, 5))
def test_any_floats_both_ways(numbers, columns):
    whole = np.array(numbers * columns, np.float32).reshape(-1, columns)
    info, memory = tensor_of(whole)
    ours, theirs = (whole_tensor.statistics(info, memory.read, calculator=worker) for worker in (NONE, HERE))
    assert_as_numpy(ours, whole)
    assert_as_numpy(theirs, whole)


def test_what_is_large_decides_who_works(monkeypatch):
    monkeypatch.setattr(calculator, "LARGE", 4 << 20)
    info, memory = tensor_of(np.zeros(1000, np.float32))
    assert whole_tensor.statistics(info, memory.read, calculator=BESIDE).computed_by == "pure Python"


@pytest.mark.process
def test_an_interpreter_that_is_of_no_use_is_passed_over(tmp_path):
    liar = tmp_path / "python"
    liar.write_text("#!/bin/sh\necho no json\n")
    liar.chmod(0o755)
    info, memory = tensor_of(np.ones(1000, np.float32))
    chooser = Calculator(["/nonexistent", str(liar), "/bin/true"], numpy_here=False)
    stats = whole_tensor.statistics(info, memory.read, calculator=chooser)
    assert stats.computed_by == "pure Python" and stats.mean == 1.0


@pytest.mark.process
def test_a_helper_that_dies_is_one_line_and_leaves_nothing():
    info, memory = tensor_of(np.ones(100_000, np.float16))
    started = []

    class Watched(Calculator):
        def start(self, job, nbytes):
            worker = super().start(job, nbytes)
            started.append(worker._process)
            worker._process.kill()
            return worker

    with pytest.raises(GdbextError, match="ended unexpectedly"):
        whole_tensor.statistics(info, memory.read, calculator=Watched([sys.executable], numpy_here=False))
    assert started[0].returncode is not None


@WORKERS
def test_an_interrupt_ends_the_work(worker):
    info, memory = tensor_of(np.ones(100_000, np.float16))
    started = []

    class Watched(Calculator):
        def start(self, job, nbytes):
            started.append(worker.start(job, nbytes))
            return started[-1]

        numpy_for = worker.numpy_for

    def interrupted(done, total):
        assert 0 < done <= total == 100_000
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        whole_tensor.statistics(info, memory.read, calculator=Watched(), progress=interrupted)
    if worker is BESIDE:
        assert started[0]._process.returncode is not None


def test_limits():
    info = TensorInfo("x", dtype="fp16", shape=(1 << 50,), strides=(0,), address=BASE)
    stats = whole_tensor.statistics(info, FakeMemory(b"\0\x3c").read, calculator=HERE, limits=Limits(seconds=0.2))
    assert 0 < stats.count < stats.total == 1 << 50 and stats.problem == "stopped after 0 s"
    assert math.isclose(stats.mean, 1.0)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.int64, np.uint64])
def test_bins_beside_their_borders(kind):
    """numpy counts in the type of the numbers, plain Python compares each exactly with each border."""
    if np.dtype(kind).kind == "f":
        middle = [np.nextafter(kind(one), kind(side)) for one in range(1, 9) for side in (-99, 99)]
        numbers = np.array([*middle, 0.1, 0.7, 8.1, np.nan, np.inf, -np.inf], kind)
        neighbours = np.array([1, np.nextafter(kind(1), kind(2))], kind)
    else:
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        numbers = np.array([least, most, most - 1, most // 2, most // 2 + 1, 0, 5], kind)
        neighbours = np.array([most - 1, most], kind)
    for values in (numbers, neighbours):
        info, memory = tensor_of(values)
        here, alone = (whole_tensor.statistics(info, memory.read, calculator=one).histogram for one in (HERE, NONE))
        assert here.counts == alone.counts
        assert sum(here.counts) == np.isfinite(values).sum()
