"""FasterTransformer: what its checks throw, call or print when they fail, and what switches them on."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import (
    CalledRow,
    DebugCheckRow,
    MessageRow,
    SwitchRow,
    sync_and_check_statics,
)

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

DEBUG_CHECKS: Tuple[DebugCheckRow, ...] = (
    DebugCheckRow(
        "fastertransformer",
        "fastertransformer::syncAndCheck",
        b"FT_DEBUG_LEVEL",
        "FT_DEBUG_LEVEL",
        ("DEBUG",),
        f"{_SOURCE} v5.2 and newer, cuda_utils.h; TurboMind up to v0.0.14 and RTP-LLM up to October 2024 have it, too",
        "up to v5.1 only builds without -DNDEBUG check, and no variable is read",
        "or `llm-check enable` in gdb, in the running process",
    ),
)
