"""RTP-LLM: what it does not wait for for ever."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import TimeoutRow

TIMEOUTS: Tuple[TimeoutRow, ...] = (
    TimeoutRow(
        "ftNcclStreamSynchronize of RTP-LLM up to 0.2 aborts (later ones have no such limit)",
        120,
        "rtp-llm v0.2.0 nccl_utils.cc, as reported, not read: aborts after 120000 ms; those of 2026 have 36500 days",
        engine="rtp-llm",
    ),
)
