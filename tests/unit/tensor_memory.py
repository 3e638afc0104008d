"""Memory that tests make up: bytes at an address, with holes, and a count of what was read."""

from functools import partial

import numpy as np

from gdbext.analysis.tensors import tensor_files
from gdbext.commands.user_files import new_file
from gdbext.model.tensor import TensorInfo

BASE = 0x7F12_3456_7000
NAMES = {
    "float16": "fp16",
    "float32": "fp32",
    "float64": "fp64",
    "bool": "bool",
    "complex64": "complex64",
    "complex128": "complex128",
}


class FakeMemory:
    """`read` over some bytes. `holes` are ranges of offsets that cannot be read."""

    def __init__(self, data, base=BASE, holes=()):
        self.data, self.base, self.holes = bytes(data), base, holes
        self.reads = []

    def read(self, address, size):
        self.reads.append((address, size))
        start = address - self.base
        if start < 0 or start + size > len(self.data):
            return None
        if any(start < last and first < start + size for first, last in self.holes):
            return None
        return self.data[start : start + size]


def dtype_name(dtype):
    return NAMES.get(str(dtype), str(dtype))


def tensor_of(whole, view=None, holes=(), name="x"):
    """TensorInfo and memory for a numpy view of a contiguous array that owns all the bytes."""
    view = whole if view is None else view
    offset = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    strides = tuple(step // view.itemsize for step in view.strides)
    info = TensorInfo(
        name, dtype=dtype_name(view.dtype), shape=view.shape, strides=strides, address=BASE + offset, where="cpu"
    )
    return info, FakeMemory(np.ascontiguousarray(whole).tobytes(), holes=holes)


def save(info, read, path, index="", force=False, **more):
    """As llm-tensor save does it."""
    return tensor_files.save(info, read, path, partial(new_file, force=force), index, **more)
