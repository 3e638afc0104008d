"""TensorRT-LLM: which member of an object holds a stream."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import Holder

HOLDERS: Tuple[Holder, ...] = (
    Holder(r"tensorrt_llm::runtime::CudaStream", "mStream", "TensorRT-LLM runtime/cudaStream.h", "mDevice"),
)

EVENT_HOLDERS: Tuple[Holder, ...] = (
    Holder(r"tensorrt_llm::runtime::CudaEvent", "mEvent", "TensorRT-LLM runtime/cudaEvent.h"),
)
