"""What a stream's number says by itself: special handles, and torch's stream ids."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from gdbext.knowledge.engines.torch.streams import (
    TORCH_ENCODING,
    TORCH_EXTERNAL,
    TORCH_INDEX_MASK,
    TORCH_INDEX_SHIFT,
    TORCH_TYPE_MASK,
    TORCH_TYPE_SHIFT,
)
from gdbext.knowledge.runtimes.cuda_streams import SPECIAL
from gdbext.model.missing import Maybe, Missing

_WORD = (1 << 64) - 1


class Decoded(NamedTuple):
    """The parts of a `StreamInfo` that a number gives."""

    kind: str
    handle: Maybe[int]
    pool_index: Optional[int] = None
    priority: Optional[int] = None
    notes: Tuple[str, ...] = ()


def of_handle(handle: int) -> Decoded:
    """A cudaStream_t or CUstream."""
    handle &= _WORD
    special = SPECIAL.get(handle)
    return Decoded(special.kind, handle, notes=(special.meaning,)) if special else Decoded("user", handle)


def of_torch_id(number: int) -> Decoded:
    """torch's StreamId: 0 the default stream, odd one of its pools, any other the handle of a foreign stream."""
    number &= _WORD
    if not number & 1:
        return of_handle(number)
    which = number >> TORCH_TYPE_SHIFT & TORCH_TYPE_MASK
    used = TORCH_INDEX_MASK << TORCH_INDEX_SHIFT | TORCH_TYPE_MASK << TORCH_TYPE_SHIFT | 1
    if which in (0, TORCH_EXTERNAL) or number & ~used:
        return Decoded("unverified", Missing(f"{number:#x} is not a stream id of torch"))
    index = number >> TORCH_INDEX_SHIFT & TORCH_INDEX_MASK
    handle = Missing("torch keeps it in its pool, which is not read")
    return Decoded("pool", handle, index, 1 - which, (TORCH_ENCODING,))
