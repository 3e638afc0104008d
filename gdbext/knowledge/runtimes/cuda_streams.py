"""What the handles of CUDA streams mean, and which member of an engine's object holds one."""

from __future__ import annotations

from typing import Dict, NamedTuple, Tuple

from gdbext.knowledge.engines.engine_list import rows
from gdbext.knowledge.engines.engine_row_kinds import Current, Holder


class SpecialHandle(NamedTuple):
    """A number that is no pointer."""

    kind: str
    meaning: str
    source: str


LEGACY, PER_THREAD = 1, 2
SPECIAL: Dict[int, SpecialHandle] = {
    0: SpecialHandle(
        "default",
        "the default stream: the legacy one, or the calling thread's own where the caller was compiled with "
        "--default-stream per-thread",
        "CUDA 12 driver_types.h",
    ),
    LEGACY: SpecialHandle("legacy", "cudaStreamLegacy", "CUDA 12 driver_types.h"),
    PER_THREAD: SpecialHandle(
        "per-thread",
        "cudaStreamPerThread: each thread has its own, so it means something on the calling thread only",
        "CUDA 12 driver_types.h",
    ),
}

NON_BLOCKING = 1  # cuda.h: CU_STREAM_NON_BLOCKING
CAPTURE_STATES = {0: "", 1: "capturing", 2: "capturing, and the capture is spoiled already"}
"""CUstreamCaptureStatus of CUDA 12 cuda.h."""

INVALID = frozenset((400, 709))  # what the driver says of a handle that is no stream (any more)

STREAM_TYPE = r"(struct )?CUstream_st"
EVENT_TYPE = r"(struct )?CUevent_st"

HOLDERS: Tuple[Holder, ...] = (
    *rows("streams", "HOLDERS"),
    Holder(r".*", "stream_", "FasterTransformer BaseLayer.h, TurboMind core/stream.h"),
)
"""The first one that fits counts. The last is about any class; the others are streams by themselves."""

EVENT_HOLDERS: Tuple[Holder, ...] = rows("streams", "EVENT_HOLDERS")

CURRENT: Tuple[Current, ...] = rows("streams", "CURRENT")
