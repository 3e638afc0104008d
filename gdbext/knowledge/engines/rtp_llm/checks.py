"""RTP-LLM: what its checks throw, call or print when they fail, and what switches them on."""

from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import CalledRow, DebugCheckRow, MessageRow, SwitchRow

_SOURCE = "alibaba/rtp-llm"

MESSAGES: Tuple[MessageRow, ...] = (
    MessageRow(
        "rtp-llm",
        "rtp_llm::check or syncAndCheckInDebug",
        r"^\[ERROR\] CUDA runtime error: (?P<text>.*?)\s(?P<file>\S+):(?P<line>\d+)\s*$",
        f"{_SOURCE} cuda_host_utils.cc",
    ),
    MessageRow(
        "rtp-llm",
        "rtp_llm::ncclCheck",
        r"^\[ERROR\] NCCL error: (?P<text>.*?)\s(?P<file>\S+):(?P<line>\d+)\s*$",
        f"{_SOURCE} v0.2.0",
        library="ncclResult_t",
    ),
)

CALLED: Tuple[CalledRow, ...] = (
    CalledRow("fastertransformer::CheckError", 0, 1, f"{_SOURCE} v0.1.13"),
    CalledRow("rtp_llm::check", 1, 2, f"{_SOURCE} cuda_host_utils.cc"),
    CalledRow("rtp_llm::ncclCheck", 1, 2, f"{_SOURCE} v0.2.0"),
)

SWITCHES: Tuple[SwitchRow, ...] = (
    SwitchRow(
        "rtp-llm",
        "rtp_llm::syncAndCheckInDebug",
        "LOG_LEVEL=DEBUG",
        f"{_SOURCE} since October 2024 (5ecde89d6), Logger.h",
        logger="_ZZN7rtp_llm6Logger15getEngineLoggerEvE14engine_logger_",
        type="rtp_llm::Logger",
        field="base_log_level_",
        setter="_ZN7rtp_llm6Logger12setBaseLevelEj",
        value=5,
        highest=8,
    ),
)

STARTING: Tuple[Tuple[str, str, str, str], ...] = (
    ("rtp-llm", "FT_DEBUG_LEVEL", "DEBUG", f"{_SOURCE} up to October 2024"),
    ("rtp-llm", "LOG_LEVEL", "DEBUG", f"{_SOURCE} since October 2024 (5ecde89d6), Logger.h"),
)

DEBUG_CHECKS: Tuple[DebugCheckRow, ...] = (
    DebugCheckRow(
        "rtp-llm",
        "rtp_llm::syncAndCheckInDebug",
        b"syncAndCheckInDebug",
        "LOG_LEVEL",
        ("DEBUG", "TRACE"),
        f"{_SOURCE} since June 2025 (db3b135f3), cuda_host_utils.cc",
        "",
        "or `llm-check enable` in gdb, in the running process",
    ),
)
