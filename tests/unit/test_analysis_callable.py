"""Threads that may be disturbed by a call, and those that may not."""

import pytest

from gdbext.analysis.stacks.safe_to_call import obstacle, processor_obstacle, restart_obstacle
from gdbext.model.stack import Frame, ThreadStack


def thread(*frames, truncated=None):
    """Frames as "function@library", innermost first; "?" for code without a name."""
    split = [frame.split("@") for frame in frames]
    named = tuple(Frame(None if name == "?" else name, module=f"/usr/lib/{library}") for name, library in split)
    return ThreadStack("1", named, truncated=truncated)


@pytest.mark.parametrize(
    "frames, words",
    [
        (["?@libcuda.so.1", "cudaMallocHost@libcudart.so.12", "main@engine"], "CUDA driver"),
        (["__poll@libc.so.6", "?@libcuda.so.535.261.03", "start_thread@libc.so.6"], "CUDA driver"),
        (["user_callback@engine", "?@libcuda.so.1", "start_thread@libc.so.6"], "CUDA driver"),
        (["pthread_cond_wait@libc.so.6", "ncclProxyProgress@libnccl.so.2"], "CUDA driver"),
        (["poll@libc.so.6", "libcudart_static_5c1f0b94@engine", "main@engine"], "CUDA driver"),
        (["cudaStreamSynchronize@engine", "main@engine"], "CUDA driver"),
        (["__lll_lock_wait_private@libc.so.6", "_int_malloc@libc.so.6", "malloc@libc.so.6"], "allocating"),
        (["madvise@libc.so.6", "?@libjemalloc.so.2", "main@engine"], "allocating"),
        (["operator new(unsigned long)@libstdc++.so.6", "main@engine"], "allocating"),
        (["mmap64@libc.so.6", "_dl_map_object@ld-linux-x86-64.so.2", "dlopen@libc.so.6"], "dynamic loader"),
        (["write@libc.so.6", "handler@engine", "<signal handler called>@engine", "main@engine"], "signal handler"),
        (["_Unwind_RaiseException@libgcc_s.so.1", "__cxa_throw@libstdc++.so.6", "main@engine"], "throwing"),
        ([], "not readable"),
    ],
)
def test_places_where_nothing_may_be_called(frames, words):
    assert words in obstacle(thread(*frames))


@pytest.mark.parametrize(
    "frames",
    [
        ["main@engine", "__libc_start_main@libc.so.6", "_start@ld-linux-x86-64.so.2"],
        ["read@libc.so.6", "fgets@libc.so.6", "main@engine"],
        ["__futex_abstimed_wait@libc.so.6", "pthread_cond_wait@libc.so.6", "cutlassLike::Pool::run@engine", "?@engine"],
        ["mallocator::Pool::take@engine", "freeze@engine", "cudnnless_thing@engine"],
    ],
)
def test_places_where_one_may(frames):
    assert obstacle(thread(*frames)) is None


def test_a_stack_that_could_not_be_read_to_its_end():
    assert "in part only (limit of 256 frames)" in obstacle(thread("main@engine", truncated="limit of 256 frames"))


def test_system_calls():
    assert "cannot be begun again" in restart_obstacle(7, -516)  # poll
    assert restart_obstacle(0, -512) is None  # read
    assert restart_obstacle(-1, -516) is None  # a number of the program's own


@pytest.mark.parametrize(
    "release, flags, named",
    [
        ("GNU gdb (Debian 13.1-3) 13.1", "fpu amx_bf16 amx_tile avx", True),
        ("12.1", "amx_tile", True),
        ("13.1", "fpu avx512f", False),
        ("16.3", "amx_tile", False),
        ("a version of its own", "amx_tile", False),
    ],
)
def test_old_gdbs_cannot_write_the_registers_of_a_processor_with_amx(release, flags, named):
    cpuinfo = f"processor\t: 0\nmodel name\t: x\nflags\t\t: {flags}\nbugs\t\t: none\n"
    problem = processor_obstacle(release, cpuinfo)
    assert (problem is not None) == named and (not named or "AMX" in problem)
