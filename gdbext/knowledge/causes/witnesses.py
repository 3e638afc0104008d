"""What a statement of a witness can mean for the verdict."""

SAYS = {
    "fact": "background: changes nothing",
    "in-sync": "all ranks of a communicator have launched the same number of operations",
    "behind": "the process has launched fewer operations than others of its communicator",
    "mismatch": "the process is in a different operation than its peers at the same position in the order",
    "dead": "the process no longer answers its peers",
    "gone-wrong": "the library has recorded an error or an abort for the process",
    "spins": "the GPU runs a kernel that only waits, such as an unfinished collective",
    "kernel": "a kernel is on the GPU of the process, as its GPU core shows",
    "gpu-fault": "the process's GPU had a fault that ends all work on it",
    "gpu-error": "a fault of a GPU that cannot be attributed to one process",
    "shm-room": "there is room for many NCCL connections in the only /dev/shm of the ranks",
    "shm-full": "there is no room for another NCCL connection in the process' /dev/shm",
}

CONTRADICTS = {
    "missing-rank": ("in-sync",),
    "collective-mismatch": ("in-sync",),
    "init-rendezvous": ("in-sync",),
    "not-a-hang": ("gpu-fault", "dead"),
    "shm-too-small": ("shm-room",),
}
"""Cause -> statements that speak against it. One of them lowers the confidence by a step."""

SPINS_AT = 95
"""Per cent of GPU utilisation from which a kernel counts as running all the time (soperator#796)."""
IDLE_POWER = 0.45
"""Share of the enforced power limit below which nothing is computed (nccl#968: 70 W of 400-700 W)."""
IDLE_MEMORY = 5
"""Per cent of memory utilisation up to which nothing is moved."""

SHM_PER_CONNECTION = 9_637_888
"""Bytes of one connection's file: LL 524,288 + LL128 4,915,200 + Simple 4,194,304 + header (NCCL's SHM transport)."""

SHM_ROOM = 16 * SHM_PER_CONNECTION
"""Bytes that are free where the next connections surely find room."""

NVML_GPU_IS_LOST = 15
"""NVML_ERROR_GPU_IS_LOST (nvml.h; nvidia-ml-py 13.615)."""

THROTTLES = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""Bits of nvmlDeviceGetCurrentClocksEventReasons that mean slow (nvml.h; nvidia-ml-py 13.615)."""

FLIGHT_RECORDER_PREFIXES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""Variables with the beginning of a dump's name, the one that wins first (strings of libtorch 2.13)."""
FLIGHT_RECORDER_DEFAULTS = ("{cache}/torch/comm_lib_trace_rank_", "/tmp/nccl_trace_rank_")  # noqa: S108 - torch's choice
"""Where torch writes without them: 2.13 (strings of libtorch), and before."""

KERNEL_DRIVER = r"(nv(?!me|dimm|mem)|uvm|os_acquire)"
"""Kernel functions (wchan) of NVIDIA's driver in which a thread sleeps."""
