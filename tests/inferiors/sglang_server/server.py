"""How a server of SGLang is started on CPUs, and which of its processes is which.

Its own watchdogs would end a server that hangs: the scheduler's after 5 minutes, the first request of its own after
10, a collective of the ranks after the time of the backend, a grammar after a minute. All get a day here. One is
fixed: where a rank does not come from loading its weights, the others give up after 8 minutes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Tuple

from tests.inferiors.engine_server.engine import Engine

_DAY = "86400"


def _words(model: str, port: str) -> Tuple[str, ...]:
    return ("-m", "sglang.launch_server", "--model-path", model, "--load-format", "dummy", "--dtype", "bfloat16",
            "--device", "cpu", "--attention-backend", "torch_native", "--disable-radix-cache",
            "--context-length", "2048", "--max-total-tokens", "8192", "--max-running-requests", "8",
            "--watchdog-timeout", _DAY, "--dist-timeout", _DAY, "--host", "127.0.0.1", "--port", port)  # fmt: skip


_SCHEDULER = "sglang::scheduler"
_OTHERS = {"sglang::detokenizer": "detokenizer", "sglang::data_parallel_controller": "controller"}


def _role(title: str) -> str:
    """A scheduler's title ends with its rank, as `_TP1`, where it has others beside it."""
    if title.startswith(_SCHEDULER):
        return title[len(_SCHEDULER) :].lstrip("_").lower() or "tp0"
    return _OTHERS.get(title, "")


SGLANG = Engine(
    name="sglang",
    group="sglang.srt.plugins",
    hooks=Path(__file__).with_name("hooks.py"),
    words=_words,
    role=_role,
    settings={
        "SGLANG_USE_CPU_ENGINE": "1",
        "SGLANG_CPU_OMP_THREADS_BIND": "0|1",  # a core for each rank: they may not outnumber the NUMA nodes otherwise
        "SGLANG_GRAMMAR_MAX_POLL_ITERATIONS": "20000000",  # each at least 5 ms
        "SGLANG_CUDA_COREDUMP_BEFORE_CRASH": "0",
        "SGLANG_PLUGINS": "site_hooks",
        "SGLANG_WARMUP_TIMEOUT": _DAY,
        "CUDA_VISIBLE_DEVICES": "",
        "TOKENIZERS_PARALLELISM": "false",
    },
    serves="The server is fired up",
)
