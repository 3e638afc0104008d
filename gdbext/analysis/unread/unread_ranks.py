"""What can be said of ranks that nobody could read: states, processor time and the place in the kernel, by /proc alone.

That proves little, and no more is claimed. Only a rank that is stopped, dead or not there decides by itself.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from gdbext.analysis.stacks.decisive import is_main
from gdbext.analysis.stacks.thread_kind import BUSY
from gdbext.analysis.view.candidate import MOST_EVIDENCE, Candidate
from gdbext.analysis.view.job_view import JobView, Party, parties_without
from gdbext.analysis.view.wording import label_list, start, verb, who
from gdbext.knowledge.causes.slow import NO_RATE
from gdbext.model.job import RankSnapshot, Refusal
from gdbext.model.stack import ThreadStack
from gdbext.model.text.ranges import ranks
from gdbext.model.verdict import Evidence, Remedy


class _Fact(NamedTuple):
    """One statement on one rank; equal ones of several ranks become one line."""

    weight: int  # the most telling first
    text: str  # {who}, {is} and {cpu} are put in
    process: RankSnapshot
    thread: Optional[ThreadStack] = None
    cpu: float = 0.0


def out_of_reach(view: JobView) -> Optional[Candidate]:
    """No stack of any rank that lives could be read."""
    closed = [process for process in view.snapshot.processes if process.outlined]
    if not closed or parties_without(view.parties, view.gone):
        return None
    gone = {party.index for party in view.gone}
    others = [process for process in closed if process.index not in gone]
    reason = f"{labels(others or closed)} could not be read: {_why(others or closed).text}."
    away = _not_there(view)
    if view.gone and others:
        part = verb(view.gone, "it", "them")
        summary = f"{start(away)}, so no operation that needs {part} can complete. {start(reason)}"
        confidence = "medium" if all(map(_asleep, others)) else "low"
        return Candidate(cause="missing-rank", confidence=confidence, summary=summary, culprits=view.gone)
    absent = view.snapshot.absent  # of those that were asked for: the others may be there all the same
    missing = f" No process of {ranks(absent)} was found." if absent else ""
    return Candidate(
        cause="unknown",
        confidence="low",
        summary=f"{start(reason)}{f' {start(away)}.' if away else ''}{missing}",
    )


PATTERNS = (out_of_reach,)


def how_to_read(view: JobView, best: Candidate) -> Tuple[Remedy, ...]:
    """What makes the ranks readable: before that no other advice is worth much."""
    closed = [process for process in view.snapshot.processes if process.outlined]
    remedy = _why(closed).remedy if closed else ""
    if not remedy or best.cause != "unknown":
        return ()
    return (Remedy(start(remedy), f"then gdbext can read the stacks of {labels(closed)}, which may show the cause"),)


def unread_evidence(view: JobView) -> Tuple[Evidence, ...]:
    """What the kernel says of the ranks that could not be read, equal statements together."""
    groups: Dict[Tuple[int, str], List[_Fact]] = {}
    for process in view.snapshot.processes:
        for fact in _facts(process) if process.outlined else ():
            groups.setdefault((fact.weight, fact.text), []).append(fact)
    lines = []
    for (_, text), facts in sorted(groups.items(), key=lambda item: item[0][0]):
        first = facts[0]
        one = len({fact.process.index for fact in facts}) == 1
        least = min(fact.cpu for fact in facts)
        said = text.replace("{cpu}", f"{least:.0%} of a core{'' if one else ' or more'}")
        said = said.replace("{is}", "is" if one else "are")
        said = said.replace("{who}", labels([fact.process for fact in facts]))
        lines.append(Evidence(said, first.process.index, first.thread.id if first.thread is not None else None))
    return tuple(lines[:MOST_EVIDENCE])


def labels(processes: List[RankSnapshot]) -> str:
    """`ranks 0-2,5` or `pid 4711`."""
    numbers = [process.rank for process in processes if process.rank is not None]
    if len(numbers) == len(processes):
        return ranks(numbers)
    return label_list([process.label for process in processes])


def _why(processes: List[RankSnapshot]) -> Refusal:
    """Why they could not be read, and what to do about it, as the look found it."""
    refusals = (one.refusal or Refusal(problem) for one in processes for problem in one.problems[:1])
    return next(refusals, Refusal("no reason was reported"))


def _not_there(view: JobView) -> str:
    """Who is missing for certain."""
    stopped = [party for party in view.gone if party.group == "stopped"]
    dead = [party for party in view.gone if party.group != "stopped"]
    return " and ".join(filter(None, (_said(stopped, "stopped by a signal (state T)"), _said(dead, "dead"))))


def _said(parties: List[Party], what: str) -> str:
    return f"{who(parties)} {verb(parties, 'is', 'are')} {what}" if parties else ""


def _facts(process: RankSnapshot) -> Iterator[_Fact]:
    states = {thread.state for thread in process.threads}
    if states == {"T"}:
        yield _Fact(0, "{who} {is} stopped by a signal (state T)", process)
        return
    for thread in process.threads:
        name = "the main thread" if is_main(process, thread) else f"a thread {thread.name or thread.id}"
        if thread.state == "D":
            where = f" in {thread.wchan}" if thread.wchan else ""
            lasts = ", without a break between two samples" if thread.switches == 0 else ""
            text = f"{name} of {{who}} sleeps uninterruptibly in the kernel{where} (state D){lasts}"
            yield _Fact(1, text, process, thread)
        elif (thread.cpu or 0) >= BUSY:
            text = f"{name} of {{who}} used {{cpu}}: it computes or polls"
            yield _Fact(2 if is_main(process, thread) else 4, text, process, thread, thread.cpu or 0)
        elif thread.state == "R":  # on a busy machine one that never stops gets little
            used = "" if thread.cpu is None else ", and used {cpu}"
            yield _Fact(4, f"{name} of {{who}} runs, or waits for a processor{used}", process, thread, thread.cpu or 0)
        elif thread.state == "S" and thread.wchan and is_main(process, thread):
            yield _Fact(5, f"{name} of {{who}} sleeps in {thread.wchan}", process, thread)
    counted = [thread.cpu for thread in process.threads if thread.cpu is not None]
    if _asleep(process):
        yield _Fact(3, "all threads of {who} sleep, and used no CPU between two samples", process)
    elif states <= {"S", "I"} and not counted:
        yield _Fact(3, "all threads of {who} were asleep in the only sample", process)
    elif states <= {"S", "I"} and max(counted) < BUSY:
        yield _Fact(
            3, "all threads of {who} sleep most of the time: together they used {cpu}", process, None, sum(counted)
        )


def _asleep(process: RankSnapshot) -> bool:
    """It was looked at twice, and did nothing."""
    return all(
        thread.state in ("S", "I") and thread.cpu is not None and thread.cpu < NO_RATE for thread in process.threads
    )
