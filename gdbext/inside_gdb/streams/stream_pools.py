"""torch's pools of streams and its current streams, in the variables of c10/cuda/CUDAStream.cpp: by memory alone."""

from __future__ import annotations

from typing import List, Tuple

import gdb

from gdbext.analysis.streams.stream_ids import Decoded, of_torch_id
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.memory import TargetMemory
from gdbext.inside_gdb.tensors.member_paths import address_node
from gdbext.inside_gdb.tensors.object_by_dwarf import ValueNode
from gdbext.inside_gdb.tensors.target_object import Null, Unreadable, one_line, unpack_integers
from gdbext.knowledge.engines.torch.streams import TORCH_CURRENT, TORCH_DEVICES, TORCH_PER_POOL, TORCH_POOL
from gdbext.model.missing import Maybe, Missing

_MOST_DEVICES = 16
_WHY = "torch keeps it in its pool; without the debug information of libc10_cuda that is not read"


def has_pools() -> bool:
    """Whether the program has torch's variables, with their types."""
    try:
        return int(_value(TORCH_DEVICES)) > 0
    except (gdb.error, RuntimeError):
        return False


def with_pool_handle(decoded: Decoded, device: Maybe[int]) -> Decoded:
    """A stream of torch's pool with its handle, where the pool can be read."""
    if decoded.kind != "pool" or not isinstance(decoded.handle, Missing) or isinstance(device, Missing):
        return decoded
    assert decoded.priority is not None and decoded.pool_index is not None
    handle = _slot(-decoded.priority, device, decoded.pool_index)
    return decoded._replace(handle=handle)


def _slot(priority: int, device: int, index: int) -> Maybe[int]:
    """One stream of the pool; null where torch has not made the pool of that device yet."""
    if not (0 <= device < 1024 and 0 <= index < TORCH_PER_POOL):
        return Missing("outside of torch's pool")
    try:
        handle = _slot_of(_value(TORCH_POOL), (priority, device, index))
    except (gdb.error, RuntimeError):
        return Missing(_WHY)
    return handle or Missing("torch has not made the streams of that pool yet")


def _slot_of(pool: gdb.Value, place: Tuple[int, ...]) -> int:
    for number in place:
        pool = pool["_M_elems"][number]
    return int(pool)


def current_streams(memory: TargetMemory) -> Maybe[List[Tuple[int, Decoded]]]:
    """torch's current streams of the selected thread by device; none where it has not set any."""
    try:
        holder = ValueNode(_value(TORCH_CURRENT), memory.read)
        start = address_node(holder).integer()
        count = min(int(_value(TORCH_DEVICES)), _MOST_DEVICES)
    except Null:
        return []
    except (gdb.error, RuntimeError, Unreadable) as problem:
        return Missing(one_line(problem))
    data = memory.read(start, 8 * count) if start and count > 0 else b""
    if data is None:
        return Missing(f"unreadable memory at {start:#x}")
    return [
        (device, with_pool_handle(of_torch_id(number), device))
        for device, number in enumerate(unpack_integers(data, 8, True))
    ]


def _value(name: str) -> gdb.Value:
    with compat.settings({"may-call-functions": "off", "language": "c++"}):
        return gdb.parse_and_eval(f"'{name}'")
