"""What switches an engine's own debug check on, at start or in a running process (rows)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

_FT = "NVIDIA/FasterTransformer"
_RTP = "alibaba/rtp-llm"
_TM = "InternLM/lmdeploy"
_TRT = "NVIDIA/TensorRT-LLM"


@dataclass(frozen=True)
class SwitchRow:
    """What switches an engine's own debug check on. Symbols are tried in this order."""

    engine: str
    function: str  # the check that becomes active
    variable: str  # environment variable and value that do it at start
    source: str
    level_name: str = ""  # mangled: `char*`, read once from the variable
    level: str = ""  # mangled: std::string, constructed from level_name at the first check
    level_guard: str = ""
    name_guard: str = ""
    logger: str = ""  # mangled: the logger object, of which `field` is set
    type: str = ""  # of the logger
    field: str = ""
    setter: str = ""  # mangled: a function that sets the field
    value: int = 0
    highest: int = 0  # level that there is


_STATICS = "statics of syncAndCheck, measured with g++"


def _statics(namespace: str) -> Tuple[str, str, str, str]:
    """Mangled names of `static char* level_name`, `static std::string level` and their guards in syncAndCheck."""
    function = f"ZZN{namespace}12syncAndCheckEPKciE"
    return (
        f"_{function}10level_name",
        f"_{function}5levelB5cxx11",
        f"_ZGV{function[1:]}5levelB5cxx11",
        f"_ZGV{function[1:]}10level_name",
    )


SWITCHES: Tuple[SwitchRow, ...] = (
    SwitchRow(
        "fastertransformer",
        "fastertransformer::syncAndCheck",
        "FT_DEBUG_LEVEL=DEBUG",
        f"{_FT} v5.2 and newer, cuda_utils.h; {_STATICS}",
        *_statics("17fastertransformer"),
    ),
    SwitchRow(
        "turbomind",
        "turbomind::syncAndCheck",
        "TM_DEBUG_LEVEL=DEBUG",
        f"{_TM} v0.2.0 to 0.7.3; {_STATICS}",
        *_statics("9turbomind"),
    ),
    SwitchRow(
        "rtp-llm",
        "rtp_llm::syncAndCheckInDebug",
        "LOG_LEVEL=DEBUG",
        f"{_RTP} since October 2024 (5ecde89d6), Logger.h",
        logger="_ZZN7rtp_llm6Logger15getEngineLoggerEvE14engine_logger_",
        type="rtp_llm::Logger",
        field="base_log_level_",
        setter="_ZN7rtp_llm6Logger12setBaseLevelEj",
        value=5,
        highest=8,
    ),
)

STARTING: Tuple[Tuple[str, str, str, str], ...] = (
    ("fastertransformer", "FT_DEBUG_LEVEL", "DEBUG", f"{_FT} v5.2 and newer, cuda_utils.h"),
    ("turbomind", "TM_DEBUG_LEVEL", "DEBUG", f"{_TM} v0.2.0 to 0.13"),
    ("turbomind", "FT_DEBUG_LEVEL", "DEBUG", f"{_TM} up to v0.0.14"),
    ("rtp-llm", "FT_DEBUG_LEVEL", "DEBUG", f"{_RTP} up to October 2024"),
    ("rtp-llm", "LOG_LEVEL", "DEBUG", f"{_RTP} since October 2024 (5ecde89d6), Logger.h"),
    ("tensorrt-llm", "TLLM_DEBUG_MODE", "1", f"{_TRT} assert.h"),
    ("", "CUDA_LAUNCH_BLOCKING", "1", "CUDA C programming guide"),
)
"""What `gdbext run --check` sets: engine ("" for every one), variable, value, source."""
