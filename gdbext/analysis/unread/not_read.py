"""What was not read and would have helped: said with every verdict."""

from __future__ import annotations

from typing import List, Tuple

from gdbext.analysis.unread.open_stacks import not_read
from gdbext.analysis.unread.unread_ranks import labels
from gdbext.analysis.view.candidate import Candidate
from gdbext.analysis.view.job_view import JobView, calls_of
from gdbext.analysis.view.wording import who
from gdbext.knowledge.causes.remedies.remedy_constants import APPLE
from gdbext.model.codes import Given, ReadState
from gdbext.model.missing import Missing
from gdbext.model.stack import ThreadStack
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import ranks

_MOST = 8
_OF_ONE_GPU = regex(APPLE)

_SECOND = {
    Given.LIVE: "missing: a second sample, seconds later; one sample cannot tell slow from stuck",
    Given.CORE: "a core file shows one moment: it cannot tell slow from stuck",
    Given.TEXT: "missing: a second dump, seconds later; one dump cannot tell slow from stuck",
    "log": "missing: stacks of the ranks; log lines do not show where a process is",
}


def missing_lines(view: JobView, best: Candidate) -> Tuple[str, ...]:
    """Lines for people, the most useful first."""
    lines: List[str] = []
    snapshot = view.snapshot
    of_one_gpu = bool(view.parties) and all(any(map(_OF_ONE_GPU.match, calls_of(party))) for party in view.parties)
    if len(snapshot.processes) == 1 and not view.threads_as_ranks and not of_one_gpu:
        lines.append("missing: stacks of the other ranks (only one process was seen)")
    elif view.world_size and len(snapshot.processes) + len(snapshot.absent) < view.world_size:
        lines.append(f"{view.world_size - len(snapshot.processes)} of {view.world_size} ranks were not seen")
    unseen = [process for process in view.unseen if not process.outlined]
    if unseen:
        lines.append(f"missing: the main threads of {labels(unseen)}")
    lost = [
        process.rank for process in snapshot.processes if process.state == ReadState.LOST and process.rank is not None
    ]
    if lost:
        lines.append(f"{ranks(lost)} could not be read")
    lines += not_read(view)
    lines += _cut_short(view)
    if (
        view.given is not Given.LOG
        and not _has_times(view)
        and not any(process.outlined for process in snapshot.processes)
    ):
        lines.append("missing: CPU time and state of the threads, so spinning looks like being blocked")
    if view.given is not Given.LOG and not _has_communicators(view):
        lines.append("missing: NCCL's communicators (no symbols were found); equal calls count as the same collective")
    if not view.has_two_looks and (best.cause in ("unknown", "not-a-hang") or best.confidence == "low"):
        of_core = all(process.source == "text:coredump" for process in snapshot.processes)
        lines.append(_SECOND.get(Given.CORE if of_core else view.given, _SECOND[Given.LIVE]))
    return tuple(lines[:_MOST])


def _cut_short(view: JobView) -> List[str]:
    """Stacks that end inside a library before any call that says what is waited for."""
    short = [
        party for party in view.parties if party.kind == "unknown" and party.thread and _only_nameless(party.thread)
    ]
    return [f"missing: outer frames of {who(short)}; the stack ends inside a library without symbols"] if short else []


def _only_nameless(thread: ThreadStack) -> bool:
    outermost = thread.calls[-1] if thread.calls else None
    return outermost is not None and outermost.function is None and bool(outermost.library)


def _has_times(view: JobView) -> bool:
    return any(
        party.thread is not None and (party.thread.state or party.thread.cpu is not None) for party in view.parties
    )


def _has_communicators(view: JobView) -> bool:
    inside = [party for party in view.parties if party.in_collective and party.judged.kind != "gloo"]
    if any(one.readable for process in view.snapshot.processes for one in process.communicators):
        return True
    return not inside or any(
        value is not None and not isinstance(value, Missing)
        for party in inside
        for value in party.judged.captures.values()
    )
