"""FasterTransformer: what its checks throw, call or print when they fail, and what switches them on."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import CalledRow, MessageRow, SwitchRow, sync_and_check_statics

_SOURCE = "NVIDIA/FasterTransformer"

MESSAGES: Tuple[MessageRow, ...] = (
    MessageRow(
        "fastertransformer",
        "fastertransformer::check or syncAndCheck",
        r"\[FT\]\[ERROR\] CUDA runtime error: (?P<text>.*?)\s(?P<file>\S+):(?P<line>\d+)\s*$",
        f"{_SOURCE} cuda_utils.h",
    ),
    MessageRow(
        "fastertransformer",
        "ftNcclStreamSynchronize",
        r"NCCL Error : (?P<text>.*)",
        f"{_SOURCE} nccl_utils.cc",
        library="ncclResult_t",
    ),
)

CALLED: Tuple[CalledRow, ...] = (CalledRow("fastertransformer::check", 2, 3, f"{_SOURCE} cuda_utils.h"),)

SWITCHES: Tuple[SwitchRow, ...] = (
    SwitchRow(
        "fastertransformer",
        "fastertransformer::syncAndCheck",
        "FT_DEBUG_LEVEL=DEBUG",
        f"{_SOURCE} v5.2 and newer, cuda_utils.h; statics of syncAndCheck, measured with g++",
        *sync_and_check_statics("17fastertransformer"),
    ),
)

STARTING: Tuple[Tuple[str, str, str, str], ...] = (
    ("fastertransformer", "FT_DEBUG_LEVEL", "DEBUG", f"{_SOURCE} v5.2 and newer, cuda_utils.h"),
)
