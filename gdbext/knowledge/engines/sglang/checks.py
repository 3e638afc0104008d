"""SGLang: what its checks throw, call or print when they fail, and what switches them on."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import MessageRow

MESSAGES: Tuple[MessageRow, ...] = (
    MessageRow(
        "sglang",
        "sglang::host::RuntimeDeviceCheck or CHECK_CUDA",
        r"^Failed at (?P<file>[^\n]+?):(?P<line>\d+): CUDA error: (?P<text>[^\n]*)",
        "sglang 0.5.23, sgl_kernel/utils.h",
    ),
)
