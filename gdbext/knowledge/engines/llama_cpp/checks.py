"""ggml: what its checks throw, call or print when they fail, and what switches them on."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import FailRow

_SOURCE = "ggml 0.25.3"

FAIL_FUNCTIONS: Tuple[FailRow, ...] = (
    FailRow(
        "llama-cpp", "ggml_cuda_error", f"{_SOURCE}, ggml-cuda.cu", file="2", line="3", text="4", name="1", aborts=True
    ),
    FailRow(
        "llama-cpp",
        "ggml_abort",
        f"{_SOURCE}, ggml.c",
        file="0",
        line="1",
        text="2",
        within=("ggml_cuda_error",),
        aborts=True,
    ),
)
