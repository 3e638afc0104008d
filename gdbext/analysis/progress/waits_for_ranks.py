"""Who waits for other ranks, and who may be at work outside of any communication."""

from __future__ import annotations

from typing import Iterator, List, Sequence

from gdbext.analysis.stacks.thread_kind import BUSY
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, parties_without
from gdbext.analysis.view.wording import who
from gdbext.knowledge.causes.slow import CHILD_CPU, NO_RATE
from gdbext.knowledge.frames.python.python_libraries import DONE_BY_POOLS
from gdbext.knowledge.labels import OF_ITS_OWN
from gdbext.model.codes import Given, ReadState
from gdbext.model.verdict import Evidence

# A thread that sits in one of these does nothing for the job; in the others it may be making progress.
_STANDS = ("ipc-queue", "condvar-idle", "mutex", "gil", "exited-or-crashed", "sigbus", "cuda-error-throw")


def waiting_for_others(view: JobView) -> List[Party]:
    """Ranks in a collective, or waiting for the GPU, which may run one."""
    return parties_without(view.of(*COMMUNICATION), view.gone)


def sleeps_on(away: Sequence[Party]) -> Iterator[Evidence]:
    """For how long those outside have asked to sleep."""
    for party in away:
        ends = party.thread.sleeps if party.thread is not None else None
        if ends is not None:
            text = f"{who([party])} has asked to sleep, for {ends:,.0f} s more at most"
            yield Evidence(text, party.index, party.id or None)


def waits_for_absent_pool(party: Party) -> bool:
    """Whether the only thread of a process sleeps in a call whose work a library's pool of threads does."""
    thread = party.thread
    if party.judged.rule not in DONE_BY_POOLS or thread is None or len(party.process.threads) > 1:
        return False
    activity = party.process.activity
    busy = (thread.cpu or 0.0) >= NO_RATE or (activity is not None and activity.child_lives)
    return party.process.given is Given.LIVE and thread.state == "S" and not busy


def may_progress(party: Party) -> bool:
    """Computing, or running Python code: slow looks like this as well."""
    used = party.thread.cpu if party.thread is not None else None
    if party.kind in _STANDS:
        return party.kind == "gil" and (used or 0.0) >= CHILD_CPU  # it had it: to wait for it takes next to nothing
    if waits_for_absent_pool(party):
        return False
    if party.kind in OF_ITS_OWN and _is_half_read(party):
        return True
    return party.kind == "native-compute" or (used or 0.0) >= BUSY or (party.judged.running and party.kind != "io")


def _is_half_read(party: Party) -> bool:
    """Whether gdb was too slow to read more of a live process than its Python functions: it may well run."""
    process, thread = party.process, party.thread
    partial = process.given is Given.LIVE and process.state == ReadState.PARTIAL
    return partial and thread is not None and thread.state is None and thread.switches is None
