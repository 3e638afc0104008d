"""What does not wait for ever for a rank that stands still, and for how long it does: one row each."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple


class TimeoutRow(NamedTuple):
    """`library` or `engine` says where it applies; `variable` holds it, else it is the default."""

    what: str  # that happens then
    seconds: Optional[float]  # the default; None: only where the variable is set
    source: str
    variable: str = ""
    unit: float = 1.0  # of the variable, in seconds; with `factor` the variable multiplies the default
    factor: bool = False
    off: Tuple[str, str] = ("", "")  # variable and value that switch it off
    library: str = ""  # how the name of a mapped file begins
    engine: str = ""


TIMEOUTS: Tuple[TimeoutRow, ...] = (
    TimeoutRow(
        "NCCL's status service (RAS) calls a stopped rank dead",
        60,
        "NVIDIA/nccl docs/userguide/source/troubleshooting/ras.rst: 60 s, on by default since 2.24",
        "NCCL_RAS_TIMEOUT_FACTOR",
        factor=True,
        off=("NCCL_RAS_ENABLE", "0"),
        library="libnccl.so",
    ),
    TimeoutRow(
        "the monitor of torch's NCCL watchdog ends a rank without a heartbeat",
        480,
        "pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp: 60 * 8 s",
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
        off=("TORCH_NCCL_ENABLE_MONITORING", "0"),
        library="libtorch_cuda.so",
    ),
    TimeoutRow(
        "torch's NCCL watchdog ends the job for a collective that takes longer (init_process_group may set another)",
        600,
        "pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp: kProcessGroupNCCLDefaultTimeout, 10 min",
        library="libtorch_cuda.so",
    ),
    TimeoutRow(
        "a collective of torch's gloo fails (init_process_group may set another)",
        1800,
        "pytorch torch/csrc/distributed/c10d/Backend.hpp: kBackendDefaultTimeout, 30 min",
        library="libtorch_cpu.so",
    ),
    TimeoutRow(
        "the process group's timeout, where the launch script reads NCCL_TIMEOUT",
        None,
        "no variable of NCCL or torch: scripts hand it to init_process_group(timeout=...)",
        "NCCL_TIMEOUT",
    ),
    TimeoutRow(
        "a collective of HCCL fails",
        1836,
        "CANN environment variables: HCCL_EXEC_TIMEOUT, 1836 s",
        "HCCL_EXEC_TIMEOUT",
        library="libhccl.so",
    ),
    TimeoutRow(
        "vLLM's engine gives up on a worker's step",
        300,
        "vllm/envs.py: VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS, 300",
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS",
        engine="vllm",
    ),
    TimeoutRow(
        "SGLang's watchdog ends a scheduler whose batch takes longer (--watchdog-timeout may set another)",
        300,
        "sglang server_args.py: watchdog_timeout, 300",
        engine="sglang",
    ),
    TimeoutRow(
        "ftNcclStreamSynchronize of RTP-LLM 0.2 aborts",
        120,
        "rtp-llm v0.2.0 nccl_utils.cc: Op run time more than 120000ms, abort",
        engine="rtp-llm",
    ),
)
