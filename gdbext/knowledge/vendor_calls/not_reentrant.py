"""Where a thread stands when no function may be called on it: what it holds is not reentrant, or half done."""

from __future__ import annotations

from typing import NamedTuple


class BusyPlace(NamedTuple):
    """A frame anywhere on a stack. Patterns are matched against the library's file name and the whole function name."""

    reason: str
    source: str
    module: str = ""
    function: str = ""


BUSY_PLACES = (
    BusyPlace(
        "in the CUDA driver or a library above it",
        "driver locks are not recursive: a call from below one waits for itself (stand-in driver, gdb 13.1)",
        module=r"lib(cuda|cudadebugger|cudart|cublas|cublasLt|cudnn\w*|cufft|curand|cusparse|cusolver|cupti|nvrtc|nvJitLink|nvidia-\w+"
        r"|nccl|rccl|nvshmem\w*|amdhip64|hsa-runtime64)\b.*",
    ),
    BusyPlace(
        "in the CUDA driver or a library above it",
        "a runtime that is linked statically is part of another file; internals of it as in libnccl 2.27 and 2.32",
        function=r"(cuda|cublas|cudnn|nccl|cu)[A-Z]\w*|libcudart_static_\w+|__cudart\w+",
    ),
    BusyPlace(
        "allocating memory",
        "malloc/malloc.c of glibc: the arena's lock is not recursive",
        function=r"(_*(GI_+)?(libc_)?|_int_|_mid_|je_+|tc_|mi_)(malloc|free|calloc|realloc|memalign|aligned_alloc|posix_memalign|valloc)"
        r"(_\w+)?|operator (new|delete).*|sysmalloc|systrim\w*|malloc_consolidate"
        r"|unlink_chunk\w*|arena_get2?|tcache_\w+|alloc_perturb",
    ),
    BusyPlace(
        "allocating memory", "their arenas have locks too", module=r"lib(jemalloc|tcmalloc|mimalloc|hoard)\w*\b.*"
    ),
    BusyPlace(
        "in the dynamic loader",
        "elf/dl-open.c of glibc: the loader's lock, which the binding of a first call takes",
        function=r"_dl_(?!start_user$)\w+|_*dl(open|mopen|close|sym|vsym|addr|_iterate_phdr)(_\w+)?",
    ),
    BusyPlace("in a signal handler", "signal-safety(7)", function=r"<signal handler called>|__restore_rt"),
    BusyPlace(
        "initialising something for the first time",
        "pthread_once(3) and guards of local statics: whoever comes second waits",
        function=r"_*pthread_once(_slow)?|(__cxxabiv1::)?__cxa_guard_acquire|std::call_once.*",
    ),
    BusyPlace(
        "ending, throwing or forking",
        "the stack is being unwound, or the process is",
        function=r"_?_?exit(_group)?|__run_exit_handlers|abort|raise|__cxa_(throw|rethrow|finalize)|_Unwind_\w+|std::terminate"
        r"|_*(libc_)?v?fork|__nptl_deallocate_\w+|pthread_exit",
    ),
)
