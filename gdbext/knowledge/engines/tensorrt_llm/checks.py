"""TensorRT-LLM: what its checks throw, call or print when they fail, and what switches them on."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import DebugCheckRow, MessageRow

_SOURCE = "NVIDIA/TensorRT-LLM"

MESSAGES: Tuple[MessageRow, ...] = (
    MessageRow(
        "tensorrt-llm",
        "tensorrt_llm::common::check",
        r"\[TensorRT-LLM\]\[ERROR\] (?:CUDA runtime|CUDA driver|CUDA) error in (?P<expression>.*?): (?P<text>.*) "
        r"\((?P<file>[^()\n]+):(?P<line>\d+)\)",
        f"{_SOURCE} cudaUtils.h",
    ),
    MessageRow(
        "tensorrt-llm",
        "TLLM_CHECK",
        r"\[TensorRT-LLM\]\[ERROR\] (?P<text>Assertion failed: .*) \((?P<file>[^()\n]+):(?P<line>\d+)\)",
        f"{_SOURCE} assert.h",
    ),
)

STARTING: Tuple[Tuple[str, str, str, str], ...] = (("tensorrt-llm", "TLLM_DEBUG_MODE", "1", f"{_SOURCE} assert.h"),)

DEBUG_CHECKS: Tuple[DebugCheckRow, ...] = (
    DebugCheckRow(
        "tensorrt-llm",
        "TLLM_CHECK_DEBUG",
        b"TLLM_DEBUG_MODE",
        "TLLM_DEBUG_MODE",
        ("1",),
        f"{_SOURCE} assert.h",
        "",
        "syncAndCheck goes by CUDA_LAUNCH_BLOCKING=1, which releases with an inverted test (83ab45a) never read",
    ),
)
