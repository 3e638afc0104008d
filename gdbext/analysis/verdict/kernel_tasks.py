"""Sentences about tasks of the kernel's log, beside what they wait for."""

from __future__ import annotations

from typing import Dict, List, Sequence

from gdbext.analysis.stacks.text_kind import blocked_for, ending
from gdbext.analysis.view.candidate import Candidate
from gdbext.analysis.view.job_view import JobView, Party
from gdbext.analysis.view.places import in_places, waits_in
from gdbext.analysis.view.wording import called, label_list, start, verb, who
from gdbext.knowledge.causes.task_endings import HOLDER_OPEN, IN_DRIVER
from gdbext.knowledge.frames.system.linux_kernel import GPU_MODULE, KERNEL
from gdbext.model.codes import KERNEL_TEXT
from gdbext.model.job import RankSnapshot
from gdbext.model.text.patterns import regex

_MOST_SPANS = 2
_DRIVER = regex(GPU_MODULE)


def beside_waits(view: JobView, best: Candidate) -> str:
    """That the tasks of the answer end, and how long the kernel found the tasks of the text blocked."""
    if not any(process.source == KERNEL_TEXT for process in view.snapshot.processes):
        return ""
    blamed = best.culprits or best.victims or view.parties
    return " ".join(filter(None, [_endings(blamed), _blocked(view.snapshot.processes)]))


def _endings(parties: Sequence[Party]) -> str:
    """Of one who dies the stack is told with its end."""
    known: Dict[str, List[Party]] = {}
    for party in parties:
        row = ending(party.thread) if party.group != "fatal" else None
        if row is not None:
            known.setdefault(row.does, []).append(party)
    plural = ("is ", "are ") if len(parties) > 1 else ("", "")
    return " ".join(
        f"{start(who(some))} {does if len(some) == 1 else does.replace(*plural, 1)}." for does, some in known.items()
    )


def _blocked(processes: Sequence[RankSnapshot]) -> str:
    """The longest spans first."""
    spans: Dict[int, List[str]] = {}
    for process in processes:
        spans.setdefault(blocked_for(process), []).append(called(process))
    told = sorted((seconds for seconds in spans if seconds), reverse=True)[:_MOST_SPANS]
    if not told:
        return ""
    if len(processes) == 1:
        return f"The kernel reported this task blocked for more than {told[0]} seconds."
    first, *rest = [(label_list(spans[seconds]), f"for more than {seconds} seconds") for seconds in told]
    text = f"The kernel reported {first[0]} blocked {first[1]}"
    return "".join([text, *(f", and {names} {span}" for names, span in rest), "."])


def waits_for_lock(parties: Sequence[Party]) -> bool:
    """Whether one of them waits for a kernel lock."""
    return any(map(_is_locked, parties))


def several_tasks(parties: Sequence[Party]) -> str:
    """Where tasks stand of which some wait for kernel locks, and which of the others are in the GPU driver."""
    locked = [party for party in parties if _is_locked(party)]
    others = [party for party in parties if not _is_locked(party) and _in_driver(party)]
    text = HOLDER_OPEN.format(lock="this kernel lock" if len(locked) == 1 else "these kernel locks")
    if others:
        text += f"; {IN_DRIVER.format(others=who(others), are=verb(others, 'is', 'are'))}"
    return f"{start(in_places(parties))}. {text}."


def _is_locked(party: Party) -> bool:
    return party.kind == "mutex" and waits_in(party, KERNEL)


def _in_driver(party: Party) -> bool:
    return party.thread is not None and any(_DRIVER.match(frame.library or "") for frame in party.thread.calls)
