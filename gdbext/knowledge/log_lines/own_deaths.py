"""Lines that say of what their own process died: its cause is in the process itself, and no other rank is to blame.

They count where that process is seen to be dead, or where nothing but lines was read; any other cause goes before them.
"""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.log_lines.writers import FATAL_OF_UCX
from gdbext.knowledge.row_kinds import LogRule

_OF_PEERS = (
    r"(?!.{0,400}(?:[Tt]ime[ds]?[ _-]?out|TIMEOUT|[Cc]onnect|[Cc]losed|[Pp]eer|[Ss]ocket|NCCL|[Rr]endezvous|fork))"
)


def _row(id: str, pattern: str, means: str, source: str, cause: str = "other") -> LogRule:
    return LogRule(id, pattern, means, source, cause=cause, wait="exited-or-crashed", own=True)


def _seen(id: str, pattern: str, means: str, source: str) -> LogRule:
    """What a checker reports of a program that mostly goes on."""
    return LogRule(id, pattern, means, source, cause="other", own=True)


RULES: Tuple[LogRule, ...] = (
    _row(
        "stream-locked-at-its-end",
        r"could not acquire lock for .{1,120} at interpreter shutdown",
        "when Python shut down, a daemon thread still held the stream's lock; daemon threads no longer run at that "
        "point, so the lock is never released",
        "CPython bufferedio.c, _enter_buffered_busy",
        "destructor-or-teardown",
    ),
    _row(
        "joined-itself",
        r"^RuntimeError: cannot join current thread",
        "a thread tried to wait for its own end, mostly because a destructor or an exit handler ran in that thread",
        "CPython threading.py, Thread.join",
        "destructor-or-teardown",
    ),
    _row(
        "died-at-its-end",
        r"can't create new thread at interpreter shutdown|cannot schedule new futures after interpreter shutdown"
        r"|\bdriver shutting down\b|ErrorCudartUnloading\b|CUDA_ERROR_DEINITIALIZED\b",
        "a call failed because the process, or the object that it was made on, was being torn down",
        "CPython threading.py, concurrent/futures/thread.py; CUDA runtime API, error code 4",
        "destructor-or-teardown",
    ),
    _row(
        "no-memory-left",
        r"\bOutOfMemory(?:Error|Exception)\b|\b(?:CUDA|HIP|NPU|XPU|MUSA|GPU|MPS)\b.{0,80}\bout of memory\b"
        r"|_OUT_OF_(?:DEVICE_|HOST_)?MEMORY\b|Error(?:OutOfMemory|MemoryAllocation)\b|std::bad_alloc|\bMemoryError\b"
        r"|RESOURCE_EXHAUSTED: |ResourceExhaustedError|CUBLAS_STATUS_ALLOC_FAILED|heap out of memory"
        r"|Cuda failure .{0,8}'out of memory'|\b(?:Not enough|Insufficient|not enough) (?:GPU )?[Mm]emory\b"
        r"|\b[Cc]ould not allocate memory|\b(?:mremap|mmap|malloc)\(.{0,120}\) failed: Cannot allocate memory"
        r"|memory allocation of \d{1,20} bytes failed|(?:ailed|nable|annot) to allocate .{0,60}(?:memory|bytes|buffer"
        r"|[KMG]i?B\b)|^(?:runtime: |fatal error: )out of memory"
        r"|\bFaiss assertion .{0,20}cudaSuccess.{0,8} failed in .{0,100}(?:::getAlloc|::alloc\w*|cudaMalloc)\(",
        "a memory allocation failed",
        "CUDA, HIP, CANN; torch CUDACachingAllocator.cpp; XLA; CPython; Rust alloc.rs; Go malloc.go; ggml; Faiss",
    ),
    _row(
        "gpu-memory-taken",
        r"Free memory on device \S{1,40} \([\d.]{1,12}/[\d.]{1,12} GiB\) on startup is less than desired GPU memory "
        r"utilization(?: \([^()]{1,60}\))?",
        "something else already held memory of that GPU, so what was left is less than vLLM's "
        "--gpu-memory-utilization asks for",
        "vLLM v1/worker/utils.py, gpu_worker.py",
    ),
    _row(
        "no-device-context",
        r"UCX {1,4}(?:ERROR|FATAL) .{0,20}\bcu[A-Z]\w{2,60}\(.{0,200}invalid device context"
        r"|CUDA_ERROR_INVALID_CONTEXT\b|\bErrorDeviceUninitialized\b",
        "a thread called the CUDA driver without a valid CUDA context",
        "UCX cuda_iface.h; CUDA driver API, error code 201",
    ),
    _row(
        "failed-assertion",
        r"\|CCL_ERROR\| .{1,200}\bcondition .{1,200} failed"
        r"|Assertion [`'\"(].{1,300}['`\")] ?failed|\w*(?:ASSERT|CHECK|ENFORCE|REQUIRE)\w*\(.{1,300}\) ?failed"
        r"|^(?:.{0,200}\] )?Check failed: |\bAssertion fail(?:ed|ure)?: |Fatal error condition occurred in "
        r"|\bRET_CHECK failure|INTERNAL ASSERT FAILED"
        r"|\bEnforceNotMet\b|^(?:.{0,120}: )?Assertion failed\b"
        r"|\bFaiss assertion (?!.{0,20}(?:cudaSuccess|ncclSuccess)).{1,200} failed in ",
        "an internal assertion failed",
        "glibc assert.c; glog; oneCCL exception.hpp; ggml.h; torch Exception.h; Paddle enforce.h; Faiss FaissAssert.h",
    ),
    _row(
        "fatal-of-ucx",
        FATAL_OF_UCX + r"(?!.{0,200}(?:ndpoint|imeout|imed out|ransport|nreachable))",
        "UCX ended the process on purpose",
        "UCX log.h, ucs_fatal",
    ),
    _row("failed-assert-of-python", r"^AssertionError\b", "a Python assert failed", "CPython"),
    _row(
        "heap-reported",
        r"(?:Address|Thread|HWAddress)Sanitizer: (?!data race|lock-order|thread leak|DEADLYSIGNAL|signal)[a-z]"
        r"|^==\d{1,9}== (?:Invalid (?:read|write) of size|Invalid free|Jump to the invalid)"
        r"|^\s{0,8}(?:READ|WRITE) of size \d{1,12} at 0x[0-9a-f]",
        "the process accessed or freed memory that it did not own (any more)",
        "LLVM compiler-rt; valgrind mc_errors.c",
    ),
    _row(
        "heap-broken",
        r"\bdouble free\b|(?:free|alloc)\(\): [a-z]|munmap_chunk\(\): |\bcorrupted (?:size vs|double-linked)"
        r"|(?:stack smashing|buffer overflow) detected|\bstack[ -]overflow\b|\bStackOverflowError\b",
        "the process accessed memory that it did not own, or damaged its heap",
        "glibc malloc.c, fortify_fail.c",
    ),
    _seen(
        "data-race",
        r"ThreadSanitizer: data race\b|^(?:==\d{1,9}== )?Possible data race during "
        r"|Conflicting (?:load|store) by thread ",
        "two threads access the same memory without synchronization, and at least one of them writes (a data race)",
        "LLVM tsan; Valgrind's Helgrind and DRD",
    ),
    _seen(
        "uninitialised-value",
        r"MemorySanitizer: use-of-uninitialized-value|^==\d{1,9}== (?:Conditional jump or move depends on uninitialised"
        r"|Use of uninitialised value of size)",
        "the program used a value that was never written",
        "LLVM msan; Valgrind's Memcheck",
    ),
    _seen(
        "undefined-behaviour",
        r"^\S{1,300}:\d{1,7}:\d{1,5}: runtime error: |UndefinedBehaviorSanitizer: (?!SEGV)[a-z]",
        "the program does something that its language leaves undefined",
        "LLVM ubsan",
    ),
    _seen(
        "memory-leaked",
        r"LeakSanitizer: detected memory leaks"
        r"|^==\d{1,9}== {1,4}[\d,]{1,20} bytes in [\d,]{1,20} blocks are definitely lost",
        "memory was never freed; leaks are reported when the program ends, and are not why it ends",
        "LLVM lsan; Valgrind's Memcheck",
    ),
    _row(
        "rust-panicked",
        r"thread '[^']{0,80}' (?:\(\d{1,9}\) )?panicked at ",
        "a panic ends its thread, and the whole process if that is the main thread",
        "Rust panicking.rs",
    ),
    _row(
        "ended-by-fortran",
        r"^forrtl: (?:severe|error) \(\d|^Fortran runtime error: |^Error termination\. Backtrace:",
        "the Fortran runtime ended the program",
        "Intel Fortran run-time errors; libgfortran runtime/error.c",
    ),
    _row(
        "uncaught-in-cpp",
        r"terminate called after throwing an instance of '(?!c10::(?:Dist|Accel|CUDA))"
        r"|terminating (?:due to|with) uncaught exception",
        "an uncaught exception ended the process",
        "libstdc++, libc++abi",
    ),
    _row(
        "ended-by-its-runtime",
        r"^panic: |^fatal error: (?:concurrent map|stack overflow)"
        r"|terminating app due to uncaught exception|^Exception in thread \"[^\"]{1,80}\" [a-z]" + _OF_PEERS + r""
        r"|^Unhandled exception\. System\." + _OF_PEERS,
        "an uncaught exception ended the process",
        "Go runtime/panic.go; OpenJDK; CoreCLR",
    ),
    _row(
        "not-made-for-this-host",
        r"no kernel image is available|Error(?:NoBinaryForGpu|NoKernelImage|InsufficientDriver|InvalidDeviceFunction)"
        r"|driver version is insufficient|no CUDA-capable device|symbol lookup error: "
        r"|error while loading shared libraries: |(?:Import|OS)Error: .{0,300}(?:undefined symbol|shared object)"
        r"|Torch not compiled with|version [`']\w{2,40}_[\d.]{1,12}' not found"
        r"|invalid device ordinal|Driver/library version mismatch|system not yet initialized|SystemNotReady\b"
        r"|SYSTEM_NOT_READY\b|Failed to initialize the HCCP process"
        r"|not enough slots available in the system",
        "the program does not fit the device, the driver or the libraries of the host, or the host is not ready for it",
        "CUDA runtime API; NVML; ld.so; torch/cuda/__init__.py; CANN error code EJ0001; Open MPI help-prte-rmaps",
    ),
    _row(
        "mpi-not-started",
        r"(?:[\w:()][\w:() .-]{2,80} failed +)?--> Returned (?!.{0,120}(?:nreach|onnect|ime[d ]{0,2}out|imeout))"
        r".{1,200} instead of \"?(?:[A-Z]{3,5}_)?S(?:UCCESS|uccess)\b",
        "Open MPI could not start in this process: the call named first failed, and the words in it say why",
        "Open MPI help-mpi-runtime.txt, help-orte-runtime.txt, help-opal-runtime.txt",
    ),
    _row(
        "loader-worker-died",
        r"DataLoader worker \(pids?(?:\(s\))? [\d, ]{1,200}\) exited unexpectedly",
        "a DataLoader worker process ended",
        "torch/utils/data/dataloader.py",
    ),
    _row(
        "port-in-use",
        r"[Aa]ddress already in use(?!.{0,60}(?:\b[Tt]rying|\b[Rr]etry|next port|another port))",
        "the port is in use: an earlier run or another program listens on it",
        "bind(2), EADDRINUSE",
    ),
    _row(
        "programming-error",
        r"^(?:Value|Type|Key|Index|Attribute|Name|UnboundLocal|Import|ModuleNotFound|FileNotFound|Permission"
        r"|NotImplemented|ZeroDivision|Recursion|Overflow|Unicode\w{6}|Syntax|JSONDecode|Pickling)Error: "
        + _OF_PEERS
        + r""
        r"|RuntimeError: (?:The (?:expanded )?size of |mat1 and mat2 |Expected all tensors |Sizes of tensors "
        r"|Error\(s\) in loading state_dict|[Ee]xpected scalar type )",
        "the program raised an error of its own",
        "CPython exceptions",
    ),
)
