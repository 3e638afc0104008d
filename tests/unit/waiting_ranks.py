"""Ranks in every state that the verdict tells apart, by what they do: `locked(1)`, `stopped(2)`, `pinning(3)`."""

from dataclasses import replace

from gdbext.model.communicator import Communicator
from gdbext.model.job import RankSnapshot
from gdbext.model.locks import LockWait, Peer
from gdbext.model.witness import Statement, Witness
from tests.unit.stacks import ENGINE, inside, rank, reducing, stack

LOCKS = ("__lll_lock_wait@libc.so.6", "pthread_mutex_lock@libc.so.6")
READS = ("read@libc.so.6", "receive@engine ipc.cc:9", "main@engine main.cc:9")
MISMATCH = "Detected mismatch between collectives on ranks. Rank 0 is running collective"  # high confidence
XID = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."  # medium
BARRIER = "RuntimeError: Rank 2 failed to pass monitoredBarrier in 1800000 ms"  # medium


def thread(lwp, *frames, **fields):
    return stack(*(frames or (*LOCKS, f"step{lwp}@engine engine.cc:{lwp}", ENGINE[1])), id=str(lwp), lwp=lwp, **fields)


def holds(lwp, owner, kind="mutex", **fields):
    return LockWait(lwp, kind, 0x1000 * lwp, owner, **fields)


def locked(number, *waits, **fields):
    """Two threads that wait for each other, as memory shows it."""
    return rank(number, thread(1, **fields), thread(2, **fields), locks=waits or (holds(1, 2), holds(2, 1)))


def hurried(number):
    """The same, but one of them waits with a time-out: it may give up."""
    return locked(number, holds(1, 2, timed=True), holds(2, 1))


def perhaps_locked(number):
    """Two threads in locks whose holders were not read."""
    return rank(number, thread(1), thread(2))


def gil(number):
    """One thread has the GIL and wants the loader's lock, the other one the other way round."""
    owns = thread(1, "futex_wait@libc.so.6", "pthread_mutex_lock@libc.so.6", "dl_iterate_phdr@libc.so.6", "f@a.py:1")
    wants = ("pthread_cond_timedwait@libc.so.6", "PyEval_RestoreThread@python3", "dl_iterate_phdr@libc.so.6")
    return rank(number, owns, thread(2, *wants))


def both_locks(number):
    """A circle through the GIL and a mutex, as memory shows it."""
    wants = ("pthread_cond_timedwait@libc.so.6", "take_gil@python3", "PyEval_RestoreThread@python3", "hook@ext.so")
    waits = (holds(1, 2), holds(2, 1, "gil"))
    return rank(number, thread(1, *LOCKS, "f@a.py:3"), thread(2, *wants), locks=waits)


def reads(number):
    return rank(number, stack(*READS))


def piped(number, state):
    """It reads a pipe whose other end a program in this state has open."""
    return rank(number, thread(1, *READS), peers=(Peer(1, "pipe:[7]", (880,), (state,), ("tokenizer",)),))


def stopped(number):
    return rank(number, stack(*ENGINE, state="T"))


def lost(number):
    return RankSnapshot(number, (), rank=number, pid=1000 + number, state="lost")


def idle(number):
    return rank(number, stack("dequeue@/v/vllm/distributed/device_communicators/shm_broadcast.py:510"))


def setting_up(number):
    return rank(
        number, stack("poll@libc.so.6", "bootstrapAllGather@libnccl.so.2", "ncclCommInitRank@libnccl.so.2", *ENGINE)
    )


def aborting(number):
    frames = ("futex@libc.so.6", "__pthread_clockjoin_ex@libc.so.6", "??@libnccl.so.2", "ncclCommAbort@libnccl.so.2")
    return rank(number, stack(*frames, *ENGINE))


def pinning(number):
    return inside(number, "cudaMallocHost@libcudart.so.12")


def launching(number, **environment):
    return replace(inside(number, "cudaLaunchKernel@libcudart.so.12"), environment=environment)


def in_driver(number):
    return rank(number, stack("ioctl@libc.so.6", "??@libcuda.so.1", *ENGINE, state="D", wchan="nvidia_ioctl"))


def child(number):
    """Forked while a thread of its parent held what it waits for."""
    return rank(number, thread(7), locks=(holds(7, 99, gone=True, owner_process=5),))


def gathers(number, **fields):
    return reducing(number, name="all_gather", **fields)


def other_comm(number, members=4):
    return reducing(number, comm_hash=0xDEF, members=members)


def going(number):
    """It polls, and its frames changed between two copies."""
    polls = ("sched_yield@libc.so.6", "??@libcuda.so.1", "cudaStreamSynchronize@libcudart.so.12", *ENGINE)
    return rank(number, stack(*polls, still=5, switches=50))


def still(one):
    """It did not run between two copies."""
    return replace(one, threads=tuple(replace(thread, still=0, switches=0) for thread in one.threads))


def counted(one, all_reduce, all_gather=3):
    """With the counts of the one communicator that all ranks are in."""
    counts = {"all_reduce": all_reduce, "all_gather": all_gather, "broadcast": 0}
    fields = {"init_state": "ncclSuccess", "async_error": "ncclSuccess", "moved": False}
    end = Communicator(0x7F00, "a pointer", "DWARF", hash=0xAAAA, rank=one.rank, n_ranks=3, counts=counts, **fields)
    return replace(still(one), communicators=(end,))


def witness(says, process, text="seen"):
    return (Witness("kernel log", "present", "", (Statement(text, says, process),)),)
