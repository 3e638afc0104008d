"""torch: what it does not wait for for ever."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import TimeoutRow

TIMEOUTS: Tuple[TimeoutRow, ...] = (
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
)
