"""Where a tensor's elements lie, what that place is called, and why they cannot be read from here."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable

from gdbext.analysis.tensors.index import product
from gdbext.inside_gdb.base import memory
from gdbext.inside_gdb.tensors import shapes
from gdbext.model.missing import Maybe, Missing
from gdbext.model.tensor import TensorInfo

ACCELERATORS = ("gpu", "npu", "xpu", "hpu", "mtia", "mps", "xla", "privateuse1")
_BY_MAP = {memory.HOST: "cpu", memory.RESERVED: "gpu"}


def placed(info: TensorInfo, classify: Callable[[int], memory.Place], device_memory: bool) -> TensorInfo:
    """Fill in what follows from dtype, shape and address: bytes, the place, and why values cannot be read.

    `device_memory`: this debugger reads the GPU's.
    """
    dtype = shapes.row_of(info.dtype)
    if dtype is not None and not isinstance(info.shape, Missing):
        info = replace(info, nbytes=dtype.nbytes(product(info.shape)))
    if info.where == "meta":
        return replace(info, unreadable="a meta tensor has no values")
    if isinstance(info.address, Missing) or (not isinstance(info.shape, Missing) and not product(info.shape)):
        return info
    device = not isinstance(info.where, Missing) and info.where.split()[0] in ACCELERATORS
    if device:
        reachable = device_memory and str(info.where).startswith("gpu")
        return info if reachable else replace(info, unreadable=_on_device(str(info.where), info.address))
    place = classify(info.address)
    if place.kind == memory.PINNED and info.where in ("cpu", "pinned"):
        return replace(info, where="pinned")
    if place.kind == memory.RESERVED and not isinstance(info.where, Missing):
        problem = f"says {info.where}, but its address has no access, as device memory has"
        info = replace(info, problems=(*info.problems, problem))
    if isinstance(info.where, Missing):
        info = replace(info, where=_BY_MAP.get(place.kind, place.kind))
    reason = place.reason
    return replace(info, unreadable=f"at {info.address:#x}: {reason}" if reason else None)


def offset_tensor(info: TensorInfo, offset: Maybe[int]) -> TensorInfo:
    """The tensor `offset` elements further on. Without a usable offset there is no address: values would be others'."""
    dtype = shapes.row_of(info.dtype)
    if isinstance(info.address, Missing) or (not offset and not isinstance(offset, Missing)):
        return info
    reason = str(offset)
    if not isinstance(offset, Missing):
        units, inside = divmod(offset, dtype.per_unit) if dtype else (0, 1)
        address = info.address + units * (dtype.unit if dtype else 1)
        if not inside and abs(offset) < shapes.LARGEST and 0 <= address < 1 << 64:
            return replace(info, address=address, offset=offset)
        reason = f"{offset:,} elements" + (" of unknown size" if dtype is None else "")
    return replace(info, address=Missing(f"offset: {reason}"), problems=(*info.problems, f"offset: {reason}"))


def place_word(where: Maybe[str]) -> str:
    """The place as an adjective of its storage."""
    return "some" if isinstance(where, Missing) else where


def _on_device(where: str, address: int) -> str:
    name, _, number = where.partition(" ")
    return f"on {name.upper()}{' ' + number if number else ''} at {address:#x}: {memory.why_not_device()}"
