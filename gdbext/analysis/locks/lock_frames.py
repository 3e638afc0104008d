"""Waits for locks as the frames of a text tell them: who waits, and what for; owners only where the text names one."""

from __future__ import annotations

from typing import Iterator, List, Optional, Sequence, Tuple

from gdbext.analysis.view.job_view import JobView, Party, threads_of
from gdbext.analysis.view.places import taken_in
from gdbext.knowledge.runtimes.glibc_locks import NO_OWNER, kind_of_call
from gdbext.model.locks import LockRow, LockWait
from gdbext.model.missing import Maybe, Missing

NO_MEMORY = "a text shows no memory"

_MAY_WAIT = {"mutex": "mutex", "gil": "gil", "condvar-idle": None}
"""Labels of threads that may wait for another one, and for what where no frame says it more exactly."""


def is_text(source: str) -> bool:
    """Whether a process was read from a text (`text:py-spy`)."""
    return source.split(":")[0] == "text"


def waits_of(view: JobView, indexes: Sequence[int]) -> Tuple[List[LockRow], List[str]]:
    """Waits that have an owner, known or not, and the kinds of those that never have one."""
    rows: List[LockRow] = []
    ownerless: List[str] = []
    for index in indexes:
        threads = list(threads_of(view, index))
        holder = next((one for one in threads if one.thread is not None and one.thread.gil), None)
        for party, kind in _waiting(threads):
            if kind in NO_OWNER:
                ownerless.append(kind)
            else:
                rows.append(_row(party, kind, holder if kind == "gil" else None))
    return rows, ownerless


def _waiting(threads: Sequence[Party]) -> Iterator[Tuple[Party, str]]:
    for party in threads:
        kind = _kind(party)
        if kind is not None:
            yield party, kind


def _kind(party: Party) -> Optional[str]:
    """What the thread waits for, a key of model/locks.py KINDS; None where that is no other thread."""
    label, decisive = party.judged.kind, party.judged.frame
    if label not in _MAY_WAIT or party.thread is None or decisive is None:
        return None
    if label == "gil":
        return label
    # The C library's call may stand behind a helper of its own, which decided.
    found = (kind_of_call(frame.function or "") for frame in party.thread.calls[: decisive + 2])
    return next(filter(None, found), _MAY_WAIT[label])


def _row(party: Party, kind: str, holder: Optional[Party]) -> LockRow:
    thread = party.thread
    assert thread is not None
    owner: Maybe[int] = Missing(NO_MEMORY)
    name, does = "", f"unknown: {NO_MEMORY}"
    if holder is not None and holder.thread is not None and holder.thread is not thread:
        owner = holder.thread.lwp or Missing("the text does not say the holder's LWP")
        name = f"thread {holder.thread.id}" + (f" ({holder.thread.name})" if holder.thread.name else "")
        does = f"is in {taken_in(holder)}"
    wait = LockWait(thread=thread.lwp or 0, kind=kind, address=0, owner=owner)
    return LockRow(
        process=party.index,
        label=party.process.label,
        thread=thread.id,
        name=thread.name or "",
        wait=wait,
        where=taken_in(party),
        owner=name,
        owner_does=does,
    )
