"""Holds torch tensors of every kind and says as JSON lines what they are and what they hold; then waits on stdin."""

import json
import math
import sys
import warnings

import torch

warnings.simplefilter("ignore")


def kinds():
    numbers = torch.arange(24, dtype=torch.float32)
    yield "contiguous", numbers.reshape(2, 3, 4)
    yield "transposed", numbers.reshape(4, 6).t()
    yield "sliced", torch.arange(100)[10:90:7]
    yield "column", numbers.reshape(4, 6)[:, 2:5:2]
    yield "expanded", torch.tensor([[1.5], [2.5]]).expand(2, 3)
    yield "flipped", torch.arange(6).flip(0)
    yield "scalar", torch.tensor(3.5)
    yield "empty", torch.empty(0, 3)
    yield "large", torch.arange(100_000, dtype=torch.float64).reshape(100, 1000)
    yield "special", torch.tensor([math.nan, math.inf, -math.inf, -0.0, 1e-42])
    yield "parameter", torch.nn.Parameter(torch.ones(2, 2))
    for rank in range(1, 8):
        yield f"rank {rank}", torch.arange(2**rank).reshape((2,) * rank)
    for name in sorted(dir(torch)):
        dtype = getattr(torch, name)
        if isinstance(dtype, torch.dtype):
            yield f"dtype {name}", of_dtype(dtype)


def of_dtype(dtype):
    """A few values of a dtype; None where torch cannot make a tensor of it on a CPU."""
    try:
        if dtype.is_complex:
            return torch.tensor([1 + 2j, -0.5j, 0]).to(dtype)
        if dtype.is_floating_point:
            return torch.tensor([0.5, 1, 2, 4]).to(dtype)
        return torch.tensor([0, 1, 1, 0]).to(dtype)
    except (RuntimeError, NotImplementedError, TypeError):
        return None


def plain(value):
    """As JSON: complex numbers as pairs, what is no number by its name."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, complex):
        return [value.real, value.imag]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


held = [(name, tensor) for name, tensor in kinds() if tensor is not None]
held.append(("meta", torch.empty(2, 3, device="meta")))
for name, tensor in held:
    row = {"name": name, "impl": tensor._cdata, "object": id(tensor), "dtype": str(tensor.dtype)}
    row.update(shape=list(tensor.shape), strides=list(tensor.stride()), offset=tensor.storage_offset())
    if name != "meta":
        try:
            row["values"] = plain(tensor.reshape(-1)[:1000].tolist())
        except (RuntimeError, NotImplementedError):
            row["values"] = None  # torch has no numbers of this dtype either
    print(json.dumps(row))
print(json.dumps({"name": "undefined", "library": torch._C.__file__}))
print("ready", flush=True)
sys.stdin.read()
