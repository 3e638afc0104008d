"""Checks that failed: what stands on a stack only while an error of CUDA is thrown, or a process ends itself."""

from typing import Tuple

from gdbext.knowledge.frame_precedence import FATAL, LOCK, STEP
from gdbext.knowledge.row_kinds import FrameRule

OWN_CHECKS = (
    r"(?:__assert_(?:fail|rtn|perror_fail)\w*|__GI___assert_fail|abort_message|malloc_printerr|__libc_(?:message|fatal)\w*"
    r"|__fortify_fail\w*|__stack_chk_fail\w*|_?Py_FatalError\w*|_PyObject_AssertFailed|_Py_NegativeRefcount"
    r"|core::panicking::.*|std::panicking::.*|rust_panic\w*|ggml_abort|google::LogMessage(?:Fatal)?::.*"
    r"|(?:absl::.*::|tsl::internal::|tensorflow::internal::|ray::)(?:LogMessageFatal|RayLog)::.*|abort_with_payload)"
)
"""What is called to end a process whose own state is found wrong: the C library, CPython, Rust, ggml, glog, abseil."""

DEVICE_CHECKS = r"(?:.*[:_])?(?:[Cc]uda|CUDA|hip|nccl|NCCL)\w*(?:[Ee]rr|[Cc]heck|CHECK)\w*"
"""Who checks calls of the device or of collectives: what failed there may be anything."""

RULES: Tuple[FrameRule, ...] = (
    FrameRule(
        "ft-check",
        "cuda-error-throw",
        r"(fastertransformer|turbomind|rtp_llm|tensorrt_llm(::_v1)?::common)::check(Ex|_cuda_error)?(<.*>)?$",
        "check_cuda_error: on a stack for longer than a call only while it throws",
        rank=LOCK,
        leaf=True,
    ),
    FrameRule(
        "engine-throw",
        "cuda-error-throw",
        r"(turbomind::Report(CudaError|CuDrvError)|rtp_llm::ncclCheck|ggml_cuda_error|ggml_abort"
        r"|c10::cuda::CUDAKernelLaunchRegistry::snapshot)",
        "called on failure only",
        rank=STEP + 50,
    ),
    FrameRule(
        "engine-assert",
        "exited-or-crashed",
        r"((fastertransformer|turbomind|rtp_llm|tensorrt_llm(::_v1)?::common)::(throwRuntimeError|myAssert)"
        r"|turbomind::core::(CheckErrorStream::(Report|~CheckErrorStream)|ReportNullError|Logger::LogFatal\w*))$",
        "assertions of the engines: called on failure only, and not of CUDA's errors alone",
        rank=STEP + 49,
    ),
    FrameRule(
        "check-aborted",
        "cuda-error-throw",
        r"(abort|__GI_abort|raise|__GI_raise|gsignal|pthread_kill|__pthread_kill_implementation|std::terminate"
        r"|__cxa_throw|_Unwind_RaiseException)$",
        "an uncaught exception of a CUDA error check",
        rank=FATAL + 1,
        under=r"((fastertransformer|turbomind|rtp_llm|tensorrt_llm(::_v1)?::common)::(check(Ex|_cuda_error)?|syncAndCheck\w*"
        r"|CheckError|ncclCheck)(<.*>)?$|turbomind::Report(CudaError|CuDrvError)$|ggml_cuda_error$"
        r"|c10::cuda::c10_cuda_check_implementation)",
    ),
    FrameRule(
        "cuda-check-fail",
        "cuda-error-throw",
        r"c10::(detail::torchCheckFail|AcceleratorError|DistBackendError)",
        "torch Exception.h",
        rank=STEP + 50,
        under=r"c10::cuda::c10_cuda_check_implementation|c10d::",
    ),
)
