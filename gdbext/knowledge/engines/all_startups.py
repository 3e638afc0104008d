"""Rules of waits in which one process of an engine waits until another one has started. Rows, no logic."""

from __future__ import annotations

from gdbext.knowledge.engines.sglang.frames import STARTUP_WAITS as SGLANG
from gdbext.knowledge.engines.vllm.frames import STARTUP_WAITS as VLLM

STARTUP_WAITS = frozenset((*VLLM, *SGLANG))
