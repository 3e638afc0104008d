"""Patterns in log lines: what NCCL, torch's watchdog, the kernel or a launcher said itself."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.analysis.failures.check_messages import reports_failure
from gdbext.analysis.failures.checker_reports import in_report, is_report, says_itself
from gdbext.analysis.failures.error_codes import in_message
from gdbext.analysis.failures.fatal_signal import ended_by
from gdbext.analysis.logs.lines_of_logs import Line, all_lines, fault_before, lines, meaning
from gdbext.analysis.logs.progress_in_logs import announced, counted_by_one, how_far
from gdbext.analysis.verdict.candidate import Candidate, evidence_of
from gdbext.analysis.verdict.died_by_itself import stream_keeper, told_by_frames
from gdbext.analysis.verdict.job_view import COMMUNICATION, JobView, Party, threads
from gdbext.analysis.verdict.wording import died_at, label_list, start, where, who
from gdbext.knowledge.errors import LIBRARIES
from gdbext.knowledge.errors.infiniband import COMPLETIONS
from gdbext.knowledge.errors.xid import XIDS
from gdbext.knowledge.labels import WAIT_GROUPS
from gdbext.knowledge.log_lines import GROUP, PROGRESS, RANK, READY, TIMED_OUT, UNEVEN, WHAT
from gdbext.model.codes import Given
from gdbext.model.job import ONLY, RankSnapshot
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import ranks
from gdbext.model.verdict import Evidence, ThreadJudgement

_TIMED_OUT, _PROGRESS, _GROUP, _RANK, _READY = map(regex, (TIMED_OUT, PROGRESS, GROUP, RANK, READY))
_NCCL_ERRORS = next(library.names for library in LIBRARIES if library.type == "ncclResult_t")
_NUMBER = regex(r"\d{1,6}")
_WHAT, _XID = map(regex, (WHAT, r"\bXid:? (\d{1,3})\b"))
_ONE_SIDED = ("SEND", "RECV", "COALESCED", "UNKNOWN")
_MOST_QUOTED = 3
_LONGEST_QUOTE = 160
_DOUBTFUL = ("collective-mismatch",)
"""Causes that a fault of the network, of memory or of a driver also looks like, if it came first."""
_NCCL_TEXT = regex(r"\bunhandled (?:system|cuda) error\b|remote process exited or there was a network error")
_NCCL_CALL = regex(r"\b(nccl[A-Z]\w{2,40})\(\) at ")
_WORDS = 5  # from which on a line says something
_SHORT_QUOTE = 130  # in the first sentence
_PIECE = 20  # characters at the end of what a row knows
_SAME = 60  # characters at the end of a line


def log_line_evidence(view: JobView, best: Candidate) -> Tuple[Evidence, ...]:
    """The most telling lines as evidence, each kind of line once, without what the candidate quotes itself."""
    shown: Dict[str, Evidence] = {}
    own = tuple(one.text for one in best.evidence)
    for line in lines(view):
        if any(text.endswith(line.text[-_SAME:]) for text in own):
            continue
        if line.rule.id not in shown and len(shown) < _MOST_QUOTED:
            text = line.text if len(line.text) <= _LONGEST_QUOTE else line.text[: _LONGEST_QUOTE - 1] + "…"
            index = line.process.index if line.process is not None else None
            shown[line.rule.id] = Evidence(f"{line.rule.means}: {text}", index)
    return tuple(shown.values())


def last_words(view: JobView, party: Party) -> str:
    """The most telling line in which a process tells of its own end, in quotes; else ""."""
    own = [line for line in lines(view) if line.rule.wait and WAIT_GROUPS[line.rule.wait] == "fatal"]
    own = [line for line in own if line.process is None or line.process.index == party.index]
    said = max(own, key=lambda line: min(len(line.text.split()), _WORDS), default=None)
    return f"{_closed(_excerpt(said))}{_returned_by_nccl(view)}" if said is not None else ""


def party_of_log_line(view: JobView) -> Optional[Party]:
    """Whose line says most, where no stack was read: where the lines name nobody, that is the only process."""
    telling = next((line.process for line in lines(view) if line.process is not None), None)
    if telling is None and len(view.snapshot.processes) == 1:
        telling = view.snapshot.processes[0]
    return _party(view, telling) if telling is not None else None


def without_stacks(view: JobView) -> str:
    """What can be said where no stack of a rank was read: the line that tells most, and whose it is."""
    telling = next((line for line in lines(view) if line.process is not None), None)
    if telling is None or telling.process is None:
        if not any(process.threads for process in view.snapshot.processes):
            shown = next(iter(lines(view)), None)
            if shown is not None:
                return f"{_quotation(view, shown)} The cause is unknown."
            return "No stack was read, and no log line names a cause that gdbext knows. The cause is unknown."
        return _helpers_alone(view)
    counted = _gave_up(view) or announced(view, telling)
    if counted:
        return f"{counted}{_first_fault(view, telling)}"
    alike = _who_says(view, telling)
    others = len({line.process.index for line in lines(view) if line.process is not None}) - len(alike)
    also = "process reports a problem" if others == 1 else "processes report problems"
    rest = f" {others} other {also} too." if others else ""
    far = how_far(view, telling.process) if counted_by_one(view) else ""
    returned = _returned_by_nccl(view)
    return f"{_quotation(view, telling)}{returned}{rest}{far}{_first_fault(view, telling)} The cause is unknown."


def _helpers_alone(view: JobView) -> str:
    names = [
        " ".join(dict.fromkeys(filter(None, (thread.id, thread.name))))
        for process in view.snapshot.processes
        for thread in process.threads
    ]
    told = f"thread {names[0]}" if len(names) == 1 else f"{len(names)} threads: {label_list(names)}" if names else ""
    return f"Only background threads were read ({told}); none of them does the program's work."


def _quotation(view: JobView, line: Line, means: Optional[str] = None, said: str = "") -> str:
    """`The log of rank 3 reports: "...". It means ...`: the words of the log, and then what the row says of them."""
    told = f"{meaning(line)}{_number_in(line)}" if means is None else means
    quoted = f"{_log_of(view, line)}: {_closed(said or _excerpt(line))}"
    return f"{quoted} {start(told)}." if told else quoted


def _closed(quote: str) -> str:
    """The quote as the end of a sentence."""
    return quote if quote.endswith(('."', '!"', '?"')) else f"{quote}."


def _who_says(view: JobView, line: Line) -> List[RankSnapshot]:
    """The processes whose logs have that line, but for numbers and names."""
    known = [one for one in lines(view) if one.rule.id == line.rule.id and one.process is not None]
    alike = [one.process for one in known if one.process and _shape(one) == _shape(line)]
    return list({process.index: process for process in alike}.values())


def _shape(line: Line) -> str:
    """The words of the excerpt without those that have digits."""
    return " ".join(word for word in _excerpt(line)[:_SAME].split() if not re.search(r"\d|…", word))


def _log_of(view: JobView, line: Line) -> str:
    """`The log reports`, where nobody else could have written the line; of several `The logs ... report, for
    example`."""
    other = bool(_ranks_in(line)) or (line.rule.of_device and _is_witness(line))
    if line.process is None or line.process.label == ONLY or other:
        return "The log reports"
    several = [_party(view, process) for process in _who_says(view, line)]
    return (
        f"The logs of {who(several)} report, for example"
        if len(several) > 1
        else f"The log of {line.process.label} reports"
    )


def _first_fault(view: JobView, line: Line) -> str:
    """` Before that, ...`: the first error of the network, of memory or of a driver, which may be the cause."""
    first = fault_before(view, line)
    if first is None:
        return ""
    return f" Before that line stands {_excerpt(first)}: {meaning(first)}{_number_in(first)}. That may be the cause."


def _returned_by_nccl(view: JobView) -> str:
    """` The text is that of ncclSystemError: ...`, where a program prints NCCL's words without its name."""
    texts = [text for _, text in all_lines(view)]
    found = next(filter(None, map(_NCCL_TEXT.search, texts)), None)
    error = in_message(found[0], "ncclResult_t") if found is not None else None
    if error is None or any(error.name in text for text in texts):
        return ""
    call = next(filter(None, map(_NCCL_CALL.search, texts)), None)
    return f" That is NCCL's {error.name}{f', from {call[1]}' if call is not None else ''}: {error.meaning}."


def _groups_in(line: Line) -> Dict[str, Any]:
    """What its row names in the line: the number of an Xid, the pid of a worker."""
    found = re.search(line.rule.pattern, line.text)
    return found.groupdict() if found else {}


def _is_witness(line: Line) -> bool:
    """Whether the process of a line only tells of a fault: of a device that it used, or of a worker of its own."""
    named = _groups_in(line)
    number = named.get("xid")
    if line.process is None or line.process.rank is not None:
        return line.process is None
    if named.get("worker"):
        return True
    if not line.rule.of_device or line.process.threads:
        return False
    return number is None or int(number) not in XIDS or not XIDS[int(number)].of_program


def told_by_log(view: JobView) -> Optional[Candidate]:
    """A library or the kernel said what went wrong, in a line or by the call with which it ended the process."""
    known = lines(view)
    telling = next((line for line in known if line.rule.cause and _may_decide(view, line, known)), None)
    if telling is None:
        return told_by_frames(view, _waited_in_vain(known))
    later = ""
    first = fault_before(view, telling)
    if first is not None and telling.rule.cause in _DOUBTFUL and telling.rule.confidence != "high":
        later = f"Later it reports {_excerpt(telling)}, which may follow from that."
        telling = first._replace(rule=dataclasses.replace(first.rule, confidence="low"))
    rule = telling.rule
    if rule.alone and len(view.snapshot.processes) < 2:
        rule = dataclasses.replace(rule, cause=rule.alone, confidence="low")
    alike = [line for line in known if line.rule.id == rule.id]
    blamed = tuple(sorted({number for line in alike for number in _ranks_in(line)}))
    if blamed:
        culprits = _of_ranks(view, blamed)
    else:
        accusing = rule.cause in ("missing-rank", "init-rendezvous", "network-transport", "collective-mismatch")
        nobody = accusing or _is_witness(telling)
        culprits = () if nobody or telling.process is None else (_party(view, telling.process),)
    named = {party.index for party in culprits}
    waiting = tuple(party for party in view.of(*COMMUNICATION, "init") if party.index not in named)
    means = f"{meaning(telling)}{_number_in(telling)}{f' ({ranks(blamed)})' if blamed else ''}"
    if blamed and rule.befell:
        means = f"{ranks(blamed)} {'was' if len(blamed) == 1 else 'were'} {rule.befell}"
    beside = later or _first_fault(view, telling).strip()
    if not beside and rule.id == "stream-locked-at-its-end":
        beside = stream_keeper(view)
    if not beside and (is_report(view) or not (rule.past or rule.id == "rust-panicked")):  # a panic names its place
        beside = _stacks_beside(view)
    because = f"Because of that, {who(waiting)} cannot continue." if waiting else beside
    said = _thrown(view, telling) or _excerpt(telling)
    if is_report(view) and because is beside and says_itself(said, view):
        means = ""
    summary = f"{_quotation(view, telling, means, said)} {because}".rstrip()
    return Candidate(cause=rule.cause, confidence=rule.confidence, summary=summary, culprits=culprits, victims=waiting)


def _thrown(view: JobView, line: Line) -> str:
    """`std::runtime_error: "..."`, where the line tells of an exception of C++ and the next one of its what()."""
    texts = [text for process, text in all_lines(view) if process is line.process]
    following = texts[texts.index(line.text) + 1 :] if line.text in texts else []
    found = _WHAT.match(following[0].strip()) if following else None
    if found is None:
        return ""
    said = " ".join(found["text"].split())
    type_name = re.search(r"instance of '([^']{1,200})'", line.text)
    shown = f'"{said[:_LONGEST_QUOTE]}{"…" if len(said) > _LONGEST_QUOTE else ""}"'
    return f"{type_name[1]}: {shown}" if type_name else shown


def _stacks_beside(view: JobView) -> str:
    """What the stacks add to a line of the log."""
    if view.given is Given.LOG or not view.parties:
        return ""
    if len(view.parties) > 1:
        return ""
    (one,) = view.parties
    if one.thread is None or all(reports_failure(frame.function) for frame in one.thread.calls if frame.function):
        return ""
    if is_report(view):
        return in_report(one)
    if one.group == "fatal":
        return f"The thread died in {died_at(one)}."
    return f"The thread in the text is in {where(one)}." if view.given is Given.TEXT else f"It is in {where(one)}."


def _excerpt(line: Line) -> str:
    """`"...the words that the row knows..."`: the line in short, from where the row knows it."""
    text = " ".join(line.text.split())
    match = re.search(line.rule.pattern, text)
    first = max(match.start(), match.end() - _SHORT_QUOTE) if match else 0  # who is named stands at its end
    if len(text) <= _SHORT_QUOTE:
        return f'"{text}"'
    first = max(0, min(first, len(text) - _SHORT_QUOTE))
    end, word = first + _SHORT_QUOTE, text.rfind(" ", 0, first) + 1
    first = word if first - word < _SHORT_QUOTE // 10 else first
    cut = text.rfind(" ", end - _SHORT_QUOTE // 10, end + 1)
    piece = text[first : cut if cut > 0 and end < len(text) else end].rstrip()
    return f'"{"…" if first else ""}{piece}{"…" if end < len(text) else ""}"'


def _may_decide(view: JobView, line: Line, known: Sequence[Line]) -> bool:
    """What a process says of its own death counts where it is dead, and where no line tells of waiting for others."""
    if not line.rule.own:
        return True
    if _waited_in_vain(known):
        return False
    dead = (one for one in threads(view) if one.group == "fatal")
    return view.given is Given.LOG or is_report(view) or any(line.process in (None, one.process) for one in dead)


def _waited_in_vain(known: Sequence[Line]) -> bool:
    return any(WAIT_GROUPS[one.rule.wait] != "fatal" for one in known if one.rule.wait)


def _ranks_in(line: Line) -> Tuple[int, ...]:
    match = re.search(line.rule.pattern, line.text)
    groups = [value for name, value in match.groupdict().items() if name.startswith("rank")] if match else []
    return tuple(int(number) for value in groups if value for number in _NUMBER.findall(value))


def _number_in(line: Line) -> str:
    """`: 79, the GPU has fallen off the bus`: the number that the line names, with its meaning."""
    groups = _groups_in(line)
    if groups.get("worker"):
        return f" (worker pid {groups['worker']})"
    if groups.get("xid"):
        row = XIDS.get(int(groups["xid"]))
        return f" on GPU {groups['bus']}: {groups['xid']}{f', {row.meaning}' if row else ''}"
    if groups.get("nccl"):
        return f": {_NCCL_ERRORS[int(groups['nccl'])][0]}"
    if groups.get("code"):
        return f" with code {groups['code']}{ended_by(int(groups['code']))}"
    named = _XID.search(line.text)
    if named and int(named[1]) in XIDS:
        return f": Xid {named[1]}, {XIDS[int(named[1])].meaning}"
    meaning = COMPLETIONS.get(int(groups.get("completion") or 0))
    return f" with {meaning}" if meaning else ""


def _of_ranks(view: JobView, numbers: Sequence[int]) -> Tuple[Party, ...]:
    return tuple(_party(view, process) for process in view.snapshot.processes if process.rank in numbers)


def _party(view: JobView, process: RankSnapshot) -> Party:
    """The process as a party, also where none of its stacks was read."""
    known = next((party for party in view.parties if party.index == process.index), None)
    return known or Party(process=process, thread=None, judged=ThreadJudgement(kind="unknown"), group="unknown")


# torch's watchdog -----------------------------------------------------------------------------------------------------


class _Group(NamedTuple):
    """What the watchdogs of one process group say: by rank the operation that timed out, and how far it got."""

    timed_out: Dict[int, Tuple[int, str, Optional[int]]]  # (sequence number, operation, elements)
    enqueued: Dict[int, int]
    named: bool  # the lines name the group: without it groups of one rank may be mixed up


def given_up(said: Sequence[str]) -> Optional[str]:
    """`alltoall_base`: the operation that torch's watchdog of this process gave up."""
    found = next(filter(None, map(_TIMED_OUT.search, said)), None)
    return found["op"].lower().lstrip("_") if found is not None else None


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


def _gave_up(view: JobView) -> str:
    """Which ranks timed out in what, where torch's watchdogs of several ranks say so."""
    for group in _groups(view).values():
        places: Dict[Tuple[str, int], List[int]] = {}
        for rank, (number, operation, _) in group.timed_out.items():
            places.setdefault((operation.lower().lstrip("_"), number), []).append(rank)
        if len(group.timed_out) > 1:
            told = ", ".join(
                f"{ranks(some)} in {name} (SeqNum {number})" for (name, number), some in sorted(places.items())[:4]
            )
            alike = (
                " They all wait in the same one: read the logs of the other ranks first." if len(places) == 1 else ""
            )
            return f"torch's watchdog gave up waiting for collectives: {told}.{alike}"
    return ""


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
        culprits = _of_ranks(view, odd if fewer else tuple(group.timed_out))
        victims = _of_ranks(view, ordered[-1][1]) if fewer else ()
        summary = (
            f"torch's watchdog: the ranks called different operations at SeqNum {number} of the same process group: "
            f"{words}. None of them can complete."
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
        f"torch's watchdog: {ranks(waiting)} timed out in {name} number {reached}. {start(ranks(late))} "
        f"had enqueued only {last}, so {'it' if len(late) == 1 else 'they'} never reached that operation. "
        f"{'Its stack shows what it' if len(late) == 1 else 'Their stacks show what they'} did instead."
    )
    confidence = "high" if group.named and numbers else "medium"
    return Candidate(
        cause="missing-rank",
        confidence=confidence,
        summary=summary,
        culprits=_of_ranks(view, late),
        victims=_of_ranks(view, waiting),
    )


def _died_before(view: JobView, group: _Group) -> Optional[Candidate]:
    """Ranks that died of something else than the waiting that the others gave up."""
    blamed = [one for one in lines(view) if one.rule.cause == "missing-rank" or _waited_in_vain((one,))]
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
        victims=_of_ranks(view, waiting),
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
    summary = f"torch's watchdog: {ranks(waiting)} timed out in {name}; there is no line of {ranks(missing)}. " + (
        f"So the log of {ranks(missing)} ends without: {silent[0].problems[0]}."
        if read
        else f"Either {ranks(missing)} never arrived there, or the log of {ranks(missing)} is not in the text."
    )
    culprits, victims = _of_ranks(view, missing), _of_ranks(view, waiting)
    return Candidate(
        cause="missing-rank",
        confidence="medium" if read else "low",
        summary=summary,
        culprits=culprits,
        victims=victims,
    )


# Horovod's coordinator ------------------------------------------------------------------------------------------------


def told_by_coordinator(view: JobView) -> Optional[Candidate]:
    """Operations that wait, with the ranks that have submitted each: sets of ranks wait for different ones."""
    sets: Dict[Tuple[int, ...], str] = {}
    for _, text in all_lines(view):
        for found in _READY.finditer(text):
            ready = tuple(sorted(int(number) for number in _NUMBER.findall(found.group("ranks"))))
            sets.setdefault(ready, found.group("tensor"))
    if len(sets) < 2 or any(set(one) & set(other) for one in sets for other in sets if one != other):
        return None
    ordered = sorted(sets.items(), key=lambda one: len(one[0]))
    odd, usual = ordered[0], ordered[-1]
    words = "; ".join(f"{ranks(members)} with {tensor[:80]}" for members, tensor in ordered[:4])
    summary = f"Horovod's coordinator: ranks are ready with different operations: {words}. None can begin."
    culprits = _of_ranks(view, odd[0] if len(odd[0]) < len(usual[0]) else (*odd[0], *usual[0]))
    victims = _of_ranks(view, usual[0]) if len(odd[0]) < len(usual[0]) else ()
    return Candidate(
        cause="collective-mismatch", confidence="medium", summary=summary, culprits=culprits, victims=victims
    )


PATTERNS = (told_by_log, told_by_watchdog, told_by_coordinator)
