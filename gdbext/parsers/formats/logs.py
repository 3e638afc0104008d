"""Log lines beside stacks: who wrote them, and which of them are evidence."""

from __future__ import annotations

from typing import Match, Optional, Tuple

from gdbext.knowledge.frames import MESSAGES
from gdbext.knowledge.logs import LAUNCHER_SAW, LOG_RULES, RANK
from gdbext.model.patterns import either, regex
from gdbext.parsers.events import Event, ProcessHead, Said
from gdbext.parsers.formats.row import Row, row

_EVIDENCE = either((*(rule.pattern for rule in MESSAGES), *(rule.pattern for rule in LOG_RULES)))
_NEEDS = (
    "rror",
    "heck failed",
    "ssertion fail",
    "non NULL",
    "ignal",
    "SIG",
    "BUS_",
    "WARN",
    "atchdog",
    "WatchDog",
    "imeout",
    "imed out",
    "ault",
    "bort",
    "store",
    "TATUS",
    "Xid",
    "Active",
    "terminate",
    "left on",
    "memory",
    "onitoredBarrier",
    "waiting for",
    "mismatch",
    "exitcode",
    "oom-kill",
    "Killed",
    "GIL within",
    "P2P between",
    "mapping resources",
    "NET/IB",
    "ibv_",
    "IBV_WC",
    "onnection",
    "No available",
    "shm",
    "ncorrectable",
    "unexpectedly",
    "oticed that process",
    "uplicate GPU",
    "ismatched NCCL",
    "terminated with",
    "is dead",
    "srun: error",
    "no socket interface",
    "o usable interface",
    "exit type",
    "missing ranks",
    "CUDA_ERROR_",
    "HIP_ERROR",
    "forked subprocess",
    "launch failure",
    "panicked at",
    "misaligned",
    "device-side",
    "GPU reset",
    "evict queue",
    "sq_intr",
    "ring ",
    "abnormally",
    "Process-",
)
_LONGEST = 2000
_FATAL = "Fatal Python error"
_WRITER = regex(r"(?:\[[\d :.,-]{8,40}\] )?\[?(?P<host>[\w.-]{1,80}):(?P<pid>\d{1,9})[\s:]")
_LAUNCHER_SAW = regex(LAUNCHER_SAW)
_RANK = regex(RANK + r"|^[\w.]*:? ?\[(?P<setting_up>\d{1,6})\] is setting up NCCL communicator")


def said(text: str) -> Optional[Said]:
    """The line as evidence, if it is."""
    if not any(need in text for need in _NEEDS):
        return None
    short = text[:_LONGEST].strip()
    if not _EVIDENCE.search(short):
        return None
    writer, rank = _WRITER.match(short) or _LAUNCHER_SAW.search(short), rank_in(short)
    pid = int(writer.group("pid")) if writer else None
    return Said(short, pid, rank, "next" if _is_head(short) else "", short.startswith(_FATAL))


def rank_in(text: str) -> Optional[int]:
    """The rank that torch's messages name as their own."""
    found = _RANK.search(text[:_LONGEST])
    return int(found.group("rank") or found.group("setting_up")) if found else None


def _is_head(text: str) -> bool:
    """Whether a stack of the thread that is spoken of follows."""
    return text.startswith(_FATAL) or "Caught signal" in text or "*** SIG" in text


def _any(match: Match[str]) -> Optional[Event]:
    return said(match.string)


def _dump(match: Match[str]) -> Event:
    return ProcessHead(pid=int(match.group("pid")))


def _writer(match: Match[str]) -> Event:
    evidence = said(match.string[match.end() :].strip())
    return evidence or ProcessHead(writer=match.group("tag"), firm=False)


def _child(match: Match[str]) -> Event:
    return Said(match.string.strip())


def _coredump(match: Match[str]) -> Event:
    return Said(match.string.strip()[:_LONGEST], int(match.group("pid")))


def _exit_code(match: Match[str]) -> Event:
    return Said(match.string.strip()[:_LONGEST], int(match.group("pid")), int(match.group("rank")))


def _reaped(match: Match[str]) -> Event:
    """A shell tells how its job ended: `script: line 28:  8156 Killed   python3 main.py`."""
    return Said(match.string.strip()[:_LONGEST], int(match.group("pid")))


_STAMP = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,6})?"
ROWS: Tuple[Row, ...] = (
    row("", "dump for PID ", r".{0,120}(?:Pyspy|py-spy) dump for PID (?P<pid>\d{1,9})", _dump),
    row(
        "",
        ": line ",
        r".{1,200}: line \d{1,6}: {1,6}(?P<pid>\d{1,9}) (?:Killed|Aborted|Segmentation fault|Bus error|Terminated)\b",
        _reaped,
    ),
    row("", "Process-", r"Process \S{0,60}Process-\d{1,6}(?::\d{1,6})*:$", _child),
    row(
        "",
        "terminated abnormally",
        r".{0,200}Process (?P<pid>\d{1,9}) \(.{1,64}\) of user \d+ terminated abnormally",
        _coredump,
    ),
    row(
        "",
        "(exitcode: ",
        r".{0,200}failed \(exitcode: -?\d{1,4}\) local_rank: (?P<rank>\d{1,6}) \(pid: (?P<pid>\d{1,9})\)",
        _exit_code,
    ),
    row("", "[20", _STAMP + r" (?P<tag>(?:(?:DP|PP|TP|EP|CP|ATTN_CP|MOE_DP)\d+ ?)+)\]", _writer),
    row("", "", r".", _any),
)
