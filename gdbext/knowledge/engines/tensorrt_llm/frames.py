"""TensorRT-LLM: where an idle executor waits, and the calls that name a collective."""

from typing import Tuple

from gdbext.knowledge.engines.frame_rows import (
    QUEUE_FILES,
    QUEUE_WAITS,
    collectives,
    python_thread,
    python_wait,
)
from gdbext.knowledge.frame_precedence import LEAF, PYTHON, STEP
from gdbext.knowledge.row_kinds import FrameRule

RULES: Tuple[FrameRule, ...] = (
    FrameRule(
        "trt-idle",
        "condvar-idle",
        r"tensorrt_llm::(executor::Executor::Impl::(fetchNewRequests|getNewReqWithIds)|batch_manager::\w+::waitFor\w+)",
        "waits for requests: normal",
        rank=STEP,
        idle=True,
        leaf=True,
    ),
    FrameRule(
        "trt-threads",
        "condvar-idle",
        r"tensorrt_llm::(executor::(Executor::Impl::(orch\w+Thread|leader\w+Thread|\w+(Wait|Leader)Thread)|MpiMessageQueue::pop)"
        r"|mpi::MpiWaitThread::sideThread|batch_manager::\w+::Impl::(response|request)\w*)$",
        "TensorRT-LLM executorImpl.h, mpiUtils.h, dataTransceiver.cpp: threads that serve the executor",
        rank=LEAF,
        helper="thread pool",
        leaf=True,
    ),
    FrameRule(
        "trt-mpi",
        "mpi",
        r"tensorrt_llm::mpi::MpiComm::(?!get|is|~|session)\w+$",
        "TensorRT-LLM cpp/tensorrt_llm/runtime/utils/mpiUtils.cpp",
        rank=STEP,
    ),
    FrameRule(
        "trt-nccl-setup",
        "nccl-init",
        r"getComm$|tensorrt_llm::\w+::(getComm|NcclCommunicator::createComm)$",
        "TensorRT-LLM cpp/tensorrt_llm/common/opUtils.cpp, runtime/ncclCommunicator.cpp",
        rank=STEP,
        module=r"lib(tensorrt_llm|th_common|nvinfer_plugin_tensorrt_llm)",
    ),
    python_wait(
        "trt-python-idle",
        "ipc-queue",
        QUEUE_WAITS,
        QUEUE_FILES + r"|tensorrt_llm/executor/ipc\.py$",
        "_torch/pyexecutor/executor_request_queue.py, executor/worker.py: an executor or a worker without requests",
        rank=PYTHON + 6,
        idle=True,
        by=r"_?(get|fetch)(_new)?(_requests?)?_from_request_queue|worker_main|_fetch_new_requests|get_new_requests",
    ),
    python_wait(
        "trt-ipc",
        "ipc-queue",
        r"get|put|poll|get_async|recv",
        r"tensorrt_llm/executor/(ipc|rpc/\w+)\.py$",
        "executor/ipc.py: messages between the proxy and its workers",
        rank=PYTHON + 1,
    ),
    python_wait(
        "trt-python-mpi",
        "mpi",
        r"((tp|cp|pp|dp|ep)_)?(i?(send|recv)(_\w+)?|(all)?gather\w*|allreduce|barrier|b(road)?cast)|wait",
        r"tensorrt_llm/_torch/distributed/communicator\.py$",
        "_torch/distributed/communicator.py: mpi4py underneath",
        leaf=True,
    ),
    python_thread(
        "trt-python-threads",
        r"dispatch_\w+_(task|thread)|await_response_(task|thread)|_await_(any|single)_response|_?run_dispatch\w*"
        r"|\w+_dispatcher|_iter_stats_\w*|monitor\w*",
        r"tensorrt_llm/(executor|llmapi)/",
        "executor/proxy.py, worker.py: threads that pass on results and statistics",
        "engine background",
        leaf=False,
    ),
    *collectives(
        "trt", r"tensorrt_llm::(plugins|kernels|torch_ext|_v1::\w+)::", "TensorRT-LLM plugins; NVIDIA/nccl#1550"
    ),
)
