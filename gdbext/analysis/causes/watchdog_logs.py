"""What watchdogs report: torch's, one per process group, and Horovod's coordinator."""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from gdbext.analysis.logs.lines_of_logs import all_lines, lines, waited_in_vain
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, parties_of_ranks, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, label_list, start, who
from gdbext.knowledge.labels import WAIT_GROUPS
from gdbext.knowledge.log_lines import GROUP, PROGRESS, RANK, READY, TIMED_OUT, UNEVEN
from gdbext.knowledge.log_lines.timeouts_and_warnings import WATCHDOG_RAISED
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import numbers_in, ranks

_TIMED_OUT, _PROGRESS, _GROUP, _RANK, _READY = map(regex, (TIMED_OUT, PROGRESS, GROUP, RANK, READY))
_RAISED = regex(WATCHDOG_RAISED)
_LONGEST = 80  # name of a tensor
_ONE_SIDED = ("SEND", "RECV", "COALESCED", "UNKNOWN")


class _Group(NamedTuple):
    """What the watchdogs of one process group say: by rank the operation that timed out, and how far it got."""

    timed_out: Dict[int, Tuple[int, str, Optional[int]]]  # (sequence number, operation, elements)
    enqueued: Dict[int, int]
    named: bool  # the lines name the group: without it groups of one rank may be mixed up


def told_by_watchdog(view: JobView) -> Optional[Candidate]:
    """Ranks of one process group timed out in different operations, or some never enqueued what the others wait for."""
    for group in _groups(view).values():
        found = (
            _different_operations(view, group)
            or _lagging_rank(view, group)
            or _died_before(view, group)
            or _silent_ranks(view, group)
        )
        if found is not None:
            return found
    return None


def _groups(view: JobView) -> Dict[str, _Group]:
    groups: Dict[str, _Group] = {}
    for process, text in all_lines(view):
        timed_out, progress = _TIMED_OUT.search(text), _PROGRESS.search(text)
        if not (timed_out or progress):
            continue
        name, own = _GROUP.search(text), _RANK.search(text)
        rank = process.rank if process is not None and process.rank is not None else None
        if rank is None and own is not None:
            rank = int(own.group("rank"))
        if rank is None:
            continue
        group = groups.setdefault(name.group("group") if name else "", _Group({}, {}, bool(name)))
        if timed_out:
            count = timed_out.group("count")
            operation = (int(timed_out.group("seq")), timed_out.group("op"), int(count) if count else None)
            group.timed_out.setdefault(rank, operation)
        if progress:
            group.enqueued.setdefault(rank, int(progress.group("enqueued")))
    if "" in groups and len(groups) == 2:  # only one group is named: lines without a name are of it too
        loose = groups.pop("")
        named = next(iter(groups.values()))
        named.timed_out.update({**loose.timed_out, **named.timed_out})
        named.enqueued.update({**loose.enqueued, **named.enqueued})
    return groups


def raised_by_watchdog(view: JobView, party: Party) -> str:
    """That torch's NCCL watchdog ended the process, and where other threads of it were; "" where it did not."""
    lines = (*party.process.said, *(party.thread.problems if party.thread is not None else ()))
    found = next(filter(None, map(_RAISED.search, lines)), None)
    if found is None or party.group != "fatal":
        return ""
    why = "a collective timed out, or NCCL or CUDA reported an error"
    why = "a collective timed out" if found["timeout"] else "NCCL reported an error" if found["nccl"] else why
    others = threads_of(view, party.index, lambda one: one.helper is None and WAIT_GROUPS[one.kind] != "fatal")
    main = others[-1:] if party.process.source == "text:faulthandler" else others[:1]  # it prints the main thread last
    other = next((one for one in others if main and where(one) != where(main[0])), None)
    shown = [f"thread {one.id} was in {closed(where(one))}" for one in (*main, *([other] if other is not None else []))]
    meanwhile = f" Meanwhile {' and '.join(shown)}".rstrip(",") + "." if shown else ""
    return (
        f"The NCCL watchdog of torch ended {who([party])}: {why}. The watchdog is only the messenger; the line above "
        f'"{found[0]}" tells more.{meanwhile}'
    )


def watchdogs_gave_up(view: JobView) -> str:
    """Which ranks timed out in what, where torch's watchdogs of several ranks say so."""
    for group in _groups(view).values():
        places: Dict[Tuple[str, int], List[int]] = {}
        counts: Dict[Optional[int], List[int]] = {}
        for rank, (number, operation, count) in group.timed_out.items():
            places.setdefault((operation.lower().lstrip("_"), number), []).append(rank)
            counts.setdefault(count, []).append(rank)
        if len(group.timed_out) > 1:
            ordered = sorted(places.items(), key=lambda place: min(place[1]))
            told = [f"{ranks(some)} in {name} (SeqNum {number})" for (name, number), some in ordered]
            compared = _furthest_behind(group) if len(places) > 1 else _same_operation(counts)
            return f"Torch's watchdog timed out on {label_list(told)}.{compared}"
    return ""


def _furthest_behind(group: _Group) -> str:
    """Who stopped at the lowest number of one group, whose operations end in their order."""
    if any(operation in _ONE_SIDED for _, operation, _ in group.timed_out.values()):
        return ""
    lowest = min(number for number, _, _ in group.timed_out.values())
    behind = sorted(rank for rank, (number, _, _) in group.timed_out.items() if number == lowest)
    ahead = sorted(set(group.timed_out) - set(behind))
    if not ahead:
        return ""
    late = f"{start(ranks(behind))} {'is' if len(behind) == 1 else 'are'}"
    made = all(group.enqueued.get(rank, -1) >= lowest for rank in behind)
    it = "it" if len(behind) == 1 else "they"
    call = f" {start(it)} did make that call, so {it} may wait for the network or for a rank that is not named here."
    return (
        f" {late} furthest behind: {ranks(ahead)} got past SeqNum {lowest}. Look at {ranks(behind)} first."
        f"{call if made else ''}"
    )


def _same_operation(counts: Mapping[Optional[int], Sequence[int]]) -> str:
    """Of ranks in one operation, by the number of its elements."""
    if len(counts) == 1 or None in counts:
        return " All of them were in the same collective, so look first at the ranks that are not named here."
    sizes = ", ".join(
        f"{count:,} elements on {ranks(some)}" for count, some in list(counts.items())[:4] if count is not None
    )
    return (
        f" They were in the same collective with different input sizes: {sizes}. That is an error unless the operation "
        "allows uneven sizes."
    )


def _different_operations(view: JobView, group: _Group) -> Optional[Candidate]:
    by_number: Dict[int, Dict[Tuple[str, Optional[int]], List[int]]] = {}
    for rank, (number, operation, count) in group.timed_out.items():
        key = (operation, None if operation in UNEVEN else count)
        by_number.setdefault(number, {}).setdefault(key, []).append(rank)
    for number, sides in by_number.items():
        if len(sides) < 2 or any(operation in _ONE_SIDED for operation, _ in sides):
            continue
        ordered = sorted(sides.items(), key=lambda side: len(side[1]))
        words = "; ".join(
            f"{ranks(members)} in {operation.lower().lstrip('_')}{f' of {count} elements' if count is not None else ''}"
            for (operation, count), members in ordered[:4]
        )
        odd = [rank for _, members in ordered[:-1] for rank in members]
        fewer = len(odd) < len(ordered[-1][1])
        culprits = parties_of_ranks(view, odd if fewer else tuple(group.timed_out))
        victims = parties_of_ranks(view, ordered[-1][1]) if fewer else ()
        summary = (
            f"According to torch's watchdog, the ranks called different operations at SeqNum {number} of the same "
            f"process group: {words}. None of these operations can complete."
        )
        confidence = "high" if group.named else "medium"
        return Candidate(
            cause="collective-mismatch", confidence=confidence, summary=summary, culprits=culprits, victims=victims
        )
    return None


def _lagging_rank(view: JobView, group: _Group) -> Optional[Candidate]:
    numbers = [number for number, _, _ in group.timed_out.values()]
    reached = min(numbers) if numbers else max(group.enqueued.values(), default=0)
    late = sorted(rank for rank, number in group.enqueued.items() if 0 <= number < reached)
    waiting = sorted({*group.timed_out, *group.enqueued} - set(late))
    if not late or not waiting:
        return None
    name = next((operation.lower().lstrip("_") for _, operation, _ in group.timed_out.values()), "operation")
    last = max(group.enqueued[rank] for rank in late)
    summary = (
        f"Torch's watchdog reports that {ranks(waiting)} timed out in {name} number {reached}. {start(ranks(late))} "
        f"had enqueued only {last}, so {'it' if len(late) == 1 else 'they'} never reached that operation. "
        f"{'Its stack shows what it' if len(late) == 1 else 'Their stacks show what they'} did instead."
    )
    confidence = "high" if group.named and numbers else "medium"
    return Candidate(
        cause="missing-rank",
        confidence=confidence,
        summary=summary,
        culprits=parties_of_ranks(view, late),
        victims=parties_of_ranks(view, waiting),
    )


def _died_before(view: JobView, group: _Group) -> Optional[Candidate]:
    """Ranks that died of something else than the waiting that the others gave up."""
    blamed = [one for one in lines(view) if one.rule.cause == "missing-rank" or waited_in_vain((one,))]
    about_others = {one.process.index for one in blamed if one.process is not None}
    dead = [
        one
        for one in view.of("fatal")
        if one.process.rank is not None and one.process.rank not in group.timed_out and one.index not in about_others
    ]
    waiting = sorted(group.timed_out)
    if not dead or not waiting:
        return None
    name = next(operation.lower().lstrip("_") for _, operation, _ in group.timed_out.values())
    return Candidate(
        cause="missing-rank",
        confidence="medium",
        summary=f"{start(who(dead))} died in {where(dead[0])}; {ranks(waiting)} timed out in {name}, waiting for it.",
        culprits=tuple(dead),
        victims=parties_of_ranks(view, waiting),
        evidence=evidence_of(dead, ()),
    )


def _silent_ranks(view: JobView, group: _Group) -> Optional[Candidate]:
    """All ranks but a few time out in one operation, and of those few there is no line at all."""
    silent = [one for one in view.snapshot.processes if one.rank is not None and not (one.threads or one.said)]
    if not silent or len(group.timed_out) < 2:
        return None
    missing, waiting = sorted(one.rank or 0 for one in silent), sorted(group.timed_out)
    name = next(operation.lower().lstrip("_") for _, operation, _ in group.timed_out.values())
    read = all(one.problems for one in silent)  # its own file was read, and has no such line
    summary = f"Torch's watchdog reports that {ranks(waiting)} timed out in {name}; {ranks(missing)} " + (
        f"{'has' if len(missing) == 1 else 'have'} no such line: the log ends without {silent[0].problems[0]}."
        if read
        else f"either never made that call, or the watchdog lines of {ranks(missing)} are not in the text."
    )
    culprits, victims = parties_of_ranks(view, missing), parties_of_ranks(view, waiting)
    return Candidate(
        cause="missing-rank",
        confidence="medium" if read else "low",
        summary=summary,
        culprits=culprits,
        victims=victims,
    )


def _not_ready(view: JobView, ready: Tuple[int, ...], tensor: str) -> Optional[Candidate]:
    """The ranks below the highest ready one that are not ready; the line does not tell the world size."""
    known = frozenset(ready)
    late = [rank for rank in range(max(ready, default=0)) if rank not in known]
    if not late or 2 * len(late) >= len(ready):
        return None
    have = "has" if len(late) == 1 else "have"
    listed = f"{ranks(ready)} as ready for {_short(tensor)}"
    summary = f"Horovod's coordinator lists {listed}; {ranks(late)} {have} not submitted it."
    return Candidate(
        cause="missing-rank",
        confidence="medium",
        summary=summary,
        culprits=parties_of_ranks(view, late),
        victims=parties_of_ranks(view, ready),
    )


def _short(tensor: str) -> str:
    return tensor if len(tensor) <= _LONGEST else f"{tensor[:_LONGEST]}…"


def told_by_coordinator(view: JobView) -> Optional[Candidate]:
    """Operations that wait, with the ranks that have submitted each: sets of ranks wait for different ones."""
    sets: Dict[Tuple[int, ...], str] = {}
    for _, text in all_lines(view):
        for found in _READY.finditer(text):
            ready = tuple(sorted(numbers_in(found.group("ranks"))))
            sets.setdefault(ready, found.group("tensor"))
    if len(sets) == 1:
        return _not_ready(view, *next(iter(sets.items())))
    if len(sets) < 2 or any(set(one) & set(other) for one in sets for other in sets if one != other):
        return None
    ordered = sorted(sets.items(), key=lambda one: len(one[0]))
    odd, usual = ordered[0], ordered[-1]
    words = "; ".join(f"{ranks(members)} for {_short(tensor)}" for members, tensor in ordered[:4])
    summary = (
        f"Horovod's coordinator reports that ranks wait for different operations: {words}. None of these operations "
        "can start."
    )
    culprits = parties_of_ranks(view, odd[0] if len(odd[0]) < len(usual[0]) else (*odd[0], *usual[0]))
    victims = parties_of_ranks(view, usual[0]) if len(odd[0]) < len(usual[0]) else ()
    return Candidate(
        cause="collective-mismatch", confidence="medium", summary=summary, culprits=culprits, victims=victims
    )
