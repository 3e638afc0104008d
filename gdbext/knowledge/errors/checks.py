"""How engines check CUDA calls: what a failed check throws or calls, its message, and what switches checks on (rows).

The rows of one engine stand in its folder, before those that any engine may have.
"""

from typing import Tuple

from gdbext.knowledge.engines.engine_list import rows
from gdbext.knowledge.engines.engine_row_kinds import CalledRow, DebugCheckRow, FailRow, MessageRow, SwitchRow

MESSAGES: Tuple[MessageRow, ...] = (
    *rows("checks", "MESSAGES"),
    MessageRow(
        "",
        "myAssert",
        r"\[(?:\w+\]\[)?ERROR\]\s*(?P<text>.*?)\s*Assertion fail: (?P<file>\S+):(?P<line>\d+)",
        "NVIDIA/FasterTransformer; alibaba/rtp-llm AssertUtils.cc",
    ),
    MessageRow(
        "",
        "a check that says file and line first",
        r"(?i)\b(?:cuda|nccl|cublas)\w* (?:runtime |driver )?error:? (?:in |at )?"
        r"\(?(?P<file>[^\s():]+\.\w+)[:(](?P<line>\d+)\)?:? (?P<text>[^\n]*)",
        "DeepSelect's kerutils and FlashInfer in sglang 0.5.23",
    ),
    MessageRow(
        "",
        "a check that is not in the table",
        r"(?i)\b(?P<text>(?:cuda|cublas|cublaslt|cudnn|nccl|cutlass)\w*\b.{0,40}\b(?:error|fail(?:ed|ure)?|status)\b.*?)"
        r"(?:[\s(]+(?P<file>[^\s():]+\.(?:cu|cuh|cc|cpp|cxx|h|hpp)):(?P<line>\d+)\)?)?\s*$",
        "engines' forks spell it their own way",
    ),
)
"""The first that fits counts, hence the widest last. Exceptions with another message are no failed check and go on."""

PRINTED: Tuple[MessageRow, ...] = (
    *rows("checks", "PRINTED"),
    MessageRow(
        "",
        "CHECK of glog",
        r"^F\d{4,8} [\d:.]{1,20} +\d{1,9} (?P<file>[^\s:]{1,500}):(?P<line>\d+)\] "
        r"(?P<text>Check failed: (?:[^\n]*\bcudaSuccess \((?P<number>\d{1,5}) vs)?[^\n]*)",
        "glog 0.7, logging.cc",
    ),
)
"""Messages of checks that print and end the process: they are in logs, never in an exception."""

DEVICE_ASSERT, KERNEL_ASSERT = (
    710,
    (r"(?:(?P<file>[^\s:]{1,300}):(?P<line>\d{1,7}): .{0,400})?\bAssertion [`'](?P<condition>.{1,300})['`] failed"),
)
"""The error of an assert in a kernel, as CUDA and HIP number it, and the line that the device prints of it."""

WATCHDOG_ENDED = r"watchdog thread (?:terminated|abort)"
"""torch's watchdog ends with an error that it saw: it asks for the state of what other threads have launched."""

NAMES_OF_ERRORS = r"(?:cuda|hip)Error[A-Z]\w{1,80}\Z|CUDA_ERROR_\w{1,80}\Z"
"""Enumerators of calls that failed, as debuggers print arguments: driver_types.h, cuda.h, hip_runtime_api.h."""

POLLED = r"c10d::ProcessGroup\w+::(?:Work\w+::(?:finishedGPUExecution\w*|isCompleted|startedGPUExecution\w*))"
"""Functions with which torch asks whether work of a collective is done: an error found there is of earlier GPU work."""

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

FAIL_FUNCTIONS: Tuple[FailRow, ...] = rows("checks", "FAIL_FUNCTIONS")

CALLED: Tuple[CalledRow, ...] = rows("checks", "CALLED")

SWITCHES: Tuple[SwitchRow, ...] = rows("checks", "SWITCHES")
"""What switches a check on in a running process."""

STARTING: Tuple[Tuple[str, str, str, str], ...] = (
    *rows("checks", "STARTING"),
    ("", "CUDA_LAUNCH_BLOCKING", "1", "CUDA C programming guide"),
)
"""What `gdbext run --check` sets: engine ("" for every one), variable, value, source."""

DEBUG_CHECKS: Tuple[DebugCheckRow, ...] = rows("checks", "DEBUG_CHECKS")
"""Checks that wait for each kernel, or look closer, when a variable said so at start."""

CHECKING = (
    r"\b(?:(?:sync_)?check_cuda_(?:error|value)|(?:TLLM_|TM_|C10_|AT_|KU_|STD_)?CUDA_?CHECK\w*|C10_CUDA_KERNEL_LAUNCH_CHECK"
    r"|CHECK_CUDA\w*|RuntimeDeviceCheck|(?:TLLM_|TM_|TORCH_)?CUBLAS_?CHECK\w*|(?:C10D_)?NCCL_?CHECK\w*)\s*\("
)
"""How a check is spelled in source text (regular expression)."""
