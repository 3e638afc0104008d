"""How each state at which a wait ends is recognised, and what to do about it: for `gdbext explain`. Rows, no logic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class EndState:
    """`state` is a key of model/waits.py STATES; `action` and `reason` are the advice."""

    state: str
    seen: Tuple[str, ...]
    action: str
    reason: str
    source: str


END_STATES: Tuple[EndState, ...] = (
    EndState(
        "dead",
        (
            "the process no longer exists, is a zombie (state Z), or was never started",
            "the thread is in a fatal signal's handler, or in abort() or terminate()",
            "a lock's owner is a thread id that its process does not have",
        ),
        "Look for the first error in its log, and for `oom-kill` and `segfault` in the kernel's log",
        "the ranks that wait are victims: what ended this process is the cause",
        "proc(5); wait(2)",
    ),
    EndState(
        "stopped",
        ("every thread of the process is in state T: SIGSTOP, SIGTSTP, or a debugger that was killed",),
        "kill -CONT PID resumes it; `TracerPid` in /proc/PID/status names a debugger that still holds it",
        "nothing else resumes a stopped process",
        "proc(5); signal(7)",
    ),
    EndState(
        "idle",
        (
            "a frame in which the engine's workers wait for their next order, and no user frame further in",
            "a queue, a socket's accept or an epoll that another process feeds",
        ),
        "Look at the process that should send the order: the front end, the scheduler or rank 0",
        "a job whose ranks are all idle does not hang; an idle rank among waiting ones did not get its order",
        "vllm-project/vllm#27313",
    ),
    EndState(
        "progressing",
        (
            "the kernel's counters of bytes, pages or child processes grew between two samples",
            "in the second sample the thread was at a different place, or had returned from a call that returns only "
            "when it is done",
            "it computes on the CPU",
        ),
        "Wait, or measure: `gdbext diagnose --samples 3 --interval 10` shows whether it finishes",
        "slow is not stuck; bare wake-ups of pollers and heartbeats do not count as progress",
        "proc(5), io and stat",
    ),
    EndState(
        "spinning",
        ("it ran at one place for --spinning-after seconds (20) while the others waited and did not move",),
        "Look at the loop that its user frames name: `gdbext stacks PID` shows its whole stack",
        "an endless loop looks like a long computation: only a longer observation tells them apart",
        "gdbext/analysis/progress/running.py",
    ),
    EndState(
        "faulted",
        (
            "a CUDA, NCCL or MPI error is being thrown, SIGBUS, an Xid, ECC or NVML error of its GPU",
            "a thread sleeps uninterruptibly (state D) in the kernel's GPU driver",
        ),
        "Read the kernel's log (dmesg) for Xid lines; `gdbext error NAME` explains the error",
        "what failed on the device was launched before the call that reports it",
        "NVIDIA Xid catalogue; CUDA runtime API, error codes",
    ),
    EndState(
        "external",
        ("a file, a pipe, a socket, a timer or a program that was not read",),
        "Follow the other end: the chain names its file, pid or address; diagnose that pid as well",
        "what happens there is not visible from these processes",
        "proc(5), fd and net",
    ),
    EndState(
        "unread",
        (
            "it ran during a sample with --no-stop, permission was refused, or a limit was reached",
            "no rule of gdbext matches the names of its frames",
        ),
        "Run it again without --no-stop, as the same user or root, or with debug symbols",
        "gdbext makes no claim about a rank that it could not read",
        "ptrace(2)",
    ),
)
"""One row for each state."""
