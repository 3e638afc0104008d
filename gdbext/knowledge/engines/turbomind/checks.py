"""TurboMind: what its checks throw, call or print when they fail, and what switches them on."""

from functools import partial
from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import (
    CalledRow,
    DebugCheckRow,
    FailRow,
    MessageRow,
    SwitchRow,
    sync_and_check_statics,
)

_SOURCE = "InternLM/lmdeploy"

_message = partial(MessageRow, "turbomind")

MESSAGES: Tuple[MessageRow, ...] = (
    _message(
        "turbomind::check or syncAndCheck",
        r"\[TM\]\[ERROR\] CUDA runtime error: (?P<text>.*?)\s(?P<file>\S+):(?P<line>\d+)\s*$",
        f"{_SOURCE} up to 0.7.3, cuda_utils.h",
    ),
)

PRINTED: Tuple[MessageRow, ...] = (
    _message(
        "TM_CHECK",
        r"\[TM\]\[FATAL\] (?P<file>[^\s()]{1,500})\((?P<line>\d+)\): (?P<text>[^\n]*)",
        f"{_SOURCE} 0.8.0 to 0.12.3, core/check.cc",
    ),
    _message(
        "TM_CHECK, TM_CUDA_CHECK or TM_LOG_FATAL",
        r"\[TM\]\[FATAL\]\[[\d.:]{1,40}\]\[(?P<file>[^\]\s:]{1,500}):(?P<line>\d+)\] (?P<text>[^\n]*)",
        f"{_SOURCE} 0.13.0 and newer, core/logger.cc",
    ),
)

_fail = partial(FailRow, "turbomind", aborts=True)

FAIL_FUNCTIONS: Tuple[FailRow, ...] = (
    _fail(
        "turbomind::ReportCudaError",
        f"{_SOURCE} 0.14.0 and newer, cuda_utils.cc",
        library="cudaError_t",
        code="0",
        file="1",
        line="2",
    ),
    _fail(
        "turbomind::ReportCuDrvError",
        f"{_SOURCE} 0.14.0 and newer, cuda_utils.cc",
        library="CUresult",
        code="0",
        file="1",
        line="2",
    ),
    _fail(
        "turbomind::core::ReportNullError",
        f"{_SOURCE} 0.8.0 and newer, core/check.cc",
        file="0",
        line="1",
        text="2",
        said="'{}' Must be non NULL",
    ),
    _fail(
        "turbomind::core::CheckErrorStream::Report",
        f"{_SOURCE} 0.8.0 and newer, core/check.h; "
        "file and line are members from 0.13.0 on, and in the text up to there",
        stream="0+0",
        file="0+8",
        line="0+16",
    ),
    _fail(
        "turbomind::core::Logger::LogFatalImpl",
        f"{_SOURCE} 0.14.0 and newer, core/logger.cc",
        file="1",
        line="2",
        text="3",
        within=(
            "turbomind::ReportCudaError",
            "turbomind::ReportCuDrvError",
            "turbomind::core::ReportNullError",
            "turbomind::core::CheckErrorStream::Report",
        ),
    ),
)

CALLED: Tuple[CalledRow, ...] = (
    CalledRow("turbomind::check", 2, 3, f"{_SOURCE} v0.8.0, cuda_utils"),
    CalledRow("turbomind::syncAndCheck", 0, 1, f"{_SOURCE} v0.8.0, cuda_utils"),
    CalledRow("turbomind::ReportCudaError", 1, 2, f"{_SOURCE} 0.14.0 and newer, cuda_utils.cc"),
    CalledRow("turbomind::ReportCuDrvError", 1, 2, f"{_SOURCE} 0.14.0 and newer, cuda_utils.cc"),
    CalledRow("turbomind::core::ReportNullError", 0, 1, f"{_SOURCE} 0.8.0 and newer, core/check.cc"),
)

SWITCHES: Tuple[SwitchRow, ...] = (
    SwitchRow(
        "turbomind",
        "turbomind::syncAndCheck",
        "TM_DEBUG_LEVEL=DEBUG",
        f"{_SOURCE} v0.2.0 to 0.7.3; statics of syncAndCheck, measured with g++",
        *sync_and_check_statics("9turbomind"),
    ),
)

STARTING: Tuple[Tuple[str, str, str, str], ...] = (
    ("turbomind", "TM_DEBUG_LEVEL", "DEBUG", f"{_SOURCE} v0.2.0 to 0.13"),
    ("turbomind", "FT_DEBUG_LEVEL", "DEBUG", f"{_SOURCE} up to v0.0.14"),
)

DEBUG_CHECKS: Tuple[DebugCheckRow, ...] = (
    DebugCheckRow(
        "turbomind",
        "turbomind::syncAndCheck",
        b"TM_DEBUG_LEVEL",
        "TM_DEBUG_LEVEL",
        ("DEBUG",),
        f"{_SOURCE} v0.2.0 to 0.13",
        "0.15 and newer have no such check",
        "or `llm-check enable` in gdb, in the running process",
    ),
)
