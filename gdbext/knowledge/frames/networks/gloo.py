"""Gloo: collectives over the CPU."""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.frame_precedence import API, OUTER, STEP
from gdbext.knowledge.row_kinds import FrameRule

GLOO_WORKER = "Gloo worker"
"""What a thread of torch that carries out Gloo's collectives is called while it has none."""

_CALLS = (
    (r"AsyncAllreduce|AsyncSparseAllreduce|Allreduce", "all_reduce"),
    (r"AsyncAllgather|AsyncAllgatherCoalesced|Allgather", "all_gather"),
    (r"AsyncBroadcast|Broadcast", "broadcast"),
    (r"AsyncReduceScatter|ReduceScatter", "reduce_scatter"),
    (r"AsyncReduce|Reduce", "reduce"),
    (r"AsyncAlltoall|Alltoall", "all_to_all"),
    (r"AsyncGather|Gather", "gather"),
    (r"AsyncScatter|Scatter", "scatter"),
    (r"AsyncBarrier|Barrier", "barrier"),
    (r"Send", "send"),
    (r"Recv", "recv"),
)


def _calls() -> Tuple[FrameRule, ...]:
    """torch's work objects, and gloo's own functions of the same name (`gloo::allreduce`)."""
    return tuple(
        FrameRule(
            f"gloo-{collective}",
            "gloo",
            rf"c10d::(\(anonymous namespace\)::)?(ProcessGroupGloo::)?({names})(CUDA)?Work::"
            rf"|gloo::{collective.replace('_', '')}\b|gloo::{collective}\b",
            "torch ProcessGroupGloo.cpp; gloo sources; sgl-project/sglang#17941",
            rank=API,
            collective=collective,
        )
        for names, collective in _CALLS
    )


RULES = (
    *_calls(),
    FrameRule(
        "gloo-connect",
        "store-wait",
        r"gloo::rendezvous::\w+|gloo::transport::\w+::(Pair|Context)::(connect|waitUntilConnected|createAndConnect\w+)",
        "gloo rendezvous: addresses of all peers are read from the store",
        rank=OUTER,
    ),
    FrameRule(
        "gloo-loop",
        "condvar-idle",
        r"gloo::transport::(\w+::)+(Loop::run|Device::loop)$",
        "gloo transport/tcp/loop.cc, transport/ibverbs/device.cc, transport/uv: the loop of gloo's device",
        helper="Gloo event loop",
    ),
    FrameRule(
        "gloo-runloop-idle",
        "condvar-idle",
        r"c10d::ProcessGroupGloo::runLoop$",
        "waits for work in its queue",
        helper=GLOO_WORKER,
        leaf=True,
    ),
    FrameRule(
        "gloo-wait",
        "gloo",
        r"((std::(_V2::)?condition_variable\w*::wait\w*<.{0,2000})?gloo::transport::\w+::(UnboundBuffer|Pair|Buffer)|c10d::ProcessGroupGloo::(?!runLoop)|gloo::(?!transport)\w+)",
        "libtorch_cpu",
        rank=STEP,
    ),
)
