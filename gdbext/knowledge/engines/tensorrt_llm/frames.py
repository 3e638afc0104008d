"""TensorRT-LLM: where an idle executor waits, and the calls that name a collective."""

from typing import Tuple

from gdbext.knowledge.engines.frame_rows import collectives
from gdbext.knowledge.frame_precedence import LEAF, STEP
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
    *collectives(
        "trt", r"tensorrt_llm::(plugins|kernels|torch_ext|_v1::\w+)::", "TensorRT-LLM plugins; NVIDIA/nccl#1550"
    ),
)
