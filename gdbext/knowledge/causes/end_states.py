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
    causes: Tuple[str, ...] = ()  # that more than the rows of wait_causes.py end in it


END_STATES: Tuple[EndState, ...] = (
    EndState(
        "dead",
        (
            "the process no longer exists, is a zombie (state Z), or was never started",
            "the thread is in a fatal signal's handler, or in abort() or terminate()",
            "a lock's owner is a thread id that its process does not have",
        ),
        "Look for the first error in the log of that process, and for `oom-kill` and `segfault` in the kernel's log "
        "(dmesg)",
        "the waiting ranks are victims; the cause is whatever ended that process",
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
            "the innermost frame of the program is one where the engine's workers wait for their next command",
            "it waits for a queue, in accept() or in epoll, where another process delivers the work",
        ),
        "Look at the process that should send the command: the front end, the scheduler or rank 0",
        "if all ranks are idle, nothing hangs; if the others wait, the idle rank did not get its command",
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
        "slow is not stuck; wake-ups of pollers and heartbeats do not count as progress",
        "proc(5), io and stat",
        causes=("not-a-hang",),
    ),
    EndState(
        "spinning",
        ("it ran at one place for --spinning-after seconds (20) while the others waited and did not move",),
        "Print its stack twice, a minute apart (`gdbext stacks PID`), and look at the loop in the innermost source "
        "lines: if the loop's variables do not change, it is endless",
        "an endless loop looks like a long computation; only a longer observation can tell them apart",
        "measured on the demo engine (docs/waits.md)",
        causes=("missing-rank",),
    ),
    EndState(
        "faulted",
        (
            "it is throwing because of a CUDA, NCCL or MPI error, got SIGBUS, or its GPU has an Xid, ECC or NVML error",
            "a thread sleeps uninterruptibly (state D) in the kernel's GPU driver",
        ),
        "Read the kernel's log (dmesg) for Xid lines; `gdbext error cudaErrorIllegalAddress` explains an error by name",
        "the call that reports the error is rarely the one that caused it; the kernel's log has the time and the kind",
        "NVIDIA Xid catalogue; CUDA runtime API, error codes",
        causes=("gpu-fault", "driver-bug"),
    ),
    EndState(
        "external",
        ("it waits for a file, a pipe, a socket, a timer or a program that gdbext did not read",),
        "Look at the end of the chain, which names the file, pid or address: for a pid run `gdbext diagnose PID`",
        "the inspected processes do not show what happens there",
        "proc(5), fd and net",
    ),
    EndState(
        "unread",
        (
            "it was running during a sample with --no-stop, permission was refused, or a limit was reached",
            "no rule of gdbext matches its function names",
        ),
        "Run gdbext again without --no-stop, as the user of the ranks or as root, or with debug symbols",
        "gdbext makes no claim about a rank that it could not read",
        "ptrace(2)",
    ),
)
"""One row for each state."""
