"""A diagnosis in a few lines: the verdict, whom to suspect, the chain, what to do, what the look cost, what to type."""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.model.codes import KERNEL_TEXT, Given, ReadState
from gdbext.model.command_typed import FULL
from gdbext.model.host import HostLook
from gdbext.model.job import RankSnapshot
from gdbext.model.look_origin import Origin
from gdbext.model.text.ranges import counted
from gdbext.model.verdict import Diagnosis, Verdict
from gdbext.render.cause_and_confidence import cause_and_confidence
from gdbext.render.safe_text import clean, milliseconds, rank_set, shorten_name
from gdbext.render.style import Style
from gdbext.render.text.ending.next_command import next_line
from gdbext.render.text.ending.short_answer import Line
from gdbext.render.text.verdict.chain import chain_steps
from gdbext.render.text.verdict.details import limits
from gdbext.render.text.verdict.origin import origin_text
from gdbext.render.text.verdict.process_names import names_of_processes, rank_noun

_NAME = re.compile(r"[^\s()]+::\S+")
_LEAST_NAME = 40  # characters that names of functions keep in a sentence
_WIDE = 2  # lines that a chain, or what to do first, may take


def sentence(diagnosis: Diagnosis, style: Style) -> str:
    """`missing-rank (high confidence): Rank 2 has ended, ...`."""
    verdict = diagnosis.verdict
    head = clean(cause_and_confidence(verdict.cause, verdict.confidence), style)
    room = max(style.width * 2 // 3, _LEAST_NAME)
    text = _NAME.sub(lambda name: shorten_name(name.group(), room, style), clean(verdict.summary, style))
    return f"{head}: {text}"


def facts(diagnosis: Diagnosis, style: Style, origin: Optional[Origin]) -> List[Line]:
    """What stands below the verdict, the most telling first."""
    verdict = diagnosis.verdict
    do = clean(verdict.remedies[0].action, style) if verdict.remedies else ""
    return [
        *(() if _says_nothing_new(diagnosis) else (_rank_lines(diagnosis, style),)),
        Line("or", (_rival(diagnosis, style),)),
        Line("errors", _other_errors(diagnosis, style), most=_WIDE),
        Line("chain", steps=() if _is_told(diagnosis) else tuple(chain_steps(verdict.chain, style)), most=_WIDE),
        Line("do", () if verdict.decided_by else (do,), most=_WIDE),
        _cost(diagnosis.snapshot.processes, style, origin),
        _next(diagnosis, style),
    ]


def _says_nothing_new(diagnosis: Diagnosis) -> bool:
    """Whether all is of one process without a rank: nobody else could be suspected or waiting."""
    processes, hosts = diagnosis.snapshot.processes, diagnosis.snapshot.hosts
    whole = len(processes) == 1 and not hosts and processes[0].state == ReadState.OK
    return whole and processes[0].rank is None and not diagnosis.verdict.absent


def _is_told(diagnosis: Diagnosis) -> bool:
    """Whether a chain of a text stays within one process: the verdict says what it waits for."""
    given = {one.given for one in diagnosis.snapshot.processes}
    seen = {node.process for edge in diagnosis.verdict.chain for node in (edge.source, edge.target)} - {None}
    return given <= {Given.TEXT, Given.LOG} and len(seen) < _WIDE


def _rank_lines(diagnosis: Diagnosis, style: Style) -> Line:
    """Whom to suspect, who is held up by it, of whom nothing is said, who could not be read."""
    verdict, processes = diagnosis.verdict, diagnosis.snapshot.processes
    suspects = bool(verdict.culprits or verdict.absent)
    title = "suspect" if suspects else "waiting" if verdict.victims else "note"
    if len(verdict.culprits) == len(processes) > 1 and len({one.wait.kind for one in diagnosis.processes}) == 1:
        same = len({(one.wait.kind, one.wait.collective) for one in diagnosis.processes}) == 1
        alike = "are in the same call" if same else "wait for each other"
        if same and not any(one.threads for one in processes):
            alike = "are reported alike"
        odd = f"{'neither' if len(processes) == 2 else 'none'} stands out"
        told = f"{names_of_processes(processes, verdict.culprits, style)} {alike}: {odd}"
        return Line("note", (told, f"all {alike}: {odd}"))
    unread = [one.index for one in processes if one.state != ReadState.OK]
    texts = []
    for width, details in ((style.width // 2, True), (style.width // 2, False), (16, False), (8, False), (0, False)):
        held_up = _rank_list(processes, verdict.victims, style, width)
        pieces = (
            _suspects(verdict, processes, style, max(width, 8), details),
            f"holding up {held_up}" if held_up and suspects else held_up,
            f"not explained: {_rank_list(processes, verdict.unexplained, style, width)}" if verdict.unexplained else "",
            f"not fully read: {_rank_list(processes, unread, style, width)}" if unread else "",
            _hosts(diagnosis.snapshot.hosts, style, width),
        )
        texts.append("; ".join(filter(None, pieces)))
    return Line(title, tuple(dict.fromkeys(texts)), accent="bad" if suspects else "")


def _suspects(verdict: Verdict, processes: Sequence[RankSnapshot], style: Style, width: int, details: bool) -> str:
    absent = (
        f"{rank_noun(verdict.absent)} {rank_set(verdict.absent, style, width)} (no process)" if verdict.absent else ""
    )
    return ", ".join(filter(None, [names_of_processes(processes, verdict.culprits, style, details, width), absent]))


def _hosts(hosts: Sequence[HostLook], style: Style, width: int) -> str:
    """`not read: node3 (no shell answered within 30 s) and 2 more hosts`."""
    lost = [one for one in hosts if not one.read]
    if not lost:
        return ""
    first = f"{clean(lost[0].name, style)} ({clean(lost[0].reason, style)[:80]})"
    more = f" and {counted(len(lost) - 1, 'more host')}" if len(lost) > 1 else ""
    return f"not read: {first}{more}" if width else f"{counted(len(lost), 'host')} not read"


def _rank_list(processes: Sequence[RankSnapshot], some: Sequence[int], style: Style, width: int) -> str:
    """`ranks 0-2,5`, or where there is no `width` how many."""
    return names_of_processes(processes, some, style, most=width) if width or not some else counted(len(some), "rank")


def _other_errors(diagnosis: Diagnosis, style: Style) -> Tuple[str, ...]:
    """Lines of the text that the verdict does not explain; the first alone where there is no room for all."""
    quotes = [f'"{clean(text, style)}"' for text in diagnosis.verdict.other_errors]
    return tuple(f"also in the text: {'; '.join(quotes[:most])}" for most in range(len(quotes), 0, -1))


def _rival(diagnosis: Diagnosis, style: Style) -> str:
    """The first of the other explanations, where it is as likely and says something else."""
    verdict = diagnosis.verdict
    second = next((one for one in verdict.alternatives if one.confidence == verdict.confidence), None)
    if second is None or (second.cause == verdict.cause and verdict.culprits in ((), second.culprits)):
        return ""
    suspects = names_of_processes(diagnosis.snapshot.processes, second.culprits, style, most=16)
    return f"{clean(second.cause, style)}{f', {suspects}' if suspects else ''} (as likely)"


# --- what the look cost, or where it came from ---


def _cost(processes: Sequence[RankSnapshot], style: Style, origin: Optional[Origin]) -> Line:
    pause = pause_text(processes, style)
    if origin is not None:
        date = origin_text(origin, style)
        longest = milliseconds(max((one.pause_ms or 0 for one in processes), default=0))
        title = "written" if origin.cores else "taken"
        return Line(title, (f"{date}; pause {longest}", date) if pause else (date,), accent="dim")
    read = _read_from_text(processes)
    return Line("read", (read,), accent="dim") if read else Line("pause", pause, most=_WIDE, accent="dim")


def _read_from_text(processes: Sequence[RankSnapshot]) -> str:
    """How much was found in pasted text: whoever pasted it sees whether something is missing."""
    texts = [one for one in processes if one.given is Given.TEXT]
    if not texts:
        return ""
    threads = [thread for one in texts for thread in one.threads]
    number = counted(len(texts), "process", "processes")
    if not threads:
        return f"log lines of {number}, no stack"
    of_tasks = all(one.source == KERNEL_TEXT for one in texts)
    owners = (counted(len(threads), "task"),) if of_tasks else (number, counted(len(threads), "thread"))
    counts = (*owners, counted(sum(len(thread.frames) for thread in threads), "frame"))
    return f"from the text: {', '.join(counts)}"


def pause_text(processes: Sequence[RankSnapshot], style: Style) -> Tuple[str, ...]:
    """What the look itself cost the job."""
    pauses = [one.pause_ms for one in processes if one.pause_ms is not None]
    if not pauses:
        return ()
    longest = milliseconds(max(pauses))
    if any(one.given is Given.HELD for one in processes):
        return (f"held by this gdb for up to {longest} so far; llm-detach-all releases the ranks",)
    if not any(pauses) and all(one.unstopped for one in processes if one.pause_ms is not None):
        return ("none: nothing was stopped",)
    text = longest if len(processes) == 1 else f"up to {longest} for each process"
    return (f"{text}{_afterwards(processes, style)}", text)


_SIGNS = {
    "runs": ("is running again", "are running again"),
    "waits": ("waits as before", "wait as before"),
    "moved": ("waits in a different call than before", "wait in different calls than before"),
    "held": ("is held by this gdb again", "are held by this gdb again"),
    "stopped": ("is stopped", "are stopped"),
    "traced": ("is traced", "are traced"),
    "gone": ("is gone", "are gone"),
}


def _afterwards(processes: Sequence[RankSnapshot], style: Style) -> str:
    """`; rank 2 is stopped, 7 are running again`: signs of life, those that are none by name."""
    found: Dict[str, List[int]] = {}
    for one in processes:
        if one.after in _SIGNS:
            found.setdefault(one.after, []).append(one.index)
    pieces = []
    for sign in ("stopped", "traced", "gone", "runs", "waits", "moved", "held"):
        some = found.get(sign, [])
        if some:
            well = sign in ("runs", "waits", "moved", "held")
            everyone = "it" if len(processes) == 1 else "all" if len(some) == len(processes) else str(len(some))
            affected = everyone if well else names_of_processes(processes, some, style)
            pieces.append(f"{affected} {_SIGNS[sign][len(some) > 1]}")
    return "; " + ", ".join(pieces) if pieces else ""


def _next(diagnosis: Diagnosis, style: Style) -> Line:
    """The command that tells more. Where only a longer look can tell, that one."""
    verdict = diagnosis.verdict
    if verdict.decided_by:
        return Line("next", (clean(verdict.decided_by, style),), most=_WIDE, accent="strong")
    counts = (
        "the evidence" if verdict.evidence else "",
        "what was not read" if limits(diagnosis, style) else "",
        counted(len(verdict.alternatives), "other cause") if verdict.alternatives else "",
        counted(len(verdict.remedies) - 1, "more remedy", "more remedies") if len(verdict.remedies) > 1 else "",
    )
    *first, last = [*filter(None, counts)] or [""]
    shown = f"{', '.join(first)} and {last}" if first else last
    return next_line(style, f"shows {shown}" if shown else "", known=style.typed.detail == FULL)
