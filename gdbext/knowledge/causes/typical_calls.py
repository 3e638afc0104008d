"""Calls by which each kind of wait is known best, as people know them: `explain` shows these, `--json` all patterns.

A function, or of Python `file.py: function`. A test asks the frame rules whether each of them has that kind.
"""

from typing import Mapping, Tuple

TYPICAL_CALLS: Mapping[str, Tuple[str, ...]] = {
    "pinned-host-alloc": (
        *("cudaMallocHost", "cudaHostAlloc", "cudaFreeHost", "cudaHostRegister", "cudaHostUnregister"),
        *("cuMemAllocHost", "cuMemHostAlloc", "cuMemFreeHost", "hipHostMalloc", "hipHostFree"),
    ),
    "device-alloc": (
        *("cudaMalloc", "cuMemAlloc", "cuMemCreate", "hipMalloc", "ncclMemAlloc", "ncclCommRegister"),
        *("cudaIpcOpenMemHandle", "cudaDeviceEnablePeerAccess"),
    ),
    "device-free": (
        *("cudaFree", "cuMemFree", "hipFree", "cudaIpcCloseMemHandle", "ncclMemFree"),
        "torch/cuda/memory.py: empty_cache",
    ),
    "cublas": (
        *("cublasCreate", "cublasGemmEx", "cublasLtMatmul", "cudnnCreate", "cusolverDnCreate", "cusparseCreate"),
        "at::cuda::getCurrentCUDABlasHandle",
    ),
    "module-load": (
        *("cuModuleLoadData", "cuLibraryLoadData", "cuInit", "cudaSetDevice", "cuCtxCreate"),
        *(
            "cuDevicePrimaryCtxRetain",
            "hipModuleLoadData",
            "hsa_executable_freeze",
            "torch/cuda/__init__.py: _lazy_init",
        ),
    ),
    "kernel-launch": (
        *("cudaLaunchKernel", "cuLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch", "cuGraphLaunch"),
        *("hipLaunchKernel", "at::cuda::CUDAGraph::replay", "torch/cuda/graphs.py: replay"),
    ),
    "stream-sync": (
        *("cudaStreamSynchronize", "cuStreamSynchronize", "cudaStreamQuery", "hipStreamSynchronize"),
        *("c10::cuda::CUDAStream::synchronize", "at::native::_local_scalar_dense_cuda"),
        "torch/cuda/streams.py: synchronize",
    ),
    "event-sync": (
        *("cudaEventSynchronize", "cuEventSynchronize", "cudaEventQuery", "cudaEventDestroy", "hipEventSynchronize"),
        "at::cuda::CUDAEvent::synchronize",
    ),
    "device-sync": (
        *(
            "cudaDeviceSynchronize",
            "cuCtxSynchronize",
            "cudaDeviceReset",
            "hipDeviceSynchronize",
            "hsa_signal_wait_scacquire",
        ),
        "torch/cuda/__init__.py: synchronize",
    ),
    "memcpy-sync": (
        *("cudaMemcpy", "cudaMemcpyAsync", "cuMemcpyDtoH", "cudaMemset", "hipMemcpy"),
        *("at::native::copy_kernel_cuda", "torch/_tensor.py: cpu", "torch/_tensor.py: __array__"),
    ),
    "nccl-init": (
        *("ncclCommInitRank", "ncclCommInitAll", "ncclCommInitRankConfig", "ncclCommSplit", "bootstrapInit"),
        *("HcclCommInitRootInfo", "c10d::ProcessGroupNCCL::initNCCLComm"),
        "torch/distributed/distributed_c10d.py: init_process_group",
    ),
    "nccl-group-launch": (
        *("ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast", "ncclSend", "ncclRecv"),
        *("ncclGroupEnd", "HcclAllReduce", "torch/distributed/distributed_c10d.py: all_reduce"),
        "torch/distributed/distributed_c10d.py: barrier",
    ),
    "nccl-destroy-abort": (
        *("ncclCommDestroy", "ncclCommAbort", "ncclCommFinalize", "c10d::ProcessGroupNCCL::abort"),
        *("c10d::ProcessGroupNCCL::~ProcessGroupNCCL", "torch/distributed/distributed_c10d.py: destroy_process_group"),
    ),
    "store-wait": (
        *("c10d::TCPStore::get", "c10d::TCPStore::wait", "c10d::PrefixStore::get"),
        *("torch/distributed/rendezvous.py: rendezvous",),
    ),
    "mpi": (
        *("MPI_Allreduce", "MPI_Barrier", "MPI_Bcast", "MPI_Recv", "MPI_Wait", "MPI_Waitall"),
        *("ucp_worker_progress", "fi_cq_read", "psm2_mq_wait", "ibv_poll_cq"),
    ),
    "gloo": (
        *("gloo::allreduce", "gloo::allgather", "gloo::broadcast", "gloo::barrier"),
        *("c10d::AsyncAllreduceWork::run", "gloo::transport::tcp::UnboundBuffer::waitRecv"),
    ),
    "ipc-queue": (
        *("vllm/distributed/device_communicators/shm_broadcast.py: dequeue", "multiprocessing/queues.py: get"),
        *("sglang/srt/managers/scheduler.py: recv_requests", "ray::core::CoreWorker::Get", "zmq_msg_recv"),
    ),
    "gil": ("take_gil", "PyEval_RestoreThread", "PyEval_AcquireThread", "PyGILState_Ensure"),
    "mutex": (
        *(
            "pthread_mutex_lock",
            "__lll_lock_wait",
            "pthread_rwlock_wrlock",
            "PyThread_acquire_lock",
            "absl::Mutex::Lock",
        ),
        *("threading.py: acquire", "cuPointerGetAttribute"),
    ),
    "condvar-idle": (
        *("pthread_cond_wait", "pthread_cond_timedwait", "pthread_join", "sem_wait", "nanosleep", "sigwait"),
        "torch/autograd/graph.py: _engine_run_backward",
    ),
    "io": (
        *("read", "write", "recvmsg", "accept", "epoll_wait", "poll", "selectors.py: select"),
        "torch/utils/file_baton.py: wait",
    ),
    "python-code": ("time_sleep", "pysleep"),
    "native-compute": ("nvrtcCompileProgram", "cblas_sgemm", "torch/utils/cpp_extension.py: _jit_compile"),
    "exited-or-crashed": (*("abort", "__assert_fail", "<signal handler called>", "exit_group", "ucs_handle_error"),),
    "cuda-error-throw": (
        *("fastertransformer::check", "turbomind::ReportCudaError", "ggml_cuda_error", "rtp_llm::ncclCheck"),
    ),
}
