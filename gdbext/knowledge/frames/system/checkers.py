"""Tools that watch a program's memory and locks: the sanitizers of LLVM and GCC, and Valgrind's tools."""

CHECKERS = ("text:sanitizer", "text:valgrind", "text:compute-sanitizer")
"""Sources of their stacks. Such a stack shows where an access was, not where a thread stands or died."""

OF_CHECKERS, NOT_OF_CHECKERS = f"(?:{'|'.join(CHECKERS)})$", f"(?!(?:{'|'.join(CHECKERS)})$)"
"""Patterns of sources: these, and all others."""

RUNTIMES = r"lib(?:(?:hw|ub)?[atml]?san|clang_rt)\b|vgpreload_|valgrind"
"""Their libraries, by file name: LLVM compiler-rt, GCC libsanitizer, valgrind coregrind/vg_preloaded.c."""

BELOW_PROGRAM = (
    r"_*interceptor_|__(?:a|t|m|l|hwa|ub)san_|wrap_|operator (?:new|delete)\b"
    r"|(?:c?free|[mc]alloc|realloc\w*|calloc|posix_memalign|aligned_alloc|memalign|munmap)$"
    r"|_*(?:mem|str|wmem|wcs)[a-z]+(?:_chk|_sse\w*|_avx\w*)?$|v?s?n?printf(?:_chk)?$"
    r"|_*(?:libc_|libcpp_|gthread_|glibcxx_)?(?:pthread_|mutex_|rwlock_|cxa_finalize)\w*|std::|__gnu_cxx::|boost::detail::"
)
"""What stands between the program's own function and the reported access: intercepted calls, the C++ library."""

FREES = r"(?:_*interceptor_)?(?:c?free|realloc|munmap|operator delete)\b"
"""What such a stack begins with where the other access was the release of the memory."""

FREED, OTHER_ACCESS = "the memory was freed in ", "the other access was in "
"""How the second stack of a report is told."""

TAKES_LOCK = "takes lock {} while it holds {}"
"""How a pair of locks in ThreadSanitizer's report is told."""
