"""How engines check CUDA calls: what a failed check throws or calls, and what its message looks like (rows)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

_FT = "NVIDIA/FasterTransformer"
_RTP = "alibaba/rtp-llm"
_TM = "InternLM/lmdeploy"
_TRT = "NVIDIA/TensorRT-LLM"
_PT = "pytorch"
_GG = "ggml 0.25.3"


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
    name: str = ""  # register of a C string that names the checking function
    within: str = ""  # a function that calls this one after it was seen itself: no failure of its own


@dataclass(frozen=True)
class CalledRow:
    """A check that is called for every success too: file and line stand in its caller's code, in these registers."""

    function: str
    file: str
    line: str
    source: str
    inner: str = ""  # a file that the failure names instead of the caller's: the check's own


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


MESSAGES: Tuple[MessageRow, ...] = (
    MessageRow(
        "tensorrt-llm",
        "tensorrt_llm::common::check",
        r"\[TensorRT-LLM\]\[ERROR\] (?:CUDA runtime|CUDA driver|CUDA) error in (?P<expression>.*?): (?P<text>.*) "
        r"\((?P<file>[^()\n]+):(?P<line>\d+)\)",
        f"{_TRT} cudaUtils.h",
    ),
    MessageRow(
        "tensorrt-llm",
        "TLLM_CHECK",
        r"\[TensorRT-LLM\]\[ERROR\] (?P<text>Assertion failed: .*) \((?P<file>[^()\n]+):(?P<line>\d+)\)",
        f"{_TRT} assert.h",
    ),
    MessageRow(
        "fastertransformer",
        "fastertransformer::check or syncAndCheck",
        r"\[FT\]\[ERROR\] CUDA runtime error: (?P<text>.*?)\s(?P<file>\S+):(?P<line>\d+)\s*$",
        f"{_FT} cuda_utils.h",
    ),
    MessageRow(
        "turbomind",
        "turbomind::check or syncAndCheck",
        r"\[TM\]\[ERROR\] CUDA runtime error: (?P<text>.*?)\s(?P<file>\S+):(?P<line>\d+)\s*$",
        f"{_TM} up to 0.7.3, cuda_utils.h",
    ),
    MessageRow(
        "rtp-llm",
        "rtp_llm::check or syncAndCheckInDebug",
        r"^\[ERROR\] CUDA runtime error: (?P<text>.*?)\s(?P<file>\S+):(?P<line>\d+)\s*$",
        f"{_RTP} cuda_host_utils.cc",
    ),
    MessageRow(
        "rtp-llm",
        "rtp_llm::ncclCheck",
        r"^\[ERROR\] NCCL error: (?P<text>.*?)\s(?P<file>\S+):(?P<line>\d+)\s*$",
        f"{_RTP} v0.2.0",
        library="ncclResult_t",
    ),
    MessageRow(
        "",
        "myAssert",
        r"\[(?:\w+\]\[)?ERROR\]\s*(?P<text>.*?)\s*Assertion fail: (?P<file>\S+):(?P<line>\d+)",
        f"{_FT}; {_RTP} AssertUtils.cc",
    ),
    MessageRow(
        "torch",
        "C10D_NCCL_CHECK",
        r"NCCL error in: (?P<file>[^\s:]+):(?P<line>\d+), (?P<text>[^\n]*)",
        f"{_PT} NCCLUtils.hpp",
        library="ncclResult_t",
    ),
    MessageRow(
        "torch",
        "c10::cuda::c10_cuda_check_implementation",
        r"^CUDA error: (?P<text>[^\n]*)",
        f"{_PT} CUDAException.h",
    ),
    MessageRow(
        "torch",
        "c10::cuda::CUDACachingAllocator",
        r"^CUDA (?P<text>out of memory)\. ",
        "message of torch.OutOfMemoryError, torch 2.9.1",
        library="cudaError_t",
    ),
    MessageRow(
        "sglang",
        "sglang::host::RuntimeDeviceCheck or CHECK_CUDA",
        r"^Failed at (?P<file>[^\n]+?):(?P<line>\d+): CUDA error: (?P<text>[^\n]*)",
        "sglang 0.5.23, sgl_kernel/utils.h",
    ),
    MessageRow(
        "torch",
        "STD_TORCH_CHECK",
        r"^\w+, (?P<file>[^\s:]+\.(?:cu|cuh|cc|cpp|cxx|h|hpp)):(?P<line>\d+), (?P<text>.*)",
        "torch 2.9.1, headeronly/util/Exception.h (extensions on the stable ABI, vLLM's kernels)",
    ),
    MessageRow(
        "",
        "a check that says file and line first",
        r"(?i)\b(?:cuda|nccl|cublas)\w* (?:runtime |driver )?error:? (?:in |at )?"
        r"\(?(?P<file>[^\s():]+\.\w+)[:(](?P<line>\d+)\)?:? (?P<text>[^\n]*)",
        "DeepSelect's kerutils and FlashInfer in sglang 0.5.23",
    ),
    MessageRow(
        "fastertransformer",
        "ftNcclStreamSynchronize",
        r"NCCL Error : (?P<text>.*)",
        f"{_FT} nccl_utils.cc",
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
    b"CUDA err",
    b"CUDA run",
    b"CUDA driver error",
    b"NCCL err",
    b"NCCL Err",
    b"CUBLAS_STATUS_",
    b"Assertion fail",
    b"enhancement request to PyTorch",
)
"""Texts that stand in every object file with checks of these engines: only its throws are looked at.

Of short messages the beginning: compilers take them apart into constants of 8 bytes."""

NEVER_SEARCHED = (
    r"(lib(c|m|pthread|dl|rt|stdc\+\+|gcc_s|gomp|python[\d.]*|cuda|cudart|cublas\w*|cudnn\w*|nccl|nv\w+|cusparse\w*|"
    r"cusolver\w*|cufft\w*|curand|cupti|torch_cpu|torch_python|c10)|ld-linux[-\w]*)(-[\d.]+)?\.so"
)
"""File names of libraries that hold no engine's check; torch's own checks are met at their functions."""

THROWN: Tuple[str, ...] = (
    "St13runtime_error$",
    "St11logic_error$",
    "St9exception$",
    r"N(17fastertransformer|7rtp_llm|9turbomind|12tensorrt_llm|6sglang4host|4host10PanicError|8kerutils)",
    r"N3c10(?!19NotImplementedError|10ValueError|10IndexError|9TypeError|11LinAlgError)",
)
"""Regular expressions on the start of a typeinfo's name: what a check may throw. Other types cost nothing."""

_TORCH = f"{_PT} Exception.h"
FAIL_FUNCTIONS: Tuple[FailRow, ...] = (
    FailRow("torch", "c10::detail::torchCheckFail", _TORCH, file="rsi", line="rdx", text="rcx", name="rdi"),
    FailRow("torch", "c10::detail::torchInternalAssertFail", _TORCH, file="rsi", line="rdx", text="rcx", name="rdi"),
    FailRow(
        "turbomind",
        "turbomind::ReportCudaError",
        f"{_TM} 0.15 and newer",
        library="cudaError_t",
        code="rdi",
        file="rsi",
        line="rdx",
    ),
    FailRow(
        "turbomind",
        "turbomind::ReportCuDrvError",
        f"{_TM} 0.15 and newer",
        library="CUresult",
        code="rdi",
        file="rsi",
        line="rdx",
    ),
    FailRow("turbomind", "turbomind::core::ReportNullError", f"{_TM} check.cc", file="rdi", line="rsi", text="rdx"),
    FailRow("turbomind", "turbomind::core::CheckErrorStream::Report", f"{_TM} check.cc"),
    FailRow("llama-cpp", "ggml_cuda_error", f"{_GG}, ggml-cuda.cu", file="rdx", line="rcx", text="r8", name="rsi"),
    FailRow("llama-cpp", "ggml_abort", f"{_GG}, ggml.c", file="rdi", line="rsi", text="rdx", within="ggml_cuda_error"),
)

CALLED: Tuple[CalledRow, ...] = (
    CalledRow(
        "c10::cuda::c10_cuda_check_implementation",
        "rsi",
        "rcx",
        f"{_PT} CUDAException.h; libc10_cuda of torch 2.9.1",
        inner="CUDAException.cpp",
    ),
    CalledRow("fastertransformer::check", "rdx", "rcx", f"{_FT} cuda_utils.h"),
    CalledRow("fastertransformer::CheckError", "rdi", "rsi", f"{_RTP} v0.1.13"),
    CalledRow("turbomind::check", "rdx", "rcx", f"{_TM} v0.8.0, cuda_utils"),
    CalledRow("turbomind::syncAndCheck", "rdi", "rsi", f"{_TM} v0.8.0, cuda_utils"),
    CalledRow("rtp_llm::check", "rsi", "rdx", f"{_RTP} cuda_host_utils.cc"),
    CalledRow("rtp_llm::ncclCheck", "rsi", "rdx", f"{_RTP} v0.2.0"),
)

CHECKING = (
    r"\b(?:(?:sync_)?check_cuda_(?:error|value)|(?:TLLM_|TM_|C10_|AT_|KU_|STD_)?CUDA_?CHECK\w*|C10_CUDA_KERNEL_LAUNCH_CHECK"
    r"|CHECK_CUDA\w*|RuntimeDeviceCheck|(?:TLLM_|TM_|TORCH_)?CUBLAS_?CHECK\w*|(?:C10D_)?NCCL_?CHECK\w*)\s*\("
)
"""How a check is spelled in source text (regular expression)."""

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
