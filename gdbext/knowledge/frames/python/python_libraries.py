"""Python functions of other libraries that wait: what a dump without native frames shows as the innermost one."""

from __future__ import annotations

from functools import partial
from typing import Mapping, NamedTuple, Tuple

from gdbext.knowledge.engines.frame_rows import python_wait
from gdbext.knowledge.frame_precedence import PYTHON
from gdbext.knowledge.frames.networks.fabrics import RAY_GET, RAY_TASK
from gdbext.knowledge.row_kinds import FrameRule

DASK_RESULT = "dask-sync"
JAX_COMPILE = "jax-compile"
DONE_BY_POOLS = (JAX_COMPILE,)
"""Rules of work that threads of a library's pool do, which a forked child does not have."""

_COLLECTIVES = (
    (r"\w*all_?reduce\w*", "all_reduce"),
    (r"\w*all_?gather\w*", "all_gather"),
    (r"\w*broadcast(?!_to|_shape|_array|_in_dim|_tensors)\w*", "broadcast"),
    (r"\w*reduce_?scatter\w*", "reduce_scatter"),
    (r"\w*all_?to_?all\w*", "all_to_all"),
    (r"\w*barrier", "barrier"),
)


def _innermost_collectives() -> Tuple[FrameRule, ...]:
    """The innermost Python function has the name of a collective, in a file for such things: it calls into one."""
    return tuple(
        FrameRule(
            f"library-{collective}",
            "nccl-group-launch",
            rf"({names})$",
            "DeepSpeed, Megatron, FSDP, Colossal-AI, Accelerate: a call of c10d leaves no Python frame where it is C++",
            file=r"(distributed|deepspeed|megatron|colossalai|accelerate|lightning|fairscale|horovod|apex|nccl"
            r"|(^|/)(dist|comm|ddp|fsdp|zero|tp|parallel)\w*[/.]|_(dist|comm|parallel|utils)\.py$)",
            language="python",
            rank=PYTHON - 1,
            collective=collective,
            leaf=True,
        )
        for names, collective in _COLLECTIVES
    )


_MPI = (
    (r"[Ii]?[Aa]llreduce|mpi_allreduce", "all_reduce"),
    (r"[Ii]?[Aa]llgatherv?|mpi_allgather\w*", "all_gather"),
    (r"[Ii]?[Bb]cast|mpi_broadcast", "broadcast"),
    (r"[Ii]?[Bb]arrier|mpi_barrier", "barrier"),
    (r"[Ii]?[Ss]end|mpi_i?send\w*", "send"),
    (r"[Ii]?[Rr]ecv|mpi_recv\w*", "recv"),
    (r"[Ii]?[Gg]atherv?|mpi_gather", "gather"),
    (r"[Ii]?[Ss]catterv?", "scatter"),
    (r"[Ii]?[Aa]lltoall[vw]?", "all_to_all"),
)


def _mpi() -> Tuple[FrameRule, ...]:
    return tuple(
        FrameRule(
            f"mpi4py-{collective}",
            "mpi",
            rf"({names})$",
            "mpi4py, and TensorRT-LLM's functions over it (_utils.py)",
            file=r"mpi4py|tensorrt_llm/_utils\.py$",
            language="python",
            rank=PYTHON + 1,
            collective=collective,
        )
        for names, collective in _MPI
    )


_soft = partial(python_wait, rank=PYTHON - 1)

RULES = (
    *_mpi(),
    python_wait(
        "python-event-sync",
        "event-sync",
        r"synchronize",
        r"torch/cuda/streams\.py$",
        "torch.cuda.Event.synchronize: streams.py has Stream in its first half (torch 1.10 to 2.9)",
        from_line=150,
    ),
    python_wait(
        "python-wait-tensor",
        "nccl-group-launch",
        r"wait_tensor",
        r"torch/distributed/_functional_collectives\w*\.py$",
        "waits for a functional collective",
    ),
    _soft(
        "pipeline-send-recv",
        "nccl-group-launch",
        r"_?communicate(_shapes)?|_?p2p_ops|_batched_p2p_ops|_ring_exchange|(send|recv)_(forward|backward)\w*",
        r"(p2p_communication|pipe/p2p|pipeline\w*/\w+)\.py$",
        "Megatron and DeepSpeed pipelines",
    ),
    _soft(
        "deepspeed-fetch",
        "nccl-group-launch",
        r"fetch_sub_module|__?all_gather_params\w*|wait",
        r"deepspeed/runtime/zero/(partition\w+|parameter_offload)\.py$",
        "ZeRO-3 gathers parameters when a module needs them; accelerate#3104",
    ),
    _soft(
        "python-tensor-text",
        "stream-sync",
        r"_str\w*|_tensor_str|__(repr|format)__",
        r"torch/_tensor(_str)?\.py$",
        "printing a tensor reads its values back",
    ),
    _soft(
        "python-tensor-copy",
        "memcpy-sync",
        r"__array__|__deepcopy__|cpu|_to|_cuda|convert",
        r"torch/(_tensor|_utils|storage|nn/modules/module)\.py$",
        "copies between host and device",
    ),
    python_wait(
        "triton-load",
        "module-load",
        r"_init_handles|load_binary|make_launcher|_?precompile\w*|load_kernel|_load_kernel",
        r"(triton/(compiler|backends|runtime)/|_inductor/(runtime|codecache))",
        "Triton loads a compiled kernel at its first launch; torchcomms PR#2334",
    ),
    python_wait(
        "extension-build",
        "native-compute",
        r"_?run_ninja\w*|_write_ninja_file\w*|_jit_compile|build_jit_specs|build_and_load|jit_load",
        r"(torch/utils/cpp_extension|flashinfer/jit/|deep_gemm/)",
        "compiles an extension",
        rank=PYTHON + 1,
    ),
    python_wait(
        "extension-lock",
        "io",
        r"wait|try_acquire",
        r"torch/utils/file_baton\.py$",
        "another process builds the extension, or died and left its lock file",
        rank=PYTHON + 2,
    ),
    python_wait(
        "jax-ready", "stream-sync", r"block_until_ready|_block_until_ready\w*", r"jax/", "jax waits for dispatched work"
    ),
    python_wait(
        "jax-copy", "memcpy-sync", r"_value|__array__|device_get", r"jax/_src/(array|api)\.py$", "jax reads back"
    ),
    python_wait(
        JAX_COMPILE, "native-compute", r"backend_compile\w*|compile_or_get_cached", r"jax/_src/", "XLA compiles"
    ),
    python_wait(
        "jax-distributed", "store-wait", r"initialize|wait_at_barrier", r"jax/_src/distributed\.py$", "jax.distributed"
    ),
    python_wait(
        "jax-collective",
        "nccl-group-launch",
        r"sync_global_devices|process_allgather|broadcast_one_to_all|assert_equal|reached_preemption_sync_point",
        r"jax/experimental/multihost_utils\.py$",
        "jax.experimental.multihost_utils: all processes take part",
        rank=PYTHON + 2,
    ),
    python_wait(
        "horovod-python",
        "nccl-group-launch",
        r"_?synchronize|wait_and_clear|join|poll|allreduce\w*|allgather\w*|broadcast\w*|alltoall\w*|barrier",
        r"(horovod|byteps)/\w+/(mpi_ops|ops|functions|optimizer|__init__)\.py$",
        "Horovod and BytePS: waits until the background thread has done the collective",
        rank=PYTHON + 1,
    ),
    _soft(
        "torch-rpc",
        "ipc-queue",
        r"rpc_sync|_invoke_rpc|_wait_all_workers|_all_gather|_barrier|shutdown|_?wait_all|to_here|local_value"
        r"|_rref_\w+|wrapper",
        r"torch/distributed/rpc/\w+\.py$",
        "torch RPC: waits for the answer of another worker",
    ),
    _soft(
        "device-reads",
        "memcpy-sync",
        r"asnumpy|get|set|item|numpy|to_host|copy_to_host|copy_to_device|copyto|asscalar|memcpy_\w+",
        r"(mxnet/(ndarray|numpy)/|cupy/|numba/cuda/|pycuda/|paddle/(base|fluid|tensor)/|tinygrad/|pyopencl/)",
        "MXNet, CuPy, Numba, PyCUDA, Paddle, tinygrad: copies between host and device",
    ),
    python_wait(
        "device-waits",
        "device-sync",
        r"_?synchronize|waitall|wait_to_(read|write)|_?wait|finish|cuda_device_synchronize|_gpu_synchronize",
        r"(mxnet/(ndarray|numpy)/|mxnet/util|cupy/|cupy_backends/|numba/cuda/|pycuda/|paddle/device/|tinygrad/"
        r"|pyopencl/|mlx/|torch_npu/|torch/(xpu|mps|npu|musa|hpu|mtia|accelerator)/|torch_xla/)",
        "MXNet, CuPy, Numba, Paddle, tinygrad, devices of torch: waits for the device",
        rank=PYTHON,
    ),
    python_wait(
        DASK_RESULT,
        "ipc-queue",
        r"_?sync|_?gather|result|_?compute|get|_wait|wait|as_completed",
        r"distributed/(client|utils|worker_client|deploy/\w+|variable|queues|lock|event|semaphore)\.py$",
        "dask.distributed: a client waits for the cluster",
        rank=PYTHON + 1,
    ),
    python_wait(
        "broker-idle",
        "ipc-queue",
        r"(\w+\.)?(b[lrz]m?(move|pop(lpush|min|max)?)|xread(group)?|get_message|listen)",
        r"(^|/)redis/(commands/core|client)\.py$",
        "redis-py: BLPOP and its kin, XREAD, PubSub: the server answers when somebody has sent a message",
        rank=PYTHON + 3,
        idle=True,
        calls=r"handle_message",
    ),
    python_wait(
        "broker-poll-idle",
        "ipc-queue",
        r"(\w+\.)?_?poll",
        r"(^|/)(pika/adapters/select_connection|kombu/utils/eventio)\.py$",
        "pika, kombu (Celery): a consumer without a message",
        rank=PYTHON + 3,
        idle=True,
        calls=r"_?(process|dispatch)\w*",
    ),
    python_wait(
        "huey-idle",
        "ipc-queue",
        r"loop",
        r"(^|/)huey/consumer\.py$",
        "huey consumer.py: a worker without a task, the scheduler and the main thread, which look again and again",
        rank=PYTHON + 3,
        idle=True,
        calls=r"(\w+\.)?_?execute",
    ),
    python_wait(
        "grpc-call",
        "io",
        r"_blocking|__call__|_end_unary_response_blocking|result|_next_response|_next|with_call|future_response",
        r"grpc/(_channel|_interceptor|_simple_stubs)\.py$",
        "grpcio: waits for the answer of a server",
        rank=PYTHON + 1,
    ),
    python_wait(
        "zmq-python",
        "ipc-queue",
        r"(recv|send|poll)\w*|_deserialize|_add_recv_event",
        r"(^|/)zmq/",
        "message queues of the engines",
        rank=PYTHON + 1,
    ),
    python_wait(
        "ray-idle",
        "ipc-queue",
        r"main_loop",
        r"ray/(_private/)?worker\.py$",
        "a worker of Ray waits for tasks: normal",
        rank=PYTHON - 2,
        idle=True,
        calls=RAY_TASK,
    ),
    python_wait(
        "ray-function",
        "ipc-queue",
        r"fetch_registered_method|_wait_for_function|fetch_and_register_\w+",
        r"ray/(_private/)?function_manager\.py$",
        "ray/_private/function_manager.py: has a task, and waits until the driver has exported its function",
    ),
    python_wait(
        RAY_GET,
        "ipc-queue",
        r"_?get|get_objects|_?wait|read|begin_read|execute|_call_\w+",
        r"ray/((_private/)?worker|experimental/channel/\w+|dag/\w+|util/client/\w+)\.py$",
        "waits for another actor",
    ),
    python_wait(
        "engine-cpu-group",
        "gloo",
        r"(send|recv|broadcast|all_gather|gather)_(object(_list)?|pyobj)|_?broadcast_(py|recv_)?objs?\w*"
        r"|in_the_same_node_as",
        r"(vllm|sglang|aphrodite|lmdeploy|srt)/.*(parallel_state|common|scheduler\w*|utils)\.py$|(^"
        r"|/)parallel_state\.py$",
        "objects of Python go over the group of the CPU: vLLM and SGLang parallel_state.py, GroupCoordinator",
        rank=PYTHON + 2,
    ),
    _soft(
        "engine-client",
        "ipc-queue",
        r"get_output(_async)?|wait_for_engine_startup|_wait_for_response|collective_rpc|get_response",
        r"vllm/(v1/)?(engine|executor)/(?!uniproc|gpu_executor)\w+\.py$",
        "waits for the engine core or the workers",
    ),
    _soft(
        "weights-file",
        "io",
        r"load_file|save_file|safe_open|get_tensor|_?load|_?save|_?write\w*|read\w*|http_get|xet_get|_download\w*"
        r"|snapshot_download|_fetch\w*",
        r"(safetensors/|torch/serialization|huggingface_hub/|fsspec/|s3fs/|gcsfs/|botocore/|httpcore/|aiohttp/"
        r"|runai_model_streamer/)",
        "reads or writes weights or data",
    ),
)
"""Before the rows of torch: on one frame the first that matches decides."""

INNERMOST = _innermost_collectives()
"""After all others: they go by names alone."""


class TaskList(NamedTuple):
    """What tells where a task is carried out."""

    command: str
    reason: str  # to run it


WORKERS_IN_LOOPS = ("ray-idle", "ray-task-loop")
"""Rules of workers that wait for tasks in an event loop of their library."""
RESULTS_OF_OTHERS: Mapping[str, TaskList] = {
    RAY_GET: TaskList(
        "ray list tasks --filter state!=FINISHED",
        "it says on which node each task runs, or what it waits for; ray status says what is asked for in vain",
    ),
    DASK_RESULT: TaskList(
        """python -c 'from distributed import Client; print(Client("tcp://SCHEDULER").processing())'""",
        "it says which worker has which tasks, and which workers there are",
    ),
}
"""By rules of waits for what other processes do, which no look need have read (docs.ray.io, State CLI;
distributed.dask.org, Client.processing)."""

REQUESTS = frozenset({"torch-rpc"})
"""Rules of waits for the answer to one request: it may be on its way while no process is seen to work on it."""
