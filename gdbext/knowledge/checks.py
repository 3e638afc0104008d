"""How engines check CUDA calls: what a failed check throws or calls, and what its message looks like (rows)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

_FACTS = "facts: engines.md 2"


@dataclass(frozen=True)
class MessageRow:
    """A message of a failed check. Groups of `pattern` (searched anywhere): text, file, line, expression."""

    engine: str  # name of a profile; "" where several engines say it alike
    check: str  # the function or macro that fails, as people know it
    pattern: str
    source: str
    library: str = ""  # whose error numbers: cudaError_t, ncclResult_t, ...; "" when the text says it


@dataclass(frozen=True)
class FailRow:
    """A function that is called only when a check has failed: a breakpoint on it costs nothing.

    The arguments stand in these registers at its first instruction; "" for one that it does not have. `text` is a C
    string, or a std::string that is passed by reference.
    """

    engine: str
    function: str  # as gdb's `break -function` takes it
    source: str
    library: str = ""
    code: str = ""
    file: str = ""
    line: str = ""
    text: str = ""
    string: bool = False  # `text` is a std::string
    name: str = ""  # register of a C string that names the checking function


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
    field: str = ""
    value: int = 0


MESSAGES: Tuple[MessageRow, ...] = (
    MessageRow(
        "tensorrt-llm",
        "tensorrt_llm::common::check",
        r"\[TensorRT-LLM\]\[ERROR\] (?:CUDA runtime|CUDA driver|CUDA) error in (?P<expression>.*?): (?P<text>.*) "
        r"\((?P<file>[^()\n]+):(?P<line>\d+)\)",
        _FACTS + " (TRT cudaUtils.h)",
    ),
    MessageRow(
        "tensorrt-llm",
        "TLLM_CHECK",
        r"\[TensorRT-LLM\]\[ERROR\] (?P<text>Assertion failed: .*) \((?P<file>[^()\n]+):(?P<line>\d+)\)",
        _FACTS + " (TRT assert.h)",
    ),
    MessageRow(
        "fastertransformer",
        "fastertransformer::check or syncAndCheck",
        r"\[FT\]\[ERROR\] CUDA runtime error: (?P<text>.*?)\s(?P<file>\S+):(?P<line>\d+)\s*$",
        _FACTS + " (FT cuda_utils.h)",
    ),
    MessageRow(
        "turbomind",
        "turbomind::check or syncAndCheck",
        r"\[TM\]\[ERROR\] CUDA runtime error: (?P<text>.*?)\s(?P<file>\S+):(?P<line>\d+)\s*$",
        _FACTS + " (TM up to 0.7.3)",
    ),
    MessageRow(
        "rtp-llm",
        "rtp_llm::check or syncAndCheckInDebug",
        r"^\[ERROR\] CUDA runtime error: (?P<text>.*?)\s(?P<file>\S+):(?P<line>\d+)\s*$",
        _FACTS + " (RTP cuda_host_utils.cc)",
    ),
    MessageRow(
        "rtp-llm",
        "rtp_llm::ncclCheck",
        r"^\[ERROR\] NCCL error: (?P<text>.*?)\s(?P<file>\S+):(?P<line>\d+)\s*$",
        _FACTS + " (RTP v0.2.0)",
        library="ncclResult_t",
    ),
    MessageRow(
        "",
        "myAssert",
        r"\[(?:\w+\]\[)?ERROR\]\s*(?P<text>.*?)\s*Assertion fail: (?P<file>\S+):(?P<line>\d+)",
        _FACTS + " (FT, RTP AssertUtils.cc)",
    ),
    MessageRow(
        "torch",
        "C10D_NCCL_CHECK",
        r"NCCL error in: (?P<file>[^\s:]+):(?P<line>\d+), (?P<text>[^\n]*)",
        _FACTS + " (PT NCCLUtils.hpp)",
        library="ncclResult_t",
    ),
    MessageRow(
        "torch",
        "c10::cuda::c10_cuda_check_implementation",
        r"^CUDA error: (?P<text>[^\n]*)",
        _FACTS + " (PT CUDAException.h)",
    ),
    MessageRow(
        "fastertransformer",
        "ftNcclStreamSynchronize",
        r"NCCL Error : (?P<text>.*)",
        _FACTS + " (FT nccl_utils.cc)",
        library="ncclResult_t",
    ),
    MessageRow(
        "",
        "a check that is not in the table",
        r"(?i)\b(?P<text>(?:cuda|cublas|cublaslt|cudnn|nccl|cutlass)\w*\b.{0,40}\b(?:error|fail(?:ed|ure)?|status)\b.*?)"
        r"(?:[\s(]+(?P<file>[^\s():]+\.(?:cu|cuh|cc|cpp|cxx|h|hpp)):(?P<line>\d+)\)?)?\s*$",
        "engines' forks spell it their own way",
    ),
)
"""Exceptions with another message are no failed check and go on."""

MARKS: Tuple[bytes, ...] = (
    b"CUDA runtime error",
    b"CUDA error",
    b"CUDA driver error",
    b"NCCL error",
    b"NCCL Error",
    b"CUBLAS_STATUS_",
    b"Assertion fail",
)
"""Texts that stand in every object file with checks of these engines: only its throws are looked at."""

NEVER_SEARCHED = (
    r"(lib(c|m|pthread|dl|rt|stdc\+\+|gcc_s|gomp|python[\d.]*|cuda|cudart|cublas\w*|cudnn\w*|nccl|nv\w+|cusparse\w*|"
    r"cusolver\w*|cufft\w*|curand|cupti|torch_cpu|torch_python|c10)|ld-linux[-\w]*)(-[\d.]+)?\.so"
)
"""File names of libraries that hold no engine's check; torch's own checks are met at their functions."""

THROWN: Tuple[str, ...] = (
    "St13runtime_error$",
    "St11logic_error$",
    "St9exception$",
    r"N(17fastertransformer|7rtp_llm|9turbomind|12tensorrt_llm|3c10)",
)
"""Regular expressions on the start of a typeinfo's name: what a check may throw. Other types cost nothing."""

_TORCH = _FACTS + " (PT Exception.h)"
FAIL_FUNCTIONS: Tuple[FailRow, ...] = (
    FailRow("torch", "c10::detail::torchCheckFail", _TORCH, file="rsi", line="rdx", text="rcx", name="rdi"),
    FailRow("torch", "c10::detail::torchInternalAssertFail", _TORCH, file="rsi", line="rdx", text="rcx", name="rdi"),
    FailRow(
        "turbomind",
        "turbomind::ReportCudaError",
        _FACTS + " (TM 0.15 and newer)",
        library="cudaError_t",
        code="rdi",
        file="rsi",
        line="rdx",
    ),
    FailRow(
        "turbomind",
        "turbomind::ReportCuDrvError",
        _FACTS + " (TM 0.15 and newer)",
        library="CUresult",
        code="rdi",
        file="rsi",
        line="rdx",
    ),
    FailRow("turbomind", "turbomind::core::ReportNullError", _FACTS, file="rdi", line="rsi", text="rdx"),
    FailRow("turbomind", "turbomind::core::CheckErrorStream::Report", _FACTS + " (TM check.cc)"),
    FailRow("llama-cpp", "ggml_cuda_error", _FACTS + " (GG)", file="rdx", line="rcx", text="r8", name="rsi"),
    FailRow("llama-cpp", "ggml_abort", _FACTS + " (GG)", file="rdi", line="rsi", text="rdx"),
)

_OLD = "facts: engines.md 2.1 (statics of syncAndCheck; measured with g++)"


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
        _OLD,
        *_statics("17fastertransformer"),
    ),
    SwitchRow("turbomind", "turbomind::syncAndCheck", "TM_DEBUG_LEVEL=DEBUG", _OLD, *_statics("9turbomind")),
    SwitchRow(
        "rtp-llm",
        "rtp_llm::syncAndCheckInDebug",
        "LOG_LEVEL=DEBUG",
        "facts: engines.md 2.1 (RTP since October 2024; Logger.h)",
        logger="_ZZN7rtp_llm6Logger15getEngineLoggerEvE14engine_logger_",
        field="base_log_level_",
        value=5,
    ),
)

STARTING: Tuple[Tuple[str, str, str, str], ...] = (
    ("fastertransformer", "FT_DEBUG_LEVEL", "DEBUG", _FACTS),
    ("turbomind", "TM_DEBUG_LEVEL", "DEBUG", _FACTS),
    ("turbomind", "FT_DEBUG_LEVEL", "DEBUG", _FACTS + " (up to 0.0.14)"),
    ("rtp-llm", "FT_DEBUG_LEVEL", "DEBUG", _FACTS + " (up to October 2024)"),
    ("rtp-llm", "LOG_LEVEL", "DEBUG", _FACTS),
    ("tensorrt-llm", "TLLM_DEBUG_MODE", "1", _FACTS),
    ("", "CUDA_LAUNCH_BLOCKING", "1", "CUDA C programming guide; facts: cuda.md 6"),
)
"""What `gdbext run --check` sets: engine ("" for every one), variable, value, source."""
