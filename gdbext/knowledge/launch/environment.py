"""Environment variables worth keeping in a snapshot, each with its reason. Nothing that can hold a secret."""

from typing import Dict, Tuple

from gdbext.knowledge.launch.launchers import VARIABLES

_RANKS: Dict[str, str] = {
    name: f"who the process is ({row.launcher})"
    for row in reversed(VARIABLES)
    for name in (row.rank, row.world_size, row.local_rank, row.local_size, row.node, row.nodes, *row.job, *row.needs)
    if name
}

_NCCL: Dict[str, str] = {
    "NCCL_LAUNCH_MODE": "GROUP adds a barrier between launches of one process; PARALLEL is the default since 2.13",
    "NCCL_LAUNCH_ORDER_IMPLICIT": "orders launches on one device: cures use of two communicators in different order",
    "NCCL_COMM_BLOCKING": "0 lets calls return before they are done",
    "NCCL_RUNTIME_CONNECT": "1 (default) connects at first use: the first collective may wait for peers on the host",
    "NCCL_CUMEM_ENABLE": "allocation by cuMem calls, which may wait for the device",
    "NCCL_CUMEM_HOST_ENABLE": "host buffers by cuMem calls: need NUMA support in the container",
    "NCCL_GRAPH_MIXING_SUPPORT": "0 makes mixing graphs and plain launches on one communicator unsafe",
    "NCCL_P2P_DISABLE": "peer-to-peer access switched off",
    "NCCL_P2P_LEVEL": "how far apart GPUs may be for peer-to-peer access",
    "NCCL_SHM_DISABLE": "shared memory transport switched off",
    "NCCL_NVLS_ENABLE": "NVLink SHARP, which needs memory of its own",
    "NCCL_IB_DISABLE": "InfiniBand switched off: sockets instead",
    "NCCL_IB_HCA": "which adapters are used",
    "NCCL_IB_TIMEOUT": "how long InfiniBand retries before it reports an error",
    "NCCL_IB_RETRY_CNT": "how often InfiniBand retries",
    "NCCL_IB_GID_INDEX": "a wrong index on RoCE makes connections hang",
    "NCCL_SOCKET_IFNAME": "a wrong interface makes rendezvous hang",
    "NCCL_SOCKET_FAMILY": "IPv4 or IPv6",
    "NCCL_NET": "network plugin by name",
    "NCCL_NET_PLUGIN": "network plugin by file",
    "NCCL_NET_GDR_LEVEL": "GPUDirect RDMA",
    "NCCL_ALGO": "fixed algorithm",
    "NCCL_PROTO": "fixed protocol; LL128 needs suitable links",
    "NCCL_MAX_NCHANNELS": "channels, hence blocks that a collective keeps on the device",
    "NCCL_MIN_NCHANNELS": "channels, hence blocks that a collective keeps on the device",
    "NCCL_BUFFSIZE": "bytes in flight per channel",
    "NCCL_TOPO_FILE": "own picture of the machine",
    "NCCL_DEBUG": "what NCCL logs",
    "NCCL_DEBUG_SUBSYS": "what NCCL logs",
    "NCCL_DEBUG_FILE": "where NCCL's log is",
    "NCCL_RAS_ENABLE": "0 switches off the status service",
    "NCCL_RAS_ADDR": "where the status service listens",
    "NCCL_RAS_TIMEOUT_FACTOR": "how soon the status service calls a rank dead",
    "NCCL_SET_THREAD_NAME": "1 names NCCL's threads",
    "NCCL_CHECK_POINTERS": "1 checks arguments",
    "NCCL_ASYNC_ERROR_HANDLING": "old name of TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_BLOCKING_WAIT": "old name of TORCH_NCCL_BLOCKING_WAIT",
}

_TORCH: Dict[str, str] = {
    "TORCH_NCCL_BLOCKING_WAIT": "1 makes wait() block the host",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "what the watchdog does after a time-out",
    "TORCH_NCCL_DESYNC_DEBUG": "reports which rank is behind",
    "TORCH_NCCL_ENABLE_MONITORING": "0 switches the heartbeat monitor off",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "after this the monitor kills a process whose watchdog is stuck",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "flight recorder dump on a time-out",
    "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "time given to the dump",
    "TORCH_NCCL_COORD_CHECK_MILSEC": "how often ranks look for another rank's dump signal",
    "TORCH_NCCL_PROPAGATE_ERROR": "errors are told to the other ranks",
    "TORCH_NCCL_TRACE_BUFFER_SIZE": "entries of the flight recorder; 0 switches it off",
    "TORCH_NCCL_TRACE_CPP_STACK": "native stacks in the flight recorder",
    "TORCH_NCCL_NAN_CHECK": "checks inputs for NaN",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "where the flight recorder writes",
    "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": "pipe that asks for a dump",
    "TORCH_NCCL_AVOID_RECORD_STREAMS": "how tensors in use by a collective are kept alive",
    "TORCH_NCCL_HIGH_PRIORITY": "collectives on streams of high priority",
    "TORCH_FR_BUFFER_SIZE": "entries of the flight recorder",
    "TORCH_FR_DUMP_ON_TIMEOUT": "flight recorder dump on a time-out",
    "TORCH_FR_CPP_STACK": "native stacks in the flight recorder",
    "TORCH_FR_DUMP_TEMP_FILE": "where the flight recorder writes",
    "TORCH_DISTRIBUTED_DEBUG": "DETAIL adds a check before each collective, which itself waits for all ranks",
    "TORCHELASTIC_RESTART_COUNT": "how often the job was restarted",
    "TORCHELASTIC_MAX_RESTARTS": "how often the job may be restarted",
    "PYTORCH_CUDA_ALLOC_CONF": "allocator settings: how often memory is given back, which waits for the device",
    "PYTORCH_ALLOC_CONF": "new name of PYTORCH_CUDA_ALLOC_CONF",
    "GLOO_SOCKET_IFNAME": "a wrong interface makes rendezvous hang",
    "OMP_NUM_THREADS": "threads per rank",
}

_CUDA: Dict[str, str] = {
    "CUDA_VISIBLE_DEVICES": "which GPUs the process sees, in which order",
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID or FASTEST_FIRST",
    "CUDA_LAUNCH_BLOCKING": "1 makes every launch wait: deadlocks code that needs two collectives in flight",
    "CUDA_DEVICE_MAX_CONNECTIONS": "1 puts all streams into one queue: launches order one another",
    "CUDA_MODULE_LOADING": "LAZY loads kernels at first use, which may wait for a running collective; EAGER does not",
    "CUDA_MODULE_DATA_LOADING": "the same for data",
    "CUDA_COREDUMP_FILE": "where GPU core files go",
    "CUDA_COREDUMP_PIPE": "pipe that asks for a GPU core file",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "GPU core file on an exception",
    "CUDA_ENABLE_USER_TRIGGERED_COREDUMP": "GPU core file on demand",
    "CUDA_DEVICE_WAITS_ON_EXCEPTION": "the device waits for cuda-gdb after an exception",
    "CUDA_MPS_PIPE_DIRECTORY": "the process shares its GPU through MPS",
    "NVIDIA_VISIBLE_DEVICES": "which GPUs the container sees",
    "HIP_VISIBLE_DEVICES": "which GPUs the process sees",
    "ROCR_VISIBLE_DEVICES": "which GPUs the process sees",
    "ASCEND_RT_VISIBLE_DEVICES": "which NPUs the process sees",
    "HCCL_CONNECT_TIMEOUT": "how long HCCL waits for peers at start",
    "HCCL_EXEC_TIMEOUT": "how long HCCL waits in a collective",
    "MS_ROLE": "scheduler or worker",
    "MS_TOPO_TIMEOUT": "how long MindSpore waits for all processes",
}

_ENGINES: Dict[str, str] = {
    "FT_DEBUG_LEVEL": "DEBUG makes FasterTransformer synchronise and check after every kernel",
    "FT_LOG_LEVEL": "what FasterTransformer logs",
    "FT_LOG_FIRST_RANK_ONLY": "ON: only rank 0 logs",
    "FT_NVTX": "ON: ranges for profilers",
    "LOG_LEVEL": "DEBUG makes RTP-LLM synchronise and check after every kernel",
    "FT_CORE_DUMP_ON_EXCEPTION": "RTP-LLM aborts where it throws",
    "TM_DEBUG_LEVEL": "DEBUG makes TurboMind synchronise and check after every kernel",
    "TM_LOG_LEVEL": "what TurboMind logs",
    "TM_ANOMALY_HANDLER": "TurboMind checks for NaN and infinity",
    "TLLM_DEBUG_MODE": "1 switches TensorRT-LLM's debug checks on",
    "TLLM_LOG_LEVEL": "what TensorRT-LLM logs",
    "TLLM_DISABLE_MPI": "1: processes are started without MPI",
    "FORCE_NCCL_ALL_REDUCE_STRATEGY": "TensorRT-LLM uses NCCL instead of its own kernels",
    "TP_SIZE": "tensor-parallel size (RTP-LLM)",
    "DP_SIZE": "data-parallel size (RTP-LLM)",
    "EP_SIZE": "expert-parallel size (RTP-LLM)",
    "VLLM_DP_RANK": "data-parallel rank",
    "VLLM_DP_RANK_LOCAL": "data-parallel rank on this host",
    "VLLM_DP_SIZE": "data-parallel size",
    "VLLM_DP_MASTER_IP": "data-parallel rendezvous",
    "VLLM_DP_MASTER_PORT": "data-parallel rendezvous",
    "VLLM_ALLREDUCE_USE_SYMM_MEM": "collectives that bypass NCCL",
    "VLLM_SKIP_P2P_CHECK": "custom all-reduce without checking that peer access works",
    "VLLM_WORKER_MULTIPROC_METHOD": "fork after CUDA was used is unsafe",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0: the engine runs inside the caller's process",
    "VLLM_LOGGING_LEVEL": "what vLLM logs",
    "SGLANG_SKIP_P2P_CHECK": "custom all-reduce without checking that peer access works",
    "LMDEPLOY_DIST_INIT_ADDR": "rendezvous of several hosts",
    "LMDEPLOY_DIST_INIT_PORT": "rendezvous of several hosts",
    "GGML_CUDA_ENABLE_UNIFIED_MEMORY": "1: managed memory, whose pages wander",
    "GGML_CUDA_P2P": "peer access of llama.cpp",
    "GGML_NO_BACKTRACE": "1: ggml does not start a debugger when it aborts",
}

RECORDED: Dict[str, str] = {**_RANKS, **_NCCL, **_TORCH, **_CUDA, **_ENGINES}
"""Name of the variable -> why it matters for a hang. These and no others go into a snapshot."""

TUNING: Tuple[str, ...] = tuple(sorted({**_NCCL, **_TORCH, **_CUDA, **_ENGINES}))
"""The recorded names that tune something, without those that only say who the process is."""
