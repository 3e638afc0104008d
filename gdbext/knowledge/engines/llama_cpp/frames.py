"""ggml: its pool of threads; llama.cpp's server without requests."""

from typing import Tuple

from gdbext.knowledge.frame_precedence import LOCK, STEP
from gdbext.knowledge.row_kinds import FrameRule

RULES: Tuple[FrameRule, ...] = (
    FrameRule(
        "ggml-caller",
        "condvar-idle",
        r"ggml_barrier$",
        "ggml src/ggml-cpu/ggml-cpu.c: who has started the graph takes a share of it, and waits for the pool",
        rank=LOCK,
        leaf=True,
        under=r"ggml_graph_compute$",
    ),
    FrameRule(
        "llama-server-idle",
        "condvar-idle",
        r"server_queue::start_loop$",
        "llama.cpp tools/server: waits for tasks",
        rank=STEP,
        idle=True,
        leaf=True,
        calls=r"std::(_Function_handler|function)\b",  # the functions that it calls do the work
    ),
    FrameRule(
        "llama-barrier",
        "condvar-idle",
        r"ggml_(barrier|graph_compute_(poll|check)_for_work\w*)",
        "ggml's pool",
        helper="thread pool",
        leaf=True,
    ),
)
