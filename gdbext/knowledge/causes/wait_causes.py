"""Which cause a circle or an end of the wait-for graph means, and the sentence that says so. Rows, no logic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class CauseRow:
    """What a root of the waiting means. The first row that fits names the cause.

    All `resources` are on the circle, or on a way to the end; one of `via` is the kind of an edge of the circle, or of
    the last edge before the end (of an end that is a rank: its own wait). Empty: anything. `says` is the answer in
    words; the roles in braces are put in by analysis/waits/prose.py.
    """

    id: str
    cause: str  # label of labels.CAUSES
    says: str
    source: str
    circle: bool = False
    resources: Tuple[str, ...] = ()
    via: Tuple[str, ...] = ()
    ends: Tuple[str, ...] = ()  # kinds of nodes
    states: Tuple[str, ...] = ()
    through: Tuple[str, ...] = ()  # kinds of edges, one of which is on the way: who waits there is to blame
    most: str = "high"  # confidence that it has at most
    everybody: bool = False  # only where all ranks that were judged end there
    peers: bool = False  # only where others than the culprits wait for it
    few: bool = False  # only the smaller side is to blame
    sought: bool = False  # only those are to blame to which an edge of `via` leads
    blames: bool = True  # whether ranks that wait at the end are to blame, or only those that are an end themselves


_IMPLICIT = ("pinned-host-alloc", "device-alloc", "device-free", "cublas")
_LASTING_STATES = ("dead", "stopped", "external", "idle", "unread", "spinning")

CAUSES: Tuple[CauseRow, ...] = (
    CauseRow(
        "gil",
        "gil-deadlock",
        "{Circle}: {story}. {Circle_end}",
        "rapidsai/ucx-py#187",
        circle=True,
        resources=("lock",),
        via=("gil",),
    ),
    CauseRow(
        "left",
        "lock-order-deadlock",
        "{Circle}: {story}. No timer and no other process ends these waits. {Circle_end}",
        "futex(2)",
        circle=True,
        resources=("condition",),
        via=("left",),
    ),
    CauseRow(
        "order",
        "multi-comm-ordering",
        "{Everybody} {are_all} in collectives of different communicators at the same time: {sides}. {Both}",
        "NVIDIA/nccl#1766",
        circle=True,
        resources=("collective",),
        via=("other communicator",),
        few=True,
    ),
    CauseRow(
        "locks",
        "lock-order-deadlock",
        "{Circle}: {story}. {Circle_end}",
        "pthread_mutex_lock(3)",
        circle=True,
        resources=("lock",),
    ),
    CauseRow(
        "joins",
        "lock-order-deadlock",
        "{Circle}: {story}. {Circle_end}",
        "pthread_join(3)",
        circle=True,
        resources=("thread",),
    ),
    CauseRow(
        "exit-circle",
        "destructor-or-teardown",
        "{Circle}: {story}. One of them is exiting. {Circle_end}",
        "CPython multiprocessing/util.py _exit_function, atexit(3)",
        circle=True,
        resources=("peer",),
        via=("ends",),
    ),
    CauseRow(
        "message-for-missing",
        "missing-rank",
        "{Circle}: {story}. {Circle_end}",
        "NVIDIA-NeMo/RL#2226: it waits for orders of a rank that waits for it in a collective",
        circle=True,
        resources=("peer", "collective"),
        via=("member",),
        sought=True,
    ),
    CauseRow(
        "messages",
        "other",
        "{Circle}: {story}. {Circle_end}",
        "pipe(7), waitpid(2): who should write, read or end waits for the one that waits for it",
        circle=True,
        resources=("peer",),
    ),
    CauseRow(
        "teardown",
        "destructor-or-teardown",
        "{Culprits} {are} tearing down a communicator ({where}) and {have} not returned. {Victims_wait}",
        "NVIDIA/nccl#829, #1013",
        circle=True,
        resources=("communicator", "collective"),
    ),
    CauseRow(
        "implicit",
        "implicit-sync-vs-collective",
        "{Culprits} {are} in {where}. That call waits until the device is idle, but the device is probably running a "
        "collective. {Victims} {wait} in {what} for a kernel that {culprits} cannot launch until the call returns.",
        "NVIDIA/nccl#48",
        circle=True,
        resources=("device", "collective"),
        via=_IMPLICIT,
    ),
    CauseRow(
        "lazy",
        "lazy-module-load-vs-collective",
        "{Culprits} {are} in {where}. That call waits until the device is idle, but the device is probably running a "
        "collective. {Victims} {wait} in {what} for a kernel that {culprits} cannot launch before its code is loaded.",
        "torchcomms PR#2334",
        circle=True,
        resources=("device", "collective"),
        via=("module-load",),
    ),
    CauseRow(
        "lazy-launch",
        "lazy-module-load-vs-collective",
        "{Culprits} {are} stuck in a kernel launch ({where}): under CUDA_MODULE_LOADING=LAZY the kernel must be "
        "loaded first, and loading waits for the device. {Victims} {wait} in {what} for work that was not launched.",
        "CUDA programming guide, lazy loading",
        circle=True,
        resources=("device", "collective"),
        via=("lazy launch",),
        most="medium",
    ),
    CauseRow(
        "launch",
        "launch-serialisation",
        "{Culprits} {are} stuck in a kernel launch ({where}): its launch queue is full behind a collective, or "
        "the kernel must be loaded first and loading waits for the device. {Victims} {wait} in {what} for work "
        "that was not launched.",
        "NVIDIA/nccl#750",
        circle=True,
        resources=("device", "collective"),
        via=("kernel-launch",),
        most="medium",
    ),
    CauseRow(
        "key",
        "missing-rank",
        "{Culprits} {wait_c} in {where} for a key of the store, which another rank must set. {Victims} {wait} in "
        "{what} for {culprits}. None of them can proceed.",
        "torch TCPStore.wait",
        circle=True,
        resources=("collective",),
        via=("seeks key",),
        sought=True,
    ),
    CauseRow(
        "set-up-elsewhere",
        "init-rendezvous",
        "{Culprits} {wait_c} in {where}. {Victims} {wait} in {what_where}, in a set-up that {culprits} must join: "
        "neither side can go on without the other.",
        "torch distributed/rpc/__init__.py",
        circle=True,
        resources=("rendezvous", "collective"),
        via=("set up elsewhere",),
        sought=True,
    ),
    CauseRow(
        "mismatch",
        "collective-mismatch",
        "The ranks are in {different}: {sides}. {Same}",
        "NVIDIA/nccl#857",
        circle=True,
        resources=("collective",),
        via=("called elsewhere",),
        few=True,
    ),
    CauseRow(
        "driver",
        "driver-bug",
        "{Culprits} {are} in a call into the GPU driver that does not return ({root}). The driver or the GPU is "
        "stuck; the driver's first error in the kernel log (dmesg) may tell why.",
        "NVIDIA Xid catalogue; pytorch/pytorch#60158",
        ends=("driver",),
        most="medium",
    ),
    CauseRow(
        "gil-kept",
        "gil-deadlock",
        "{Victims} {wait} for the GIL in {what_where}. {Who_was_read} {One_look} cannot "
        "show whether the thread that holds the GIL is stuck or only in a long call.",
        "CPython ceval_gil.c: a thread that computes gives it back every 5 ms",
        via=("kept",),
        ends=("thread",),
        most="low",
        everybody=True,
        blames=False,
    ),
    CauseRow(
        "forked",
        "fork-after-cuda",
        "{Culprits} {are_forked} and {wait_c} in {where} for a lock that {root} held, or a task that it was "
        "running, at the time of the fork. That thread does not exist in the child, so nobody releases the lock or "
        "finishes the task.",
        "torch.multiprocessing notes",
        via=("forked",),
        ends=("thread",),
        states=("dead",),
    ),
    CauseRow(
        "orphan",
        "other",
        "{Culprits} {wait_c} in {where} for a lock whose owner ended without releasing it: {root}. {Victims_wait}",
        "pthread_mutexattr_setrobust(3)",
        via=("ended",),
        ends=("thread",),
        states=("dead",),
    ),
    CauseRow(
        "peer-memory",
        "p2p-or-topology",
        "{Culprits} {are} opening another GPU's memory in {where} and {do} not return from the driver. {One_look} "
        "cannot tell direct access that does not work from a slow first mapping.",
        "NCCL user guide, troubleshooting",
        via=("peer memory",),
        ends=("device",),
        most="medium",
        everybody=True,
    ),
    CauseRow(
        "set-up",
        "init-rendezvous",
        "{Victims} {wait} in {what} for the other members. {Culprits_and_absent}, so the communicator cannot "
        "be set up.",
        "NVIDIA/nccl#1260",
        resources=("rendezvous",),
        ends=("rank", "process", "peer", "queue", "condition", "unknown"),
        states=_LASTING_STATES,
        peers=True,
    ),
    CauseRow(
        "set-up-alone",
        "init-rendezvous",
        "{Everybody} {are_all} setting up a communicator and {wait} in {what_where}, for the other members. It is not "
        "known which member has not arrived or cannot be reached.",
        "NVIDIA/nccl#1324",
        ends=("rendezvous",),
        most="medium",
        everybody=True,
        blames=False,
    ),
    CauseRow(
        "other-program",
        "other",
        "{Waiter} waits in {through} for {root}, which is {state}. {Others_wait}",
        "kill(1)",
        ends=("process",),
        states=("stopped",),
        blames=False,
    ),
    CauseRow(
        "lock-left",
        "other",
        "{Culprits} {wait_c} in {where} for a lock file, and {gone}: it was left behind, or its owner is in "
        "another container or on another host. {Victims_wait}",
        "torch/utils/file_baton.py",
        via=("left behind",),
        ends=("process",),
        states=("dead",),
        most="medium",
    ),
    CauseRow(
        "unopened",
        "other",
        "{Culprits} {open} a named pipe to write, in {where}, and {gone}. The call waits until one does. "
        "{Victims_wait}",
        "fifo(7)",
        via=("unopened",),
        ends=("process",),
        states=("dead",),
        most="medium",
    ),
    CauseRow(
        "not-read",
        "other",
        "{Victims} {wait} in {what_where} for room to write. The other end belongs to {culprits}, whose event loop is "
        "idle and does not watch it: whatever read from it there has ended or was paused.",
        "epoll_ctl(2), asyncio ReadTransport.pause_reading",
        via=("not read",),
        ends=("rank",),
        most="medium",
    ),
    CauseRow(
        "unasked",
        "other",
        "{Culprits} {wait_c} in {where} for completions of an io_uring, and {gone}. {Victims_wait}",
        "io_uring_enter(2)",
        via=("unasked",),
        ends=("process",),
        states=("dead",),
        most="medium",
    ),
    CauseRow(
        "exit-nobody",
        "destructor-or-teardown",
        "{Culprits} {are} exiting and {wait_c} in {where} for another process, which cannot end: {victims} {wait} in "
        "{what_where}, and {gone}.",
        "CPython multiprocessing/util.py _exit_function, atexit(3)",
        ends=("process",),
        states=("dead",),
        through=("ends",),
        most="medium",
    ),
    CauseRow(
        "own-wake-up",
        "other",
        "{Culprits} {wait_c} in {where} for events, and {gone}: the event loop has no timer and no connection, and the "
        "process has no other thread. Its tasks wait for each other, or for what nobody will give. {Victims_wait}",
        "asyncio selector_events.py, _self_reading; uvloop",
        via=("own wake-up",),
        ends=("process",),
        states=("dead",),
        most="medium",
    ),
    CauseRow(
        "nobody",
        "other",
        "{Culprits} {wait_c} in {where}, and {gone}: the process that should answer is gone. (The wait "
        "would end if the waiting process closed its own copy of the other end.) {Victims_wait}",
        "pipe(7)",
        ends=("process",),
        states=("dead",),
        most="medium",
    ),
    CauseRow(
        "stopped-member",
        "missing-rank",
        "{Victims} {wait} in {what_where} for {root}, which is {state}.",
        "kill(1)",
        resources=("peer",),
        ends=("rank",),
        states=("dead", "stopped"),
    ),
    CauseRow(
        "gone",
        "missing-rank",
        "{Victims} {wait} in {what}. {Culprits_and_absent}, so what the others wait for cannot complete.",
        "NVIDIA/nccl#585",
        resources=("collective",),
        ends=("rank",),
        states=("dead", "stopped"),
        peers=True,
    ),
    CauseRow(
        "stopped-holder",
        "other",
        "{Victims} {wait} in {what_where} for a lock that {root} holds, which is {state}.",
        "kill(1), proc_locks(5)",
        resources=("lock",),
        via=("holds",),
        ends=("rank",),
        states=("dead", "stopped"),
    ),
    CauseRow(
        "idle-peer",
        "missing-rank",
        "{Victims} {wait} in {what}; {culprits} {wait_c} in {where} for work, a message or a connection. Either that "
        "did not arrive, or the ranks disagree about the number of steps.",
        "vllm-project/vllm#27313",
        resources=("collective",),
        ends=("rank",),
        states=("idle",),
        most="low",
        peers=True,
    ),
    CauseRow(
        "leader",
        "missing-rank",
        "{Victims} {wait} in {what_where} until the first rank, usually rank 0, has finished work that it does alone. "
        "Often that is data preparation that takes longer than the timeout.",
        "NVIDIA/nccl#865",
        via=("leader first",),
        most="low",
        blames=False,
    ),
    CauseRow(
        "local",
        "missing-rank",
        "{Victims} {wait} on the CPU until all ranks of the process have made the same call ({where}). A "
        "local rank has not made it: no thread drives that GPU.",
        "h2oai/h2o4gpu#773",
        via=("local rank",),
        most="low",
        blames=False,
    ),
    CauseRow(
        "starved",
        "missing-rank",
        "{Culprits} {wait_c} for input data in {where} and {are} in no collective. It belongs to a distributed job: "
        "the other ranks will wait for it at the next collective.",
        "pytorch/pytorch#87995",
        via=("next collective",),
        most="low",
    ),
    CauseRow(
        "elsewhere",
        "missing-rank",
        "{Victims} {wait} {in_what}; {behind} {have_behind} not reached {it}. {Culprit_is_in}",
        "pytorch/pytorch#87995",
        resources=("collective",),
        states=("external",),
        peers=True,
    ),
    CauseRow(
        "teardown-alone",
        "destructor-or-teardown",
        "{Culprits} {are} still tearing down {torn} in {where}. Either the call waits for unfinished GPU work or a "
        "thread that has not exited, or it was made after the driver had shut down.",
        "NVIDIA/nccl#829",
        ends=("communicator",),
        most="medium",
    ),
    CauseRow(
        "ending",
        "destructor-or-teardown",
        "{Culprits} {wait_there} in {where}{during}. {Awaited} {Unclear}",
        "std::thread, atexit(3), threading._shutdown",
        ends=("object",),
        most="low",
        everybody=True,
    ),
    CauseRow(
        "lock-file",
        "other",
        "{Culprits} {wait_c} in {where} for a lock file: another process holds the lock, or one that has exited left "
        "the file behind.",
        "flock(2); torch/utils/file_baton.py",
        via=("file lock",),
        ends=("file",),
        most="low",
        everybody=True,
    ),
    CauseRow(
        "held-outside",
        "other",
        "{Waiter} waits in {through} for a lock held by {root}, which is not a process of this job. {One_look} cannot "
        "tell whether it will release the lock. {Others_wait}",
        "proc_locks(5), proc_pid_fdinfo(5)",
        resources=("lock",),
        via=("holds",),
        ends=("process",),
        states=("external",),
        most="low",
        blames=False,
    ),
    CauseRow(
        "launches",
        "launch-serialisation",
        "{Culprits} {are} stuck in {where}: launches are blocking (CUDA_LAUNCH_BLOCKING=1), or the launch queue is "
        "full. The launch of a collective can then wait for a peer that waits for this rank.",
        "NVIDIA/nccl#750",
        via=("blocked launch",),
        ends=("device",),
        most="medium",
        everybody=True,
    ),
)
"""A new cause, or a new way to it, is a row; the first that fits counts."""

MIN_SHOWN_SHARE = 0.5
"""Share of the stuck ranks that another hypothesis must explain to be told as an alternative."""
