"""Communicators of all ranks: one line each, and as the last lines who is behind."""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Sequence

from gdbext.model.command_typed import BRIEF, FULL
from gdbext.model.communicator import Communicator, CommunicatorGroup, Member
from gdbext.model.communicator_table import CommunicatorTable
from gdbext.model.job import RankSnapshot
from gdbext.model.look_origin import Origin
from gdbext.model.missing import Missing
from gdbext.model.text.ranges import counted
from gdbext.render.lines import joined, left_out
from gdbext.render.safe_text import clean, rank_set, wrapped
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table
from gdbext.render.text.ending.next_command import next_line
from gdbext.render.text.ending.short_answer import Line, ending
from gdbext.render.text.verdict.origin import origin_text

MOST_GROUPS = 64
MOST_LINES = 8

Processes = Mapping[int, RankSnapshot]

_COLUMNS = (
    Column("communicator", keep=9),
    Column("size", right=True, keep=8),
    Column("ranks", least=8, keep=8),
    Column("times launched", least=20, keep=7),
    Column("state", least=10, keep=6),
    Column("read by", least=10, keep=1, accent="dim"),
)


def communicator_lines(answer: CommunicatorTable, style: Style, origin: Optional[Origin] = None) -> List[str]:
    """The table, then what could not be read, then who is behind in what."""
    first_group = _first_of(answer)
    last = _answer(answer, first_group, style, origin)
    if style.typed.detail == BRIEF:
        return last
    processes = {process.index: process for process in answer.processes}
    full = style.typed.detail == FULL
    groups = answer.groups[: None if full else MOST_GROUPS]
    lines = table(_COLUMNS, [_row(group, processes, style) for group in groups], style)
    for group in groups:
        lines += _notes(group, style) if group is not first_group else []
    lines += left_out(len(answer.groups) - len(groups), style, "more")
    notes = [unread_text(member, processes) for member in answer.unreadable]
    notes += search_notes(answer.processes, style)
    shown = notes[: None if full else MOST_LINES]
    for note in shown:
        lines += wrapped(clean(note, style), style, indent="  ", first="", most=3)
    lines += left_out(len(notes) - len(shown), style, "more")
    for note in answer.notes:
        lines += [style.paint(line, "dim") for line in wrapped(note, style)]
    return joined([lines, last])


def _noted_groups(answer: CommunicatorTable) -> List[CommunicatorGroup]:
    return [group for group in answer.groups if group.notes and not (group.uneven and group.moving)]


def _first_of(answer: CommunicatorTable) -> Optional[CommunicatorGroup]:
    """The one that stands still with unequal counts, else one that failed."""
    noted_groups = _noted_groups(answer)
    return next(iter([*(group for group in noted_groups if group.uneven), *noted_groups]), None)


def _answer(
    answer: CommunicatorTable, first: Optional[CommunicatorGroup], style: Style, origin: Optional[Origin]
) -> List[str]:
    """What is wrong with the first communicator; else that nothing is."""
    noted_groups = _noted_groups(answer)
    notes = len(answer.unreadable) + len(search_notes(answer.processes, style))
    hidden = len(answer.groups) > MOST_GROUPS or notes > MOST_LINES
    moving = sum(group.moving for group in answer.groups)
    unseen = sum(bool(group.unseen) for group in answer.groups)
    number = counted(len(answer.groups), "communicator")
    verdict = f"{number}: no rank is behind, and none has an error."
    if not answer.groups:
        verdict = "No communicator could be read."
    elif first is not None:
        verdict = f"Communicator {first.name}: {'; '.join(first.notes)}."
    facts = (
        f"{counted(len(noted_groups) - 1, 'more communicator')} with a note, above" if len(noted_groups) > 1 else "",
        f"{moving:,} in use" if moving else "",
        f"of {unseen:,} some ranks were not seen" if unseen else "",
        f"{len(answer.unreadable):,} not readable" if answer.unreadable else "",
    )
    lines = [
        Line("besides", ("; ".join(filter(None, facts)),), most=2),
        Line("taken", (origin_text(origin, style) if origin is not None else "",), accent="dim"),
        Line("pause", () if origin is not None else ("none: no running rank is stopped",), accent="dim"),
        next_line(style, "", known=style.typed.detail == FULL or not hidden),
    ]
    return ending(clean(verdict, style), "doubt" if first is not None else "", lines, style)


def _row(group: CommunicatorGroup, processes: Processes, style: Style) -> Row:
    ends = [member.communicator for member in group.members]
    return Row(
        (
            group.name,
            f"{group.n_ranks:,}",
            places_of([processes.get(member.process) for member in group.members], style),
            launch_counts_text(group, ends),
            clean(", ".join(states_of(group, ends)), style),
            clean(" / ".join(dict.fromkeys(one.layout or "" for one in ends)), style),
        ),
        "doubt" if group.uneven and not group.moving else "",
    )


def places_of(processes: Sequence[Optional[RankSnapshot]], style: Style) -> str:
    """The processes its ends lie in; where ranks in the communicator have other numbers, both."""
    ranks = {one.label if one else "?": one.rank if one else None for one in processes}
    numbers = [rank for rank in ranks.values() if rank is not None]
    return rank_set(numbers, style, 24) if len(numbers) == len(ranks) else ", ".join(list(ranks)[:4])


def launch_counts_text(group: CommunicatorGroup, ends: Sequence[Communicator]) -> str:
    """`all_reduce 4, all_gather 3-4`; kinds that nobody launched are left out."""
    known = [one.counts for one in ends if not isinstance(one.counts, Missing)]
    if not known:
        return "not counted"
    spans: Dict[str, List[int]] = {}
    for counts in known:
        for kind, count in counts.items():
            spans.setdefault(kind, []).append(count)
    said = [f"{kind} {_span(counts)}" for kind, counts in spans.items() if any(counts)]
    return ", ".join(said) or "nothing"


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def states_of(group: CommunicatorGroup, ends: Sequence[Communicator]) -> List[str]:
    said: Dict[str, None] = {}
    for one in ends:
        if isinstance(one.async_error, str) and one.async_error not in ("ncclSuccess", "ncclInProgress"):
            said[one.async_error] = None
        if one.aborted is True:
            said["aborted"] = None
        if one.revoked is True:
            said["revoked"] = None
        if one.init_state == "ncclInProgress":
            said["being set up"] = None
        elif isinstance(one.init_state, str) and one.init_state != "ncclSuccess":
            said[f"set-up: {one.init_state}"] = None
        if one.destroyed is True or one.finalized is True:
            said["being torn down"] = None
    if group.unseen:
        said[f"{len(group.unseen):,} of {group.n_ranks:,} not seen"] = None
    if group.moving:
        said["in use"] = None
    return list(said) or ["ready"]


def _notes(group: CommunicatorGroup, style: Style) -> List[str]:
    lines = [f"{group.name}: {note}" for note in group.notes[:MOST_LINES]]
    return [line for text in lines for line in wrapped(clean(text, style), style, indent="  ", first="", most=3)]


def _joined(processes: Sequence[RankSnapshot], style: Style) -> str:
    numbers = [one.rank for one in processes if one.rank is not None]
    if len(numbers) == len(processes):
        return f"{'rank' if len(numbers) == 1 else 'ranks'} {rank_set(numbers, style)}"
    more = f" and {len(processes) - 4:,} more" if len(processes) > 4 else ""
    return ", ".join(one.label for one in processes[:4]) + more


def unread_text(member: Member, processes: Processes) -> str:
    one, process = member.communicator, processes.get(member.process)
    return f"{process.label if process else '?'}: {one.address:#x} ({one.origin}): {one.problem}"


def search_notes(processes: Sequence[RankSnapshot], style: Style) -> List[str]:
    """What was said of the search, equal words of several ranks once."""
    said: Dict[str, List[RankSnapshot]] = {}
    for process in processes:
        for note in process.communicator_notes + process.problems:
            said.setdefault(note, []).append(process)
    return [f"{_joined(ranks_of_note, style)}: {note}" for note, ranks_of_note in said.items()]


RENDERERS: Mapping[type, Callable[..., List[str]]] = {CommunicatorTable: communicator_lines}
DATED = RENDERERS
