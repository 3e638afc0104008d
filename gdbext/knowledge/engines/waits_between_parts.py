"""Frame rules of waits of one part of a serving engine for another one. Rows, no logic."""

from __future__ import annotations

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
