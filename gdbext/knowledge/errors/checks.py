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
    """A message of a failed check. Groups of `pattern` (searched anywhere): text, file, line, expression, number."""

    engine: str  # name of a profile; "" where several engines say it alike
    check: str  # the function or macro that fails, as people know it
    pattern: str
    source: str
    library: str = ""  # whose error numbers: cudaError_t, ncclResult_t, ...; "" when the text says it


@dataclass(frozen=True)
class FailRow:
    """A function that is called only when a check has failed: a breakpoint on it costs nothing.

    Says which of its arguments they are: by number, "this" counted, or behind the pointer that an argument is ("0+8");
    "" for one that it does not have. `text` is a C string, or a std::string that is passed by reference; `stream` a
    std::ostringstream that the text was written to: then the object that it is a member of lies in the caller's frame,
    and is found there after an abort as well.
    """

    engine: str
    function: str  # as gdb's `break -function` takes it
    source: str
    library: str = ""
    code: str = ""
    file: str = ""
    line: str = ""
    text: str = ""
    stream: str = ""
    said: str = "{}"  # the message that the engine makes of the text
    name: str = ""  # a C string that names the checking function
    within: Tuple[str, ...] = ()  # functions that call this one after they were seen themselves: no failure of its own
    aborts: bool = False  # ends the process itself


@dataclass(frozen=True)
class CalledRow:
    """A check whose message does not name its caller's file and line, or that is not at hand any more: its caller's
    code hands them over as these arguments, by number."""

    function: str
    file: int
    line: int
    source: str
    inner: str = ""  # a file that the failure names instead of the caller's: the check's own


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

PRINTED: Tuple[MessageRow, ...] = (
    MessageRow(
        "turbomind",
        "TM_CHECK",
        r"\[TM\]\[FATAL\] (?P<file>[^\s()]{1,500})\((?P<line>\d+)\): (?P<text>[^\n]*)",
        f"{_TM} 0.8.0 to 0.12.3, core/check.cc",
    ),
    MessageRow(
        "turbomind",
        "TM_CHECK, TM_CUDA_CHECK or TM_LOG_FATAL",
        r"\[TM\]\[FATAL\]\[[\d.:]{1,40}\]\[(?P<file>[^\]\s:]{1,500}):(?P<line>\d+)\] (?P<text>[^\n]*)",
        f"{_TM} 0.13.0 and newer, core/logger.cc",
    ),
    MessageRow(
        "",
        "CHECK of glog",
        r"^F\d{4,8} [\d:.]{1,20} +\d{1,9} (?P<file>[^\s:]{1,500}):(?P<line>\d+)\] "
        r"(?P<text>Check failed: (?:[^\n]*\bcudaSuccess \((?P<number>\d{1,5}) vs)?[^\n]*)",
        "glog 0.7, logging.cc",
    ),
)
"""Messages of checks that print and end the process: they are in logs, never in an exception."""

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
    FailRow("torch", "c10::detail::torchCheckFail", _TORCH, file="1", line="2", text="3", name="0"),
    FailRow("torch", "c10::detail::torchInternalAssertFail", _TORCH, file="1", line="2", text="3", name="0"),
    FailRow(
        "turbomind",
        "turbomind::ReportCudaError",
        f"{_TM} 0.14.0 and newer, cuda_utils.cc",
        library="cudaError_t",
        code="0",
        file="1",
        line="2",
        aborts=True,
    ),
    FailRow(
        "turbomind",
        "turbomind::ReportCuDrvError",
        f"{_TM} 0.14.0 and newer, cuda_utils.cc",
        library="CUresult",
        code="0",
        file="1",
        line="2",
        aborts=True,
    ),
    FailRow(
        "turbomind",
        "turbomind::core::ReportNullError",
        f"{_TM} 0.8.0 and newer, core/check.cc",
        file="0",
        line="1",
        text="2",
        said="'{}' Must be non NULL",
        aborts=True,
    ),
    FailRow(
        "turbomind",
        "turbomind::core::CheckErrorStream::Report",
        f"{_TM} 0.8.0 and newer, core/check.h; file and line are members from 0.13.0 on, and in the text up to there",
        stream="0+0",
        file="0+8",
        line="0+16",
        aborts=True,
    ),
    FailRow(
        "turbomind",
        "turbomind::core::Logger::LogFatalImpl",
        f"{_TM} 0.14.0 and newer, core/logger.cc",
        file="1",
        line="2",
        text="3",
        within=(
            "turbomind::ReportCudaError",
            "turbomind::ReportCuDrvError",
            "turbomind::core::ReportNullError",
            "turbomind::core::CheckErrorStream::Report",
        ),
        aborts=True,
    ),
    FailRow(
        "llama-cpp",
        "ggml_cuda_error",
        f"{_GG}, ggml-cuda.cu",
        file="2",
        line="3",
        text="4",
        name="1",
        aborts=True,
    ),
    FailRow(
        "llama-cpp",
        "ggml_abort",
        f"{_GG}, ggml.c",
        file="0",
        line="1",
        text="2",
        within=("ggml_cuda_error",),
        aborts=True,
    ),
)

CALLED: Tuple[CalledRow, ...] = (
    CalledRow(
        "c10::cuda::c10_cuda_check_implementation",
        1,
        3,
        f"{_PT} CUDAException.h; libc10_cuda of torch 2.9.1",
        inner="CUDAException.cpp",
    ),
    CalledRow("fastertransformer::check", 2, 3, f"{_FT} cuda_utils.h"),
    CalledRow("fastertransformer::CheckError", 0, 1, f"{_RTP} v0.1.13"),
    CalledRow("turbomind::check", 2, 3, f"{_TM} v0.8.0, cuda_utils"),
    CalledRow("turbomind::syncAndCheck", 0, 1, f"{_TM} v0.8.0, cuda_utils"),
    CalledRow("turbomind::ReportCudaError", 1, 2, f"{_TM} 0.14.0 and newer, cuda_utils.cc"),
    CalledRow("turbomind::ReportCuDrvError", 1, 2, f"{_TM} 0.14.0 and newer, cuda_utils.cc"),
    CalledRow("turbomind::core::ReportNullError", 0, 1, f"{_TM} 0.8.0 and newer, core/check.cc"),
    CalledRow("rtp_llm::check", 1, 2, f"{_RTP} cuda_host_utils.cc"),
    CalledRow("rtp_llm::ncclCheck", 1, 2, f"{_RTP} v0.2.0"),
)

CHECKING = (
    r"\b(?:(?:sync_)?check_cuda_(?:error|value)|(?:TLLM_|TM_|C10_|AT_|KU_|STD_)?CUDA_?CHECK\w*|C10_CUDA_KERNEL_LAUNCH_CHECK"
    r"|CHECK_CUDA\w*|RuntimeDeviceCheck|(?:TLLM_|TM_|TORCH_)?CUBLAS_?CHECK\w*|(?:C10D_)?NCCL_?CHECK\w*)\s*\("
)
"""How a check is spelled in source text (regular expression)."""
