"""vLLM: what it does not wait for for ever."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import TimeoutRow

TIMEOUTS: Tuple[TimeoutRow, ...] = (
    TimeoutRow(
        "vLLM's engine gives up on a worker's step",
        300,
        "vllm 0.33.0 vllm/envs.py: VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS, 300; used in v1/executor/multiproc_executor.py",
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS",
        engine="vllm",
    ),
)
