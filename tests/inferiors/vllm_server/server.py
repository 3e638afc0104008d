"""How a server of vLLM is started, and which of its processes is which."""

from __future__ import annotations

from pathlib import Path
from typing import Tuple

from tests.inferiors.engine_server.engine import Engine


def _words(model: str, port: str) -> Tuple[str, ...]:
    return ("-m", "vllm.entrypoints.cli.main", "serve", model, "--load-format", "dummy", "--dtype", "bfloat16",
            "--max-model-len", "2048", "--host", "127.0.0.1", "--port", port)  # fmt: skip


def _role(title: str) -> str:
    number = "1" if title.endswith("1") else "0"
    if title.startswith("VLLM::APIServer_"):
        return f"api{number}"
    if title == "VLLM::DPCoordinator":
        return "coordinator"
    if title.startswith("VLLM::EngineCore"):
        return f"core{number}"
    return f"worker{number}" if title.startswith("VLLM::Worker") else ""


VLLM = Engine(
    name="vllm",
    group="vllm.general_plugins",
    hooks=Path(__file__).with_name("hooks.py"),
    words=_words,
    role=_role,
    settings={
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1",
    },
    caches=("VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR"),
)
