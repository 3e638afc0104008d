"""Looks that together reach every branch of the verdict, and what is told of each: the sentence, the chain, the rivals,
and the graph behind it. tests/data/verdicts.txt has them as they are; `scripts/bench judges --pin` writes it."""

from dataclasses import replace
from pathlib import Path

from gdbext.analysis.progress.between_looks import between_copies
from gdbext.analysis.verdict.judge import judge
from gdbext.analysis.view.job_view import build_view
from gdbext.analysis.waits.facts_beside_stacks import draw, gather_facts
from gdbext.analysis.waits.graph_builder import build
from gdbext.knowledge.runtimes.glibc_locks import HANDED_OVER, LET_GO, PARKED
from gdbext.model.activity import Activity
from gdbext.model.codes import StackEnd
from gdbext.model.job import RankSnapshot
from gdbext.model.locks import UNASKED, UNOPENED, LockWait, Peer
from gdbext.model.missing import Missing
from gdbext.model.stack import OUTLINE, ThreadStack
from gdbext.parsers import parse_files
from tests.unit.stacks import (
    DRIVER,
    ENGINE,
    ENTRY,
    frame,
    gloo_reducing,
    inside,
    job,
    nameless,
    rank,
    reducing,
    sleeping,
    stack,
    syncing,
)
from tests.unit.test_analysis_at_work import FUTEX, MAIN, live, process
from tests.unit.waiting_ranks import (
    BARRIER,
    LOCKS,
    MISMATCH,
    READS,
    XID,
    aborting,
    both_locks,
    child,
    counted,
    gathers,
    gil,
    going,
    holds,
    hurried,
    idle,
    in_driver,
    launching,
    locked,
    lost,
    other_comm,
    perhaps_locked,
    pinning,
    piped,
    reads,
    setting_up,
    still,
    stopped,
    thread,
    witness,
)

TEXT = Path(__file__).resolve().parents[1] / "data" / "verdicts.txt"

NATIVE_POOL = ("pthread_cond_wait@libc.so.6", "std::condition_variable::wait@libstdc++.so.6", "worker@engine pool.cc:3")
ASKS_KEY = ("poll@libc.so.6", "c10d::TCPStore::doWait@libtorch_cpu.so", "take@engine.py:72")
WANTS_GIL = ("pthread_cond_timedwait@libc.so.6", "take_gil@python3", "PyGILState_Ensure@python3")
CALLBACK = (*WANTS_GIL, "hook@ext.so", "??@libcuda.so.1", "cuMemFree@libcuda.so.1")
IN_HANDLER = ("__lll_lock_wait_private@libc.so.6", "malloc@libc.so.6", "_Znwm@libstdc++.so.6",
              "on_signal@engine main.cc:3", "<signal handler called>")  # fmt: skip
JOIN = "join@/usr/lib/python3.11/threading.py:1112"
EXITING = ("wait4@libc.so.6", "poll@multiprocessing/popen_fork.py:27", "join@multiprocessing/process.py:149",
           "_exit_function@multiprocessing/util.py:357", "Py_FinalizeEx@python3")  # fmt: skip
SLEEPS = ("clock_nanosleep@libc.so.6", "time_sleep@python3", "serve@engine.py:3", *ENTRY)
JOINS_IN = ("pthread_join@libc.so.6", "std::thread::join@libstdc++.so.6")
LOADING = ("pthread_mutex_lock@libc.so.6", "dl_iterate_phdr@libc.so.6")
NCCL_LAUNCH = (*DRIVER, "cudaLaunchKernel@libcudart.so.12", "ncclLaunchKernel@libnccl.so.2", "ncclGroupEnd@libnccl.so")
EVENT = ("do_futex_wait@libc.so.6", "wait@multiprocessing/synchronize.py:268", "Event.wait@synchronize.py:356")
RESULT = ("do_futex_wait@libc.so.6", "wait@threading.py:327", "result@concurrent/futures/_base.py:451")
NEXT_TASK = ("do_futex_wait@libc.so.6", "__enter__@multiprocessing/synchronize.py:95",
             "get@multiprocessing/queues.py:102", "_process_worker@concurrent/futures/process.py:240")  # fmt: skip
LEADER = ("main_process_first@transformers/training_args.py:9", "main@train.py:3")
NOBODY = Missing("whoever makes the condition true wakes it")
TIMEOUT = (
    "[rank{0}]:[E305 11:02:33.041 ProcessGroupNCCL.cpp:629] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran for 600029 milliseconds."
)


def queued(number):
    return rank(number, thread(1, "get@/usr/lib/python3.11/queue.py:171", "f@a.py:1"))


def pooled(number):
    return rank(number, thread(1, *NATIVE_POOL))


def held(number, *waits, count=2, others=(), **fields):
    """A rank whose first `count` threads wait for locks."""
    return rank(number, *(thread(lwp) for lwp in range(1, count + 1)), *others, locks=waits, **fields)


def still_held(*kinds, **fields):
    """A rank whose threads wait for what has no owner, as two looks saw it."""
    waits = (holds(lwp, NOBODY, kind, still=True) for lwp, kind in enumerate(kinds, 1))
    return held(0, *waits, count=len(kinds), **fields)


def loading(number):
    return inside(number, "cuModuleLoadData@libcuda.so.1")


def opening(number):
    frames = (*DRIVER, "cudaIpcOpenMemHandle@libcudart.so.12", "p2pMap@libnccl.so.2", "ncclCommInitRank@libnccl.so.2")
    return rank(number, stack(*frames, *ENGINE))


def exiting(number):
    frames = (*DRIVER, "cudaFree@libcudart.so.12", "Pool::~Pool@engine pool.cc:4", "__run_exit_handlers@libc.so.6")
    return rank(number, stack(*frames, "exit@libc.so.6", "main@engine main.cc:9"))


def dying(number):
    return rank(number, stack("__GI_raise@libc.so.6", "abort@libc.so.6", "check@engine check.cc:4", *ENGINE))


def messages(number, name):
    return inside(number, f"nccl{name}@libnccl.so.2")


def barrier(number):
    local = ("sched_yield@libc.so.6", "ncclCpuBarrierIn@libnccl.so.2", "ncclGroupEnd@libnccl.so.2", *ENGINE)
    return rank(number, stack(*local, id="1"), stack(*local, id="2"))


def nccl_threads(*calls):
    """A process whose threads are in calls of NCCL for different purposes."""
    return nameless(*(stack(*DRIVER, call, *ENGINE, id=str(number)) for number, call in enumerate(calls, 1)))


def closed(number, state="S"):
    """Nothing but what the kernel says to everybody is known of it."""
    outline = ThreadStack(str(number), (), 1000 + number, state=state, cpu=0.0, truncated=OUTLINE, end=StackEnd.OUTLINE)
    return rank(number, outline, problems=("not allowed; be root",), state="partial")


def profiled(number):
    return rank(number, thread(1, *LOCKS, "??@libcupti.so.12", "cuptiActivityFlushAll@libcupti.so.12", *ENGINE))


def under_driver(number):
    return rank(number, thread(1, *LOCKS, "hook@ext.so", "??@libcuda.so.1", "cuMemFree@libcuda.so.1", *ENGINE))


def watched(number, call="cudaFree@libcudart.so.12"):
    """The main thread has the GIL and waits for the device; torch's watchdog wants the GIL."""
    waits = ("c10d::ProcessGroupNCCL::ncclCommWatchdog@libtorch_cuda.so", *ENTRY)
    holder = stack(*DRIVER, call, "drop@a.py:1", id="1", lwp=1, gil=True)
    return rank(number, holder, stack(*WANTS_GIL, *waits, id="2", lwp=2, name="pt_nccl_watchdg"))


OPENS = ("__open64_nocancel@libc.so.6", "write_result@serve.py:9")


def at(number, *peers, others=(), call=READS):
    return rank(number, thread(1, *call), *others, peers=peers, pid=1000 + number)


WRITES = ("write@libc.so.6", "send@engine ipc.cc:12", "main@engine main.cc:9")
SELECTS = ("epoll_wait@libc.so.6", "select@/usr/lib/python3.11/selectors.py:468", "_run_once@asyncio/base_events.py:9")


def in_idle_loop(number, limit=0xFFFFFFFF):
    return rank(number, thread(1, *SELECTS, syscall=(232, 4, 0, 9, limit, 0, 0), switches=0), pid=1000 + number)


def pipe(*processes, states=(), names=(), lwp=1, file="pipe:[7]"):
    return Peer(lwp, file, processes, states or ("S",) * len(processes), names or ("",) * len(processes))


def in_loop(number):
    """It runs at one place."""
    return rank(number, stack("spin@serve.py:16", "<module>@serve.py:60", state="R", cpu=0.9))


def waits_through(number, turns):
    one = gloo_reducing(number)
    main = replace(one.threads[0], still=0, switches=0, turns=turns, cpu=0.0)
    return replace(one, threads=(main, *one.threads[1:]))


def loops(seconds):
    """Two looks; rank 1 is at one place in both."""
    first, last = (
        job(waits_through(0, turns), in_loop(1), waits_through(2, turns), apart=1.2, taken_at=when)
        for turns, when in (((40, 42), 1000.0), ((42, 44), 1000.0 + seconds))
    )
    return replace(last, earlier=(first,))


def reading(number):
    """Its thread reads a checkpoint, and the kernel counts the bytes."""
    load = ("read@libc.so.6", "load_file@/opt/safetensors/torch.py:1", "load_model@/opt/vllm/v1/worker/gpu_worker.py:9")
    counted = Activity(2.0, read_bytes=900 << 20, own_bytes=900 << 20)
    return replace(rank(number, stack(*load, still=0, switches=40, cpu=0.1)), activity=counted)


def chain_of(length, closed):
    """Threads each of which waits for a mutex that the next one holds."""
    waits = [holds(lwp, lwp + 1) for lwp in range(1, length)]
    if closed:
        waits.append(holds(length, 1))
    return rank(0, *(thread(lwp) for lwp in range(1, length + 1)), locks=tuple(waits))


def own_pipe():
    """One thread waits for a condition, the other for a pipe that nobody else has open."""
    alone = Peer(2, "pipe:[7]", (7,), ("S",), ("engine",))
    threads = (thread(1, *NATIVE_POOL), thread(2, *READS))
    return rank(0, *threads, pid=7, handlers=(), peers=(alone,), locks=(replace(LEFT[1], thread=1),))


LEFT = (holds(1, 2, "join"), LockWait(2, "condvar", 0x2000, Missing("a condition has no owner"), still=True))


def waits_for_ever(*frames, call=FUTEX):
    return stack(*frames, *MAIN, syscall=call, switches=0, state="S", cpu=0.0)


def joins(of):
    """It waits for the end of a child, the process `of`."""
    frames = ("wait4@libc.so.6", "poll@multiprocessing/popen_fork.py:27", "join@multiprocessing/process.py:149")
    child = Peer(100, f"pid {of}", (of,), ("S",), ("a",))
    return process(0, waits_for_ever(*frames, call=(61, of, 0, 0, 0, 0, 0)), peers=(child,))


SCENES = {
    # circles
    "circle of the GIL, one victim": lambda: job(gil(0), reducing(1)),
    "circle of the GIL, alone": lambda: job(gil(0)),
    "circle of the GIL in memory": lambda: job(both_locks(0), reducing(1), reducing(2)),
    "circle of two threads, alone": lambda: job(locked(0)),
    "circle of two threads, one victim": lambda: job(locked(0), reducing(1)),
    "circle of two threads in two ranks": lambda: job(locked(0), locked(1), reducing(2), reducing(3)),
    "circle that may end": lambda: job(hurried(0), reducing(1)),
    "circle that is assumed": lambda: job(perhaps_locked(0), reducing(1)),
    "circle that is assumed, alone": lambda: job(perhaps_locked(0)),
    "circle of nine threads": lambda: job(chain_of(9, True)),
    "circle of ten threads, one victim": lambda: job(chain_of(10, True), reducing(1)),
    "a thread that waits for itself": lambda: job(held(0, holds(1, 1), count=1)),
    "a circle of a join": lambda: job(held(0, holds(1, 2, "join"), holds(2, 1))),
    "a circle of joins": lambda: job(held(0, holds(1, 2, "join"), holds(2, 1, "join"))),
    "a circle of a reader-writer lock and a driver": lambda: job(held(0, holds(1, 2, "rwlock"), holds(2, 1, "driver"))),
    "a circle of the loader": lambda: job(held(0, holds(1, 2, "loader"), holds(2, 1))),
    "a circle of the loader and the GIL": lambda: job(held(0, holds(1, 2, "loader"), holds(2, 1, "gil"))),
    "a circle of two ranks": lambda: job(
        held(0, LockWait(1, "mutex", 0x10, 2, owner_process=1001, shared=True, still=True), count=1),
        held(1, LockWait(2, "mutex", 0x20, 1, owner_process=1000, shared=True, still=True), count=2),
        reducing(2),
    ),
    "a circle of two ranks, seen at two moments": lambda: job(
        held(0, LockWait(1, "mutex", 0x10, 2, owner_process=1001, shared=True), count=1),
        held(1, LockWait(2, "mutex", 0x20, 1, owner_process=1000, shared=True), count=2),
    ),
    "nobody is left to wake another": lambda: job(held(0, *LEFT, handlers=())),
    "nobody is left to wake another, and others wait": lambda: job(held(0, *LEFT, handlers=()), reducing(1)),
    "nobody is left, but a signal may wake one": lambda: job(held(0, *LEFT, handlers=(15,))),
    "nobody is left, and a file is for the process alone": lambda: job(own_pipe()),
    "a circle that the kernel refused": lambda: job(held(0, holds(1, 2), holds(2, PARKED, gone=True))),
    "an allocation": lambda: job(syncing(0), pinning(1), syncing(2)),
    "two allocations": lambda: job(syncing(0), pinning(1), pinning(2), syncing(3)),
    "an allocation, and ranks in a collective": lambda: job(reducing(0), pinning(1), reducing(2)),
    "allocations of everybody": lambda: job(pinning(0), pinning(1)),
    "an allocation on the device": lambda: job(syncing(0), inside(1, "cudaMalloc@libcudart.so.12"), reducing(2)),
    "a handle of cuBLAS": lambda: job(syncing(0), inside(1, "cublasCreate_v2@libcublas.so.12"), reducing(2)),
    "waits for the device in other calls": lambda: job(
        pinning(0),
        inside(1, "cudaEventSynchronize@libcudart.so.12"),
        inside(2, "cudaDeviceSynchronize@libcudart.so.12"),
        inside(3, "cudaMemcpy@libcudart.so.12"),
    ),
    "a module that is loaded": lambda: job(syncing(0), loading(1), syncing(2)),
    "a module that is loaded by two": lambda: job(reducing(0), loading(1), loading(2), reducing(3), reducing(4)),
    "a launch": lambda: job(syncing(0), launching(1), syncing(2)),
    "two launches": lambda: job(syncing(0), launching(1), launching(2), syncing(3), syncing(4)),
    "a lazy launch": lambda: job(syncing(0), launching(1, CUDA_MODULE_LOADING="LAZY"), syncing(2)),
    "a lazy launch, in small letters": lambda: job(reducing(0), launching(1, CUDA_MODULE_LOADING="lazy"), reducing(2)),
    "a launch of half of them": lambda: job(syncing(0), launching(1), launching(2), syncing(3)),
    "a launch of most of them": lambda: job(syncing(0), launching(1), launching(2)),
    "a launch, and one elsewhere": lambda: job(syncing(0), launching(1), reads(2), syncing(3)),
    "launches of everybody": lambda: job(launching(0), launching(1)),
    "one launch": lambda: job(launching(0)),
    "one launch that blocks": lambda: job(launching(0, CUDA_LAUNCH_BLOCKING="1")),
    "one launch that does not block": lambda: job(launching(0, CUDA_LAUNCH_BLOCKING="0")),
    "one launch of NCCL": lambda: nameless(stack(*NCCL_LAUNCH)),
    "a teardown": lambda: job(reducing(0), aborting(1), reducing(2)),
    "a teardown of two": lambda: job(syncing(0), aborting(1), aborting(2), syncing(3), syncing(4)),
    "a teardown of everybody": lambda: job(aborting(0), aborting(1)),
    "a teardown alone": lambda: job(aborting(0)),
    "a teardown that may go on": lambda: job(inside(0, "ncclCommDestroy@libnccl.so.2"), syncing(1)),
    "an exit": lambda: job(reducing(0), exiting(1), reducing(2)),
    "an exit alone": lambda: job(exiting(0)),
    "different collectives": lambda: job(reducing(0), gathers(1), reducing(2)),
    "different collectives of one number": lambda: job(reducing(0, operations=9), gathers(1, operations=9)),
    "three collectives": lambda: job(
        reducing(0), gathers(1), reducing(2, name="broadcast"), reducing(3), reducing(4), reducing(5)
    ),
    "different sizes": lambda: job(reducing(0), reducing(1, count=7), reducing(2)),
    "different numbers": lambda: job(reducing(0, operations=9), gathers(1, operations=10), reducing(2, operations=9)),
    "one collective under different numbers": lambda: job(
        reducing(0, operations=9), reducing(1, operations=10), reads(2)
    ),
    "calls without names": lambda: job(
        *(inside(n, "ncclAllReduce@libnccl.so.2") for n in (0, 2)), inside(1, "ncclBroadcast@libnccl.so.2")
    ),
    "five different sizes": lambda: job(*(reducing(number, count=number + 1) for number in range(5)), reducing(5, 1)),
    "calls that are no collective": lambda: job(
        inside(0, "MPI_Wait@libmpi.so.40"), inside(1, "ncclGroupEnd@libnccl.so.2"), reads(2)
    ),
    "calls that are no collective, of everybody": lambda: job(
        inside(0, "MPI_Wait@libmpi.so.40"), inside(1, "ncclGroupEnd@libnccl.so.2")
    ),
    "MPI's end, before the others": lambda: job(
        inside(0, "MPI_Finalize@libmpi.so.40"), *(inside(n, "MPI_Allreduce@libmpi.so.40") for n in (1, 2))
    ),
    "two communicators": lambda: job(*(reducing(n, members=3) for n in (0, 1)), other_comm(2, 3)),
    "two communicators by halves": lambda: job(*(reducing(n, members=4) for n in (0, 1)), *map(other_comm, (2, 3))),
    "two communicators that may share no rank": lambda: job(reducing(0, members=1), other_comm(1, 1)),
    "a collective and an unknown communicator": lambda: job(reducing(0), inside(1, "ncclAllReduce@libnccl.so.2")),
    # ends
    "one elsewhere": lambda: job(gloo_reducing(0), sleeping(1), gloo_reducing(2)),
    "one elsewhere of two": lambda: job(reducing(0), reads(1)),
    "two elsewhere": lambda: job(syncing(0), reads(1), pooled(2), syncing(3), syncing(4)),
    "most elsewhere": lambda: job(reducing(0), reads(1), reads(2), reads(3)),
    "one in a queue": lambda: job(reducing(0), queued(1), reducing(2)),
    "one in a condition": lambda: job(reducing(0), pooled(1), reducing(2)),
    "one in a lock": lambda: job(reducing(0), held(1, count=1), reducing(2)),
    "one idle": lambda: job(reducing(0), idle(1), reducing(2)),
    "two idle": lambda: job(reducing(0), idle(1), idle(2), reducing(3), reducing(4)),
    "one idle, others wait for the device": lambda: job(syncing(0), idle(1), syncing(2)),
    "one stopped": lambda: job(reducing(0), stopped(1), reducing(2)),
    "one dead": lambda: job(reducing(0), lost(1), reducing(2)),
    "a zombie": lambda: job(syncing(0), rank(1, stack(state="Z"))),
    "one that dies": lambda: job(reducing(0), dying(1), reducing(2)),
    "one that dies, alone": lambda: job(dying(0)),
    "one absent": lambda: job(reducing(0), reducing(2), world_size=3, absent=(1,)),
    "two absent": lambda: job(syncing(0), syncing(1), world_size=4, absent=(2, 3)),
    "absent, stopped and dead": lambda: job(
        reducing(0), stopped(1), stopped(2), lost(3), lost(4), world_size=7, absent=(5, 6)
    ),
    "absent, stopped, dead, dying and elsewhere at a set-up": lambda: job(
        setting_up(0), stopped(1), lost(2), reads(3), reads(4), idle(5), world_size=7, absent=(6,)
    ),
    "a set-up that lacks one": lambda: job(setting_up(0), reads(1), setting_up(2)),
    "a set-up that lacks one without a process": lambda: job(setting_up(0), setting_up(2), world_size=3, absent=(1,)),
    "a set-up of two, and an allocation": lambda: job(setting_up(0), pinning(1), setting_up(2)),
    "a set-up of everybody": lambda: job(setting_up(0), setting_up(1)),
    "a set-up alone": lambda: nameless(*setting_up(0).threads),
    "a set-up with more members": lambda: job(
        rank(0, stack("poll@libc.so.6", frame("ncclCommInitRank@libnccl.so.2", nranks=2))), reads(1)
    ),
    "a set-up and a collective": lambda: job(setting_up(0), reducing(1), reducing(2)),
    "a set-up of most, and a collective of the last one": lambda: job(
        setting_up(0), setting_up(1), still(reducing(2)), apart=1.5
    ),
    "a set-up in code without names": lambda: job(*(inside(n, "ncclCommInitRank@libnccl.so.2") for n in range(2))),
    "peer memory": lambda: job(opening(0), opening(1)),
    "peer memory of one": lambda: job(opening(0), setting_up(1)),
    "peer memory alone": lambda: nameless(*opening(0).threads),
    "send and receive": lambda: job(messages(0, "Send"), messages(1, "Recv")),
    "a receive, and one elsewhere": lambda: job(messages(0, "Recv"), reads(1)),
    "receives, and one elsewhere": lambda: job(messages(0, "Recv"), messages(1, "Recv"), reads(2)),
    "sends of two ranks that stand": lambda: job(still(messages(0, "Send")), still(messages(1, "Send")), apart=1.5),
    "sends of three ranks that stand": lambda: job(*(still(messages(n, "Send")) for n in range(3)), apart=1.5),
    "sends of all ranks, seen once": lambda: job(messages(0, "Send"), messages(1, "Send")),
    "sends, and most elsewhere": lambda: job(messages(0, "Send"), reads(1), reads(2)),
    "the kernel's driver": lambda: job(syncing(0), in_driver(1), syncing(2)),
    "the kernel's driver, another thread": lambda: job(
        syncing(0), rank(1, stack(*READS, id="1"), *(replace(one, id="2") for one in in_driver(1).threads)), syncing(2)
    ),
    "the kernel's driver, two": lambda: job(syncing(0), in_driver(1), in_driver(2)),
    "the profiler": lambda: job(profiled(0), reducing(1)),
    "a mutex under the driver": lambda: job(syncing(0), under_driver(1), syncing(2)),
    "the loader's lock": lambda: job(rank(0, thread(1, *LOADING)), reducing(1)),
    "a forked child": lambda: job(child(0)),
    "a forked child, and others": lambda: job(reducing(0), child(1), reducing(2)),
    "a forked child by its stack": lambda: job(rank(0, thread(1, *LOCKS, "run@a.py:1", "_launch@b.py:2"))),
    "a forked child by its stack, in the driver": lambda: job(
        rank(0, stack(*DRIVER, "cudaMalloc@libcudart.so.12", "run@a.py:1", "_launch@b.py:2")), syncing(1)
    ),
    "a forked child by its stack, whose circle is known": lambda: job(
        rank(0, *(thread(n, *LOCKS, "fork@libc.so.6") for n in (1, 2)), locks=(holds(1, 2), holds(2, 1)))
    ),
    "an owner that ended": lambda: job(held(0, holds(1, 99, gone=True)), reducing(1)),
    "an owner that ended, one thread": lambda: job(held(0, holds(1, 99, gone=True), count=1)),
    "an owner that ended, and no circle": lambda: job(held(0, holds(1, PARKED, gone=True), count=1)),
    "an owner that was not read": lambda: job(held(0, holds(1, 77)), reducing(1)),
    "an owner in another process": lambda: job(held(0, holds(1, 5, owner_process=12345)), reducing(1)),
    "a lock that nobody has at the moment": lambda: job(held(0, holds(1, LET_GO), count=1), reducing(1)),
    "a lock that was handed over and stands": lambda: job(
        held(0, holds(1, HANDED_OVER, still=True), count=1), reducing(1)
    ),
    "a lock that moves": lambda: job(held(0, holds(1, 2, still=False)), reducing(1)),
    "a lock without an address": lambda: job(held(0, LockWait(1, "mutex", None, 2)), reducing(1)),
    "a lock whose memory cannot be read": lambda: job(held(0, holds(1, Missing("no memory"))), reducing(1)),
    "a bare futex": lambda: job(held(0, holds(1, Missing("no owner"), "futex")), reducing(1)),
    "a semaphore": lambda: job(held(0, holds(1, Missing("nobody"), "semaphore")), reducing(1)),
    "a holder that computes": lambda: job(
        reducing(0), held(1, holds(1, 5), count=1, others=(thread(5, "mul@libblas.so", name="w", state="R"),))
    ),
    "a holder that reads": lambda: job(reducing(0), held(1, holds(1, 5), count=1, others=(thread(5, *READS),))),
    "a holder in a driver call": lambda: job(
        syncing(0), held(1, holds(1, 5), count=1, others=(thread(5, *DRIVER, "cudaFree@libcudart.so.12", *ENGINE),))
    ),
    "the GIL, a callback of the driver": lambda: job(
        rank(0, stack(*DRIVER, "cudaFree@libcudart.so.12", "f@a.py:1", id="1", gil=True), stack(*CALLBACK, id="2"))
    ),
    "the GIL, a callback whose owner is guessed": lambda: job(
        rank(0, stack(*DRIVER, "cudaFree@libcudart.so.12", "f@a.py:1", id="1"), stack(*CALLBACK, id="2")), syncing(1)
    ),
    "the GIL, a callback alone": lambda: job(rank(0, stack(*CALLBACK, id="1")), syncing(1)),
    "the GIL, its owner in a mutex": lambda: job(
        rank(0, stack(*LOCKS, "f@a.py:1", id="1", gil=True), stack(*WANTS_GIL, "g@a.py:2", id="2")), reducing(1)
    ),
    "the GIL, its owner computes": lambda: job(
        rank(0, stack("mul@libblas.so", "f@a.py:1", id="1", gil=True, state="R"), stack(*WANTS_GIL, id="2"))
    ),
    "the GIL and the watchdog": lambda: job(watched(0), reducing(1)),
    "the GIL and the watchdog, in a teardown": lambda: job(watched(0, "ncclCommAbort@libnccl.so.2"), reducing(1)),
    "the GIL and the watchdog, in a wait": lambda: job(watched(0, "cudaStreamSynchronize@libcudart.so.12")),
    "the GIL, three threads": lambda: job(
        rank(
            0,
            stack(*DRIVER, "cudaStreamSynchronize@libcudart.so.12", "f@a.py:1", id="1"),
            stack(*LOADING, "f@a.py:1", id="2"),
            stack("pthread_cond_timedwait@libc.so.6", "PyEval_RestoreThread@python3", *LOADING[1:], id="3"),
        ),
        syncing(1),
    ),
    "the driver's lock under the driver": lambda: job(
        syncing(0), rank(1, thread(1, *LOCKS, "hook@ext.so", "??@libcuda.so.1", ENGINE[1])), syncing(2)
    ),
    "every thread waits for another one": lambda: job(
        held(0, holds(1, NOBODY, "condvar", still=True), holds(2, NOBODY, "semaphore", still=True)), reducing(1)
    ),
    "a child that nobody wakes": lambda: live(joins(101), process(1, waits_for_ever(*EVENT))),
    "a task that no worker runs": lambda: live(
        process(0, waits_for_ever(*RESULT)), process(1, waits_for_ever(*NEXT_TASK))
    ),
    "every thread waits for another one, seen once": lambda: job(
        held(0, holds(1, NOBODY, "condvar"), holds(2, 1)), reducing(1)
    ),
    "every thread waits for another one, alone": lambda: job(still_held("condvar", "semaphore", handlers=())),
    "every thread waits for another one, and the keyboard": lambda: job(
        still_held("condvar", "semaphore", handlers=(2,)), reducing(1)
    ),
    "every thread waits for another one, and a handler": lambda: job(
        still_held("condvar", "semaphore", handlers=(10,)), reducing(1)
    ),
    "every thread waits for another one, on futexes": lambda: job(still_held("futex", "condvar", handlers=())),
    "every thread waits for another one, for readers": lambda: job(
        held(0, LockWait(1, "rwlock", 0x10, Missing("readers"), detail="held by 2 readers", readers=True, still=True),
             holds(2, NOBODY, "barrier", still=True), handlers=()), reducing(1)
    ),
    "a thread that another one may wake": lambda: job(
        rank(0, thread(1, *NATIVE_POOL), thread(2, *READS), locks=(holds(1, NOBODY, "condvar", still=True),),
             handlers=())
    ),
    "a thread that another one may wake, one of two ranks": lambda: job(
        rank(0, thread(1, *NATIVE_POOL), thread(2, *READS), locks=(holds(1, NOBODY, "condvar"),)),
        rank(1, thread(1, *NATIVE_POOL), locks=(holds(1, NOBODY, "semaphore", timed=True),)),
    ),
    "the driver's own lock": lambda: job(
        syncing(0), rank(1, thread(1, *LOCKS, "??@libcuda.so.1", ENGINE[1])), syncing(2)
    ),
    "a key of the store beside a collective": lambda: job(reducing(0), reducing(1), rank(2, thread(1, *ASKS_KEY))),
    "an initialiser": lambda: job(rank(0, thread(1, "pthread_once@libc.so.6", *ENGINE)), reducing(1)),
    "the allocator's lock": lambda: job(rank(0, thread(1, "malloc@libc.so.6", *ENGINE)), reducing(1)),
    "a reader-writer lock": lambda: job(
        rank(0, thread(1, "pthread_rwlock_rdlock@libc.so.6", *ENGINE)), reducing(1)
    ),
    "two forked children, of one the parent's lock is known": lambda: job(
        rank(0, thread(1, *LOCKS, "fork@libc.so.6"), locks=(holds(1, 9, gone=True, owner_process=5),)),
        rank(1, thread(1, *LOCKS, "fork@libc.so.6")),
    ),
    "a forked child that wants the GIL": lambda: job(rank(0, thread(1, *WANTS_GIL, "fork@libc.so.6"))),
    "more allocations than ranks in the collective": lambda: job(reducing(0), pinning(1), pinning(2), reads(3)),
    # what frames further out tell
    "an allocation in a handler of a signal": lambda: nameless(stack(*IN_HANDLER, "_int_malloc@libc.so.6")),
    "an allocation in a handler, the end cut off": lambda: nameless(stack(*IN_HANDLER)),
    "another lock in a handler": lambda: nameless(stack(*LOCKS, *IN_HANDLER[3:], "main@engine main.cc:9")),
    "an allocation, and nobody in the allocator": lambda: nameless(stack(*IN_HANDLER[:3], *ENGINE)),
    "a hook of the allocator": lambda: nameless(stack(*LOCKS, "hook@ext.so", "_int_free@libc.so.6", *ENGINE)),
    "a hook of the allocator, and who waits for that": lambda: nameless(
        stack(*LOCKS, "hook@ext.so", "_int_free@libc.so.6", *ENGINE, id="1"), stack(*IN_HANDLER[:3], id="2")
    ),
    "a library that is loaded waits for a lock": lambda: nameless(stack(*LOCKS, "DllMain@ext.dll", "LdrLoadDll@ntdll")),
    "two threads in the time zone, of one the signal": lambda: nameless(
        stack(LOCKS[0], "__tz_convert@libc.so.6", "log_line@engine a.cc:2", "<signal handler called>",
              "__tz_convert@libc.so.6", *ENGINE)
    ),
    "an end that waits for its threads": lambda: nameless(stack(*JOINS_IN, "Pool::~Pool@engine pool.cc:3", ENGINE[1])),
    "an end, and its thread works": lambda: nameless(
        stack(*JOINS_IN, "Pool::~Pool@engine pool.cc:3", ENGINE[1], id="1"), stack("mul@libblas.so", id="2", state="R")
    ),
    "an end, and its thread waits for the GIL": lambda: nameless(
        stack(*JOINS_IN, "Pool::~Pool@engine pool.cc:3", ENGINE[1], id="1"), stack(*WANTS_GIL, id="2")
    ),
    "an end of one of two ranks": lambda: job(
        rank(0, stack(*JOINS_IN, "Pool::~Pool@engine pool.cc:3"), source="text:gdb"), reducing(1)
    ),
    "an end of a live process": lambda: job(rank(0, stack(*JOINS_IN, "Pool::~Pool@engine pool.cc:3", ENGINE[1]))),
    "a thread's own wrapper that is joined": lambda: nameless(
        stack(*JOINS_IN, "StdThread::~StdThread@engine", "Server::Join@engine", ENGINE[1])
    ),
    "a server that waits for the order to end": lambda: nameless(
        stack("pthread_cond_wait@libc.so.6", "std::condition_variable::wait@libstdc++.so.6",
              "serve::Server::WaitForShutdown@engine", ENGINE[1])
    ),
    "an end by its name": lambda: nameless(
        stack("pthread_cond_wait@libc.so.6", "std::condition_variable::wait@libstdc++.so.6",
              "serve::Engine::ShutdownOnce@engine", ENGINE[1])
    ),
    "a join inside of what closes": lambda: nameless(stack(*JOINS_IN, "serve::Link::close@engine", ENGINE[1])),
    "a join inside of work": lambda: nameless(stack(*JOINS_IN, "serve::Link::run@engine", ENGINE[1])),
    "an event loop's thread that joins at the end": lambda: nameless(
        stack("pthread_join@libc.so.6", "uv_thread_join@libuv.so.1", "node::Runner::Shutdown@node", "main@node")
    ),
    "tasks of a block": lambda: nameless(
        stack(JOIN, "shutdown@/usr/lib/python3/concurrent/futures/thread.py:235",
              "__exit__@/usr/lib/python3/concurrent/futures/_base.py:647", "main@train.py:3")
    ),
    "the end of the interpreter": lambda: nameless(
        stack(JOIN, "_python_exit@/usr/lib/python3/concurrent/futures/thread.py:31")
    ),
    "a lock's check of the order": lambda: nameless(
        stack("RawLog@a.so", "absl::DebugOnlyDeadlockCheck@a.so", "absl::Mutex::Lock@a.so", *ENGINE)
    ),
    # idioms
    "the first rank works alone": lambda: job(rank(0, stack(*READS)), *(rank(n, stack(*LEADER)) for n in (1, 2))),
    "the first rank is not there": lambda: job(
        *(rank(n, stack(*LEADER)) for n in (1, 2)), world_size=3, absent=(0,)
    ),
    "the first rank is not in the look": lambda: job(*(rank(n, stack(*LEADER)) for n in (1, 2))),
    "the first rank is in a collective": lambda: job(reducing(0), *(rank(n, stack(*LEADER)) for n in (1, 2))),
    "one waits for its data": lambda: nameless(
        stack("poll@libc.so.6", "recv_bytes@/usr/lib/python3.11/multiprocessing/connection.py:3",
              "_try_get_data@/v/torch/utils/data/dataloader.py:9", "train@/v/deepspeed/engine.py:2")
    ),
    "a barrier of the ranks of one process": lambda: job(barrier(0), syncing(1)),
    "two threads in NCCL": lambda: nccl_threads("ncclRecv@libnccl.so.2", "ncclAllReduce@libnccl.so.2"),
    "three threads in NCCL": lambda: nccl_threads(
        "ncclRecv@libnccl.so.2", "ncclAllReduce@libnccl.so.2", "ncclBroadcast@libnccl.so.2"
    ),
    "a thread in NCCL and one that tears down": lambda: nccl_threads(
        "ncclAllReduce@libnccl.so.2", "ncclCommAbort@libnccl.so.2"
    ),
    "two threads in one call of NCCL": lambda: nccl_threads("ncclAllReduce@libnccl.so.2", "ncclAllReduce@libnccl.so.2"),
    "two threads in NCCL of one of two ranks": lambda: job(
        rank(0, *nccl_threads("ncclRecv@libnccl.so.2", "ncclAllReduce@libnccl.so.2").processes[0].threads), reducing(1)
    ),
    # pipes, sockets and other processes
    "a pipe of a stopped program": lambda: job(reducing(0), piped(1, "T"), reducing(2)),
    "a pipe of a dead program": lambda: job(reducing(0), piped(1, "Z"), reducing(2)),
    "a pipe of a program that ends": lambda: job(reducing(0), piped(1, "X"), reducing(2)),
    "a pipe of a program that sleeps": lambda: job(reducing(0), piped(1, "S"), reducing(2)),
    "a pipe, alone": lambda: job(piped(0, "S")),
    "a pipe of a stopped program, alone": lambda: job(piped(0, "T")),
    "a pipe that nobody else has": lambda: job(at(0, pipe(1000)), reducing(1)),
    "a pipe that nobody has": lambda: job(at(0, pipe()), reducing(1)),
    "a pipe that nobody else has, beside another thread": lambda: job(at(0, pipe(1000), others=(thread(2, *READS),))),
    "the end of a process whose child reads what nobody writes": lambda: job(
        at(0, pipe(1001, file="pid 1001"), call=EXITING), at(1, pipe(1001))
    ),
    "the end of a process whose child reads what it does not write": lambda: job(
        at(0, pipe(1001, file="pid 1001"), call=EXITING), at(1, pipe(1000))
    ),
    "a child that reads what nobody writes": lambda: job(
        at(0, pipe(1001, file="pid 1001"), call=(*EXITING[:3], *ENTRY)), at(1, pipe(1001))
    ),
    "the end of a process whose child sleeps": lambda: job(
        at(0, pipe(1001, file="pid 1001"), call=EXITING), rank(1, thread(1, *SLEEPS), pid=1001)
    ),
    "a pipe of two programs": lambda: job(
        at(0, pipe(1000, 880, 881, states=("S", "T", "S"), names=("", "feeder", ""))), reducing(1)
    ),
    "a pipe of another rank": lambda: job(at(0, pipe(1001)), at(1, pipe(1000)), reducing(2)),
    "a pipe of another rank in a collective": lambda: job(at(0, pipe(1001)), reducing(1)),
    "a pipe of a stopped rank": lambda: job(at(0, pipe(1001)), stopped(1), reducing(2)),
    "a pipe that an event loop does not read": lambda: job(
        at(0, replace(pipe(1001), unread_by=(1001,)), call=WRITES), in_idle_loop(1)
    ),
    "a pipe that an event loop with a timer does not read": lambda: job(
        at(0, replace(pipe(1001), unread_by=(1001,)), call=WRITES), in_idle_loop(1, 5000)
    ),
    "an event loop that nothing else can wake up": lambda: job(replace(in_idle_loop(0), peers=(pipe(1000),))),
    "a lock on a file that a stopped rank has": lambda: job(
        at(0, replace(pipe(1001), file="/a.lock", lock=True)), stopped(1)
    ),
    "a ring without requests": lambda: job(at(0, replace(pipe(), file=UNASKED), call=("syscall@libc.so.6", *ENTRY))),
    "a named pipe that nobody reads": lambda: job(at(0, replace(pipe(), file=UNOPENED), call=OPENS), reducing(1)),
    "a lock that a stranger holds": lambda: job(replace(at(0), peers=(replace(pipe(880), file="/a.lock", lock=True),))),
    "a lock file that nobody has": lambda: job(at(0, replace(pipe(), file="/lock", lock=True)), reducing(1)),
    "a pipe that cannot be read": lambda: job(
        replace(at(0), peers=(Peer(1, "pipe:[7]", Missing("not allowed")), pipe(880))), reducing(1)
    ),
    "a pipe of a thread that is not known": lambda: job(at(0, pipe(880, lwp=99), pipe(881)), reducing(1)),
    "a pipe of a rank in a collective": lambda: job(
        replace(gloo_reducing(0), peers=(Peer(1000, "pipe:[7]", (880,), ("T",), ("x",)),)), gloo_reducing(1)
    ),
    "a pipe of a holder": lambda: job(
        reducing(0),
        replace(held(1, holds(1, 5), count=1, others=(thread(5, *READS),)), peers=(pipe(880, states=("T",), lwp=5),)),
        reducing(2),
    ),
    "a pipe, by the C library's own name": lambda: job(
        at(0, pipe(880), call=("__GI___libc_read@libc.so.6", *READS[1:])), reducing(1)
    ),
    "a call by the C library's own name": lambda: job(
        rank(0, thread(1, "__GI___libc_read@libc.so.6", *READS[1:])), reducing(1)
    ),
    # states
    "one that sleeps for a moment": lambda: job(gloo_reducing(0), sleeping(1, sleeps=0.5), gloo_reducing(2)),
    "one that sleeps for long": lambda: job(gloo_reducing(0), sleeping(1, sleeps=500.0), gloo_reducing(2)),
    "one in a loop": lambda: loops(24),
    "one in a loop, at the limit": lambda: loops(18.8),
    "one in a loop, for a short time": lambda: loops(5),
    "one that computes": lambda: job(reducing(0), in_loop(1), reducing(2)),
    "one that reads a checkpoint": lambda: job(still(reducing(0)), reading(1), still(reducing(2)), apart=2.0),
    "one that reads a checkpoint, one elsewhere": lambda: job(
        still(reducing(0)), reading(1), still(reads(2)), still(reducing(3)), apart=2.0
    ),
    "ranks that went on": lambda: job(going(0), going(1), apart=1.5),
    "ranks that went on, one stopped": lambda: job(going(0), stopped(1), going(2), apart=1.5),
    "ranks that are idle": lambda: job(idle(0), idle(1)),
    "one that no stack was read of": lambda: job(reducing(0), RankSnapshot(1, (), rank=1, pid=1001), reducing(2)),
    "one whose stack says nothing": lambda: job(
        reducing(0), rank(1, stack("??@libengine.so", "??@libengine.so", state="S", cpu=0.0)), reducing(2)
    ),
    "all stacks say nothing": lambda: job(*(rank(n, stack("??@x.so", state="S", cpu=0.0)) for n in (0, 1))),
    "threads that are ranks": lambda: nameless(
        *(stack(*DRIVER, "cudaStreamSynchronize@libcudart.so.12", f"worker{n}@e w.cc:{n}", id=str(n)) for n in (1, 2)),
        stack(*DRIVER, "cudaMallocHost@libcudart.so.12", "worker3@e w.cc:3", id="3"),
    ),
    # what others say
    "a line that names nobody": lambda: job(syncing(0), pinning(1), syncing(2), said=(MISMATCH,)),
    "a line that names nobody, and equal stacks": lambda: job(syncing(0), syncing(1), said=(MISMATCH,)),
    "a line of a failed GPU": lambda: job(syncing(0), syncing(1), said=(XID,)),
    "a line of a failed GPU, and a collective": lambda: job(reducing(0), reducing(1), said=(XID,)),
    "a line of a rank's failed GPU": lambda: job(reducing(0), replace(reducing(1), said=(XID,)), reducing(2)),
    "a line that names a rank": lambda: job(reducing(0), reducing(1), reads(2), said=(BARRIER,)),
    "a line that names a rank that has come": lambda: job(reducing(0), reducing(1), reducing(2), said=(BARRIER,)),
    "a line that names one of two": lambda: job(syncing(0), syncing(1), syncing(2), said=(BARRIER,)),
    "lines of ranks without stacks": lambda: job(
        *(RankSnapshot(n, (), rank=n, said=(TIMEOUT.format(n),)) for n in (0, 1)), RankSnapshot(2, (), rank=2)
    ),
    "lines of ranks without stacks, beside one in the collective": lambda: job(
        reducing(0), RankSnapshot(1, (), rank=1, said=(TIMEOUT.format(1),)),
        RankSnapshot(2, (), rank=2, said=(TIMEOUT.format(2),)), RankSnapshot(3, (), rank=3),
        said=(BARRIER.replace("Rank 2", "Rank 3"),),
    ),
    "lines of ranks of which one was read": lambda: job(
        replace(reducing(0), said=(TIMEOUT.format(0),)),
        RankSnapshot(1, (), rank=1, said=(TIMEOUT.format(1),)),
        RankSnapshot(2, (), rank=2),
    ),
    "lines of ranks whose stacks say nothing": lambda: job(
        replace(reducing(0), said=(TIMEOUT.format(0),)),
        rank(1, stack("??@engine"), said=(TIMEOUT.format(1),)),
        RankSnapshot(2, (), rank=2),
    ),
    "a GPU that failed, of a job that waits for work": lambda: job(
        idle(0), idle(1), witnesses=witness("gpu-fault", 1)
    ),
    "a GPU that failed, beside a circle": lambda: job(
        reducing(0), locked(1), reducing(2), witnesses=witness("gpu-fault", 0)
    ),
    "ranks that went on, beside a circle": lambda: job(going(0), locked(1), going(2), apart=1.5),
    "a GPU that failed": lambda: job(syncing(0), syncing(1), witnesses=witness("gpu-fault", 1)),
    "a GPU that failed, of ranks in a collective": lambda: job(
        reducing(0), reducing(1), reducing(2), witnesses=witness("gpu-fault", 1)
    ),
    "a GPU that failed, of one elsewhere": lambda: job(
        reducing(0), reads(1), reducing(2), witnesses=witness("gpu-fault", 1)
    ),
    "a counter that is behind": lambda: job(
        *(still(syncing(n)) for n in range(3)), apart=1.5, witnesses=witness("behind", 1)
    ),
    "a flight recorder": lambda: job(
        *(still(syncing(n)) for n in range(3)), apart=1.5, witnesses=witness("mismatch", 1)
    ),
    "counts that differ": lambda: job(
        counted(syncing(0), 4), counted(syncing(1), 3, 4), counted(syncing(2), 4), apart=1.5
    ),
    "counts that are behind": lambda: job(
        counted(syncing(0), 4), counted(pinning(1), 3), counted(syncing(2), 4), apart=1.5
    ),
    "a check that failed": lambda: parse_files(
        [("crash.txt", (TEXT.parent / "crashes" / "open-mpi-demangled.txt").read_bytes())]
    ),
    "a fault of its own": lambda: pasted("died-3"),
    "a fault of its own, while the process ends": lambda: pasted("died-9"),
    "a process that ends for others": lambda: pasted("died-twin-6"),
    "the GIL, which nobody that was read has": lambda: pasted("gil-3"),
    "the GIL, and one in an extension's lock": lambda: pasted("gil-1"),
    "the GIL, and one in an extension's join": lambda: pasted("gil-2"),
    "the GIL, and one that runs": lambda: pasted("gil-twin-4"),
    "a join of one that wants a lock of its caller": lambda: pasted("join-1"),
    "a join of one that wants another lock": lambda: pasted("join-twin-2"),
    "a lock that its owner asks for again": lambda: pasted("recur-1"),
    "a lock of a loop, asked for inside": lambda: pasted("recur-twin-3"),
    "locks that a runtime prints": lambda: pasted("java-2"),
    "a lock that is a file": lambda: pasted("lockfile-5"),
    "a lock that is a file, which another rank has": lambda: pasted("lockfile-twin-1"),
    "a printed lock of one that works": lambda: pasted("java-twin-1"),
    "a stopped rank, and none that could be read": lambda: job(closed(0), closed(1, "T"), closed(2)),
    "shared memory that is full": lambda: job(setting_up(0), setting_up(1), witnesses=witness("shm-full", 0)),
}  # fmt: skip


def pasted(name):
    """A text of tests/data/assumed-holders.txt or printed-waits.txt."""
    texts = ((TEXT.parent / file).read_text() for file in ("assumed-holders.txt", "printed-waits.txt"))
    blocks = "".join(texts).split("@@ ")
    text = next(block.split("\n", 1)[1] for block in blocks if block.startswith(f"{name} "))
    return parse_files([("pasted.txt", text.encode())])


def told(snapshot):
    """The verdict and the graph behind it, line by line."""
    diagnosis = judge(snapshot)
    verdict = diagnosis.verdict
    blamed = [*verdict.culprits, *(f"absent {one}" for one in verdict.absent)]
    yield f"{verdict.cause}, {verdict.confidence}, blames {blamed}, victims {list(verdict.victims)}"
    yield verdict.summary
    if verdict.chain:
        yield f"chain: {_chain(verdict.chain)}; root: {_node(verdict.root)}"
    yield from (f"cites {_cited(one)}" for one in verdict.evidence[:3])
    yield from (f"cites {one.text}" for one in verdict.evidence if one.text.startswith("what may wake"))
    for one in verdict.considered.hypotheses:
        weakest = f" ({_chain((one.weakest_edge,))})" if one.weakest_edge is not None else ""
        share = f"{one.share:.2f}{' circle' if one.circle else ''}, {one.weakest}{weakest}"
        yield f"weighs {one.source} {one.row}, {one.confidence}, {one.culprits} {one.absent}, {share}"
        against = " ".join((*one.contradictions, *one.limits, *(f"leaves {index}" for index in one.unexplained)))
        yield f"  against: {against}; chain: {_chain(one.chain)}; roots: {', '.join(map(_root, one.roots))}"
    yield from _graph(diagnosis)


def _graph(diagnosis):
    """All edges, with the facts drawn, then the ends."""
    view = build_view(diagnosis.snapshot, diagnosis.processes, *between_copies(diagnosis.snapshot, diagnosis.processes))
    drawing = build(view)
    draw(drawing, gather_facts(view))
    graph = drawing.graph
    for edges in graph.edges.values():
        for edge in edges:
            facts = "".join(f" [{one.process}/{one.thread}/{one.frame}]" for one in edge.facts)
            target = f"{edge.target.kind} {edge.target.label}"
            yield f"  {edge.source.label} -> {target}: {edge.kind}, {edge.strength}, {edge.needs}{facts}"
    yield from (f"  end {_node(node)}" for node in graph.nodes.values() if not graph.after(node.id))


def _chain(edges):
    return " > ".join((*(one.source.label for one in edges), *(one.target.label for one in edges[-1:])))


def _node(node):
    place = f" in {node.owner}" if node.kind == "thread" and node.owner else ""
    return f"{node.label}{place} ({node.kind} {node.process} {node.thread} {node.pid}, {node.state})"


def _root(node):
    return f"{node.label} ({node.state})" if node.state is not None else node.label


def _cited(evidence):
    return f"{evidence.text[:40]} {evidence.process}/{evidence.thread}/{evidence.frame}"


def all_told():
    """The text of tests/data/verdicts.txt."""
    blocks = ("\n".join((f"== {name}", *told(make()))) for name, make in SCENES.items())
    return "\n\n".join(blocks) + "\n"
