"""How the parts of a serving engine wait for each other: rules of frames, and loops that look for requests. Rows."""

from __future__ import annotations

from typing import NamedTuple, Tuple

STARTUPS = (
    "vllm-queue-setup",
    "vllm-workers-start",
    "vllm-core-starts",
    "vllm-handshake",
    "sglang-schedulers-start",
)
"""Until the other parts have started."""

ANSWERS_OF_RANKS = ("vllm-worker-answer", "vllm-batch-result")
"""For what the ranks answer to a step: as long as they work on it, nothing is wrong."""


EMPTY_TURNS: Tuple[Tuple[str, str], ...] = ((r"(\w+\.)?_process_engine_step$", r"(^|/)vllm/v1/engine/core\.py$"),)
"""Functions, and their files, that sleep for a moment after a turn in which no batch ran although there are requests:
vLLM 0.32."""


class PollingLoop(NamedTuple):
    """The loop of a rank that never sleeps: in each turn it asks for requests, and runs a batch if there is one."""

    loop: str  # regex: its function
    looks: str  # regex: what it calls in a turn without a batch
    source: str


POLLING_LOOPS: Tuple[PollingLoop, ...] = (
    PollingLoop(
        r"(Scheduler|SchedulerPPMixin|SchedulerDisaggregation\w+Mixin)\.event_loop_\w+$",
        r"Scheduler\w*\.(ingest_requests|recv_requests|process_input_requests|on_idle|self_check_\w+|check_memory"
        r"|maybe_sleep_on_idle|get_next_(disagg_\w+_)?batch_to_run)$",
        "sglang managers/scheduler.py 0.4 to 0.5.23; without --sleep-on-idle",
    ),
)
