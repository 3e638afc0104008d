"""What does not wait for ever for a rank that stands still, and for how long it does: one row each.

A source names the release and the file that the number was read in; of a binary, the function that holds it.
"""

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
        "libnccl 2.28.9 rasConnsHandleTimeouts: 60e9 ns * NCCL_RAS_TIMEOUT_FACTOR, then it declares the peer dead",
        "NCCL_RAS_TIMEOUT_FACTOR",
        factor=True,
        off=("NCCL_RAS_ENABLE", "0"),
        library="libnccl.so",
    ),
    TimeoutRow(
        "the monitor of torch's NCCL watchdog ends a rank without a heartbeat",
        480,
        "torch 2.14.1 libtorch_cuda.so ProcessGroupNCCL::HeartbeatMonitor: getCvarInt(..., 480), monitoring on",
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
        off=("TORCH_NCCL_ENABLE_MONITORING", "0"),
        library="libtorch_cuda.so",
    ),
    TimeoutRow(
        "torch's NCCL watchdog ends the job for a collective that takes longer (init_process_group may set another)",
        600,
        "torch 2.13.0 torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp: kProcessGroupNCCLDefaultTimeout, 10 min",
        library="libtorch_cuda.so",
    ),
    TimeoutRow(
        "a collective of torch's gloo fails (init_process_group may set another)",
        1800,
        "torch 2.13.0 torch/csrc/distributed/c10d/Backend.hpp: kBackendDefaultTimeout, 30 min",
        library="libtorch_cpu.so",
    ),
    TimeoutRow(
        "the process group's timeout, where the launch script reads NCCL_TIMEOUT",
        None,
        "no name of libnccl 2.28.9, not found in torch 2.13.0, vllm 0.33.0, sglang 0.5.23: scripts read it",
        "NCCL_TIMEOUT",
    ),
    TimeoutRow(
        "a collective of HCCL fails",
        1836,
        "CANN documentation, HCCL_EXEC_TIMEOUT, from memory: not checked against a release",
        "HCCL_EXEC_TIMEOUT",
        library="libhccl.so",
    ),
    TimeoutRow(
        "vLLM's engine gives up on a worker's step",
        300,
        "vllm 0.33.0 vllm/envs.py: VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS, 300; used in v1/executor/multiproc_executor.py",
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS",
        engine="vllm",
    ),
    TimeoutRow(
        "SGLang's watchdog ends a scheduler whose batch takes longer (--watchdog-timeout may set another)",
        300,
        "sglang 0.5.23 srt/arg_groups/fields/device.py: watchdog_timeout, 300; srt/utils/watchdog.py",
        engine="sglang",
    ),
    TimeoutRow(
        "ftNcclStreamSynchronize of RTP-LLM up to 0.2 aborts (later ones have no such limit)",
        120,
        "rtp-llm v0.2.0 nccl_utils.cc, as reported, not read: aborts after 120000 ms; those of 2026 have 36500 days",
        engine="rtp-llm",
    ),
)
