"""The order in which stacks are copied, and what is said of those that time or room did not reach."""

from array import array

import pytest

from gdbext.capture.copies.stack_bytes import FIRST, StackCopier
from gdbext.capture.machine import ARCHITECTURES
from gdbext.capture.memory.maps import Mapping, MemoryMap
from gdbext.knowledge.runtimes.telling_libraries import WAITING

ROW = ARCHITECTURES[0]
MAIN, THREADS, STACK = 1000, 600, 8192
FILES = ("/opt/cuda/libcuda.so.550", "/lib/libc.so.6", "/usr/lib/libnccl.so.2", "/usr/lib/libgomp.so.1.0", "[vdso]")
CODE = {path: 0x10000 * (number + 1) for number, path in enumerate(FILES)}


def memory_map(threads):
    code = [Mapping(at, at + 0x1000, "r-xp", 0, "08:01", 5, path) for path, at in CODE.items()]
    stacks = [Mapping(base(tid), base(tid) + STACK, "rw-p", 0, "0:0", 0, "") for tid in threads]
    return MemoryMap(code + stacks)


def base(tid):
    return 0x7F0000000000 + tid * 2 * STACK


def registers(tid, path):
    words = [0] * ROW.registers
    words[ROW.sp], words[ROW.pc], words[ROW.thread_pointer] = base(tid), CODE.get(path, 0xDEAD), base(tid)
    return words


class Room:
    """Takes so many pieces."""

    def __init__(self, pieces):
        self.left, self.order = pieces, []

    def copy(self, pid, ranges, deadline):
        got = ranges[: self.left]
        self.left -= len(got)
        self.order += [address for address, _ in got]
        return [size for _, size in got]

    def words(self, address, limit):
        return array("Q")


def copied(pieces, threads=THREADS):
    tids = [*range(MAIN + 1, MAIN + threads), MAIN]  # the main thread comes last
    where = {tid: FILES[tid % len(FILES)] for tid in tids}
    where[MAIN] = "/lib/libc.so.6"
    room = Room(pieces)
    copier = StackCopier(MAIN, memory_map(tids), 0, ROW, room, 4 << 20)
    copier.copy({tid: registers(tid, where[tid]) for tid in tids}, 0.0)
    reached = {(address - 0x7F0000000000) // (2 * STACK) for address in room.order}
    return copier, where, reached


def test_main_and_the_threads_in_cuda_and_nccl_come_first_when_time_is_short():
    telling = THREADS * 2 // 5
    _, where, reached = copied(100)
    assert MAIN in reached and len(reached) == 100
    assert all(where[tid] in (FILES[0], FILES[2]) for tid in reached - {MAIN})
    _, where, reached = copied(1 + telling + 50)
    assert {tid for tid, path in where.items() if path in (FILES[0], FILES[2])} <= reached


def test_what_was_not_reached_is_marked_and_the_rest_is_not():
    copier, where, reached = copied(100)
    marked = {tid for tid in where if copier.truncated(tid)}
    assert marked == set(where) - reached
    assert copier.truncated(min(marked)) == f"{STACK} of {STACK} bytes of its stack were not copied (budget)"


@pytest.mark.parametrize("threads", [1, 40, THREADS])
def test_nobody_is_forgotten(threads):
    copier, where, reached = copied(10 * THREADS, threads)
    assert reached == set(where)
    assert not any(copier.truncated(tid) for tid in where)
    assert FIRST > STACK


def test_whose_threads_wait():
    waiting = (
        "libc.so.6 libc-2.31.so libpthread-2.31.so libgomp.so.1 libgomp-a34b3233.so.1.0.0 ld-linux-x86-64.so.2 [vdso]"
    )
    assert all(WAITING.match(name) for name in waiting.split())
    working = (
        "libcuda.so.1 libcudart.so.12 libcublas.so libnccl.so.2 libcollectives.so libgompx.so python3.11 libmpi.so"
    )
    assert not any(WAITING.match(name) for name in working.split())


def test_code_that_is_in_no_file_comes_before_what_waits():
    tids = list(range(MAIN + 1, MAIN + THREADS))
    odd = tids[-1]
    room = Room(1)
    copier = StackCopier(MAIN, memory_map(tids), 0, ROW, room, 4 << 20)
    copier.copy({tid: registers(tid, "nowhere" if tid == odd else "/lib/libc.so.6") for tid in tids}, 0.0)
    assert room.order == [base(odd) & ~15]
