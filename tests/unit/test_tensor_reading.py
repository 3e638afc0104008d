"""Elements come out in numpy's order, from as little memory as possible, whatever the strides and the holes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gdbext.analysis.tensors.decoding import decode
from gdbext.analysis.tensors.decoding.shown_values import read_values
from gdbext.analysis.tensors.index import View, select, view_of
from gdbext.analysis.tensors.read_blocks import Limits, Memory, Stream, elements_at
from gdbext.knowledge.dtypes import DTYPES
from gdbext.model.errors import GdbextError
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo
from tests.unit.tensor_memory import BASE, FakeMemory, tensor_of


def streamed(view, read, numpy=None, block=1 << 16):
    stream = Stream(view, read, numpy=numpy, block=block)
    chunks = list(stream)
    for before, after in itertools.pairwise(chunks) if hasattr(itertools, "pairwise") else zip(chunks, chunks[1:]):
        assert after.start == before.start + before.length
    return b"".join(chunk.data for chunk in chunks), stream, chunks


VIEWS = [
    lambda a: a,
    lambda a: a.T,
    lambda a: a[::2, ::-1],
    lambda a: a[:, 0],
    lambda a: a[3],
    lambda a: a[:, :, None].transpose(2, 1, 0),
    lambda a: a[::-1, ::-1],
    lambda a: a[5:5],
    lambda a: a[1:2, 1:2],
    lambda a: np.broadcast_to(a[:, :1], a.shape),
    lambda a: np.broadcast_to(a[0], (7, *a[0].shape)),
    lambda a: a.reshape(4, 10, 25, -1).transpose(3, 1, 0, 2)[::2, :, ::-1, 3:20],
]


@pytest.mark.parametrize("numpy", [None, np], ids=["arrays", "numpy"])
@pytest.mark.parametrize("block", [64, 1 << 12, 1 << 20])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex64", "complex128"])
def test_streams_are_in_logical_order(dtype, block, numpy):
    whole = np.random.default_rng(1).normal(size=(200, 50)) * 100
    whole = whole.astype(dtype)
    for make in VIEWS:
        view = make(whole)
        info, memory = tensor_of(whole, view)
        data, stream, chunks = streamed(view_of(info), memory.read, numpy, block)
        assert data == view.tobytes()
        assert stream.problem is None and stream.unread == 0
        assert sum(chunk.length for chunk in chunks) == view.size == stream.total
        assert all(len(chunk.data) <= max(block, 2 * view.itemsize) for chunk in chunks)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_view_of_any_rank(data):
    shape = data.draw(st.lists(st.integers(1, 5), max_size=5))
    whole = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    view = whole.transpose(data.draw(st.permutations(range(whole.ndim))))
    steps = st.sampled_from([1, 2, -1, -2])
    view = view[(..., *(slice(None, None, data.draw(steps)) for _ in range(view.ndim)))]
    info, memory = tensor_of(whole, view)
    assert streamed(view_of(info), memory.read, block=data.draw(st.sampled_from([8, 64, 4096])))[0] == view.tobytes()
    assert np.array_equal(np.array(read_values(info, memory.read).elements).reshape(view.shape), view)


@pytest.mark.parametrize("name", ["int4", "fp6_e3m2", "uint3", "q4_0", "q4_k"])
def test_packed_and_block_types_in_strides(name):
    dtype = DTYPES[name]
    rng = np.random.default_rng(7)
    if dtype.kind == "block":
        raw = np.zeros((64, dtype.unit), np.uint8)
        raw[:, 2:] = rng.integers(0, 256, (64, dtype.unit - 2))
        raw[:, [1, 3]] = 0x3C  # scales without NaN
        raw = raw.tobytes()
    else:
        raw = rng.bytes(dtype.unit * 64)
    flat = np.array(decode.values(decode.expand(raw, dtype), dtype), np.float32)
    whole = flat.reshape(8, -1)
    for text in ("", "[::2, 1:]", "[:, ::-3]", "[-1]", "[3:5, 7]", "[::-1]"):
        memory = FakeMemory(raw)
        view = select(View(dtype, BASE, whole.shape, (whole.shape[1], 1)), text)
        expected = eval(f"whole{text}") if text else whole
        data, _, _ = streamed(view, memory.read, block=128)
        assert np.array(decode.values(data, dtype), np.float32).tolist() == expected.reshape(-1).tolist()
        positions = [view.origin + int(np.dot(at, view.strides)) for at in np.ndindex(*view.shape)]
        assert elements_at(view, positions, Memory(memory.read)) == expected.reshape(-1).tolist()


def test_a_corner_of_a_huge_tensor_costs_a_screenful():
    class Endless:
        def __init__(self):
            self.reads = []

        def read(self, address, size):
            self.reads.append(size)
            return b"\0\x3c" * (size // 2)

    info = TensorInfo("x", dtype="fp16", shape=(4096, 4096, 4096), address=BASE)  # 128 GiB
    memory = Endless()
    values = read_values(info, memory.read)
    assert values.grid == (6, 6, 6) and set(values.elements) == {1.0}
    assert len(memory.reads) <= 72 and sum(memory.reads) < 1 << 20
    memory.reads.clear()
    assert read_values(info, memory.read, "[7, :2, -3:]").elements == (1.0,) * 6
    assert sum(memory.reads) < 1 << 16


def test_a_sparse_column_is_read_by_pieces_not_whole():
    whole = np.arange(64 * 40_000, dtype=np.int32).reshape(64, 40_000)
    info, memory = tensor_of(whole, whole[:, 5:7])
    data, _, _ = streamed(view_of(info), memory.read)
    assert data == whole[:, 5:7].tobytes()
    assert sum(size for _, size in memory.reads) <= 64 * 16


def test_a_tiled_transposition_of_more_than_a_block():
    whole = np.arange(700 * 900, dtype=np.int16).reshape(700, 900)
    info, memory = tensor_of(whole, whole.T)
    data, _, chunks = streamed(view_of(info), memory.read, block=32 << 10)
    assert data == whole.T.tobytes() and len(chunks) > 30
    assert sum(size for _, size in memory.reads) < 40 * whole.nbytes


@pytest.mark.parametrize("make", [lambda a: a, lambda a: a.T, lambda a: a[::-1, ::3]])
def test_holes_are_said_per_element(make):
    whole = np.arange(60_000, dtype=np.float32).reshape(200, 300)
    hole = (8192 - BASE % 4096, 3 * 4096 + 8192 - BASE % 4096)
    missing = np.zeros(whole.size, bool)
    missing[hole[0] // 4 : hole[1] // 4] = True
    view, expected = make(whole), make(missing.reshape(whole.shape))
    info, memory = tensor_of(whole, view, holes=[hole])
    _, stream, chunks = streamed(view_of(info), memory.read, block=40_000)
    mask = b"".join(chunk.holes or bytes(chunk.length) for chunk in chunks)
    assert mask == expected.tobytes()
    assert stream.unread == expected.sum()
    good = np.frombuffer(b"".join(chunk.data for chunk in chunks), np.float32)[~expected.reshape(-1)]
    assert (good == view[~expected]).all()


def test_values_of_which_some_are_unreadable():
    whole = np.arange(3000, dtype=np.int32).reshape(3, 1000)
    info, memory = tensor_of(whole, holes=[(4096, 8192)])
    values = read_values(info, memory.read, "[1]", threshold=5000)
    assert values.problem == "24 of 1,000 elements read, the others are unreadable"
    assert values.read == 24 and values.elements[:24] == tuple(range(1000, 1024))
    assert isinstance(values.elements[24], Missing)


def test_nothing_readable_ends_soon():
    info = TensorInfo("x", dtype="fp32", shape=(1 << 40,), address=BASE)
    calls = []

    def read(address, size):
        calls.append(size)

    stream = Stream(view_of(info), read)
    assert all(sum(chunk.holes) == chunk.length for chunk in stream)
    assert len(calls) <= 2001 and "gave up after 2,000 failed reads" in stream.problem


def test_time_is_limited():
    info, memory = tensor_of(np.zeros((1,), np.float32))
    info = TensorInfo("x", dtype="fp32", shape=(1 << 40,), strides=(0,), address=BASE)
    stream = Stream(view_of(info), memory.read, Limits(seconds=0.0))
    assert list(stream) == [] and stream.problem == "stopped after 0 s"


def test_too_many_dimensions_ask_for_an_index():
    info, memory = tensor_of(np.zeros((1,), np.float32))
    info = TensorInfo("x", dtype="fp32", shape=(2,) * 30, address=BASE)
    with pytest.raises(GdbextError, match="too many to show"):
        read_values(info, memory.read)


def test_edges_as_numpy_has_them():
    whole = np.arange(40 * 50).reshape(40, 50)
    info, memory = tensor_of(whole)
    values = read_values(info, memory.read)
    edge = [0, 1, 2, -3, -2, -1]
    assert values.edge_items == 3 and values.elements == tuple(whole[edge][:, edge].reshape(-1).tolist())
    assert read_values(info, memory.read, threshold=2000).edge_items == 0


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([row for row in DTYPES.values() if row.decoded]),
    st.lists(st.one_of(st.integers(0, 9), st.integers(-3, 2**62)), max_size=8),
    st.one_of(st.none(), st.lists(st.one_of(st.integers(-9, 9), st.integers(-(2**66), 2**66)), max_size=8)),
    st.integers(0, 2**64),
    st.binary(max_size=600),
    st.sampled_from(["", "[0]", "[..., -1]", "[::-2]", "[1:3, 2]"]),
)
def test_nothing_hostile_gets_through(dtype, shape, strides, address, content, index):
    """Random bytes as any dtype in any shape: an answer or a GdbextError, and soon."""
    memory = FakeMemory(content, base=address)
    info, _ = tensor_of(np.zeros((1,)))
    info = TensorInfo("x", dtype=dtype.name, shape=tuple(shape), strides=strides and tuple(strides), address=address)
    try:
        values = read_values(info, memory.read, index)
        assert len(values.elements) == np.prod(values.grid, dtype=object)
        view = select(view_of(info), index)
        stream = Stream(view, memory.read, Limits(seconds=0.2, failures=50), block=4096)
        assert sum(chunk.length for chunk in stream) == view.count or stream.problem
    except GdbextError as error:
        assert "\n" not in str(error)
