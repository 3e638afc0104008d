"""ggml: its pool of threads."""

from typing import Tuple

from gdbext.knowledge.row_kinds import FrameRule

RULES: Tuple[FrameRule, ...] = (
    FrameRule(
        "llama-barrier",
        "condvar-idle",
        r"ggml_(barrier|graph_compute_(poll|check)_for_work\w*)",
        "ggml's pool",
        helper="thread pool",
        leaf=True,
    ),
)
