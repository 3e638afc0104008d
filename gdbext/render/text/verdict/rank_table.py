"""The table of ranks in a verdict: what each one waits for, equal rows of many ranks folded into one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, FrozenSet, List, Optional, Sequence, Tuple

from gdbext.model.codes import Given, ReadState
from gdbext.model.job import RANK, RankSnapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.text.ranges import counted
from gdbext.model.verdict import Diagnosis, ProcessJudgement, Wait
from gdbext.model.waits import shown_kind
from gdbext.render.safe_text import (
    clean,
    function_name,
    milliseconds,
    name_with_place,
    place_of,
    rank_set,
    shorten_located,
    shorten_name,
)
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table

ONE_ROW_EACH = 8
"""Up to so many processes, each has its own row with its own pid."""
_RANKS_WIDTH = 16

_COLUMNS = (
    Column("rank", right=True, keep=9),
    Column("pid", right=True, keep=5, accent="dim"),
    Column("waits in", keep=8),
    Column("collective", least=10, keep=6),
    Column("thread", least=10, keep=3),
    Column("engine frame", least=34, keep=7, cut=shorten_located),
    Column("state", keep=4),
    Column("pause", right=True, keep=2, accent="dim"),
)


@dataclass(frozen=True)
class _Seen:
    """One process in the words of the table."""

    process: RankSnapshot
    wait: str
    collective: str
    thread_id: str
    thread_name: str
    where: str
    state: str
    culprit: bool

    def key(self, fine: int) -> Tuple[object, ...]:
        """What must be equal for two processes to share a row; less of it as `fine` falls from 2 to 0."""
        always = (self.culprit, self.wait, self.collective, self.state)
        return (*always, self.where if fine else "", self.thread_name if fine > 1 else "")


def wait_table(diagnosis: Diagnosis, style: Style, most_rows: int, one_row_each: int = ONE_ROW_EACH) -> List[str]:
    """The culprits first, then by rank, then the ranks without a process; what is left out is counted."""
    groups = _grouped(_seen(diagnosis, style), most_rows, one_row_each)
    groups.sort(key=lambda group: not group[0].culprit)  # stable: the order of ranks stays within
    shown = groups if len(groups) <= most_rows else groups[: most_rows - 1]
    absent = diagnosis.snapshot.absent
    alone = len(diagnosis.snapshot.processes) == 1 and not absent
    rows = [_row(group, alone, style) for group in shown]
    if absent:
        accent = "bad" if diagnosis.verdict.absent else "doubt"
        rows.append(Row((_numbers(absent, style), "", "no process", "", "", "", "", ""), accent))
    lines = table(_COLUMNS, rows, style)
    left_out = sum(map(len, groups[len(shown) :]))
    if left_out:
        lines.append(style.paint(f"{style.ellipsis} {counted(left_out, 'more rank')}", "dim"))
    return lines


def is_one_stack(diagnosis: Diagnosis) -> bool:
    """Whether a text has one stack of one process, or its log alone: the answer says what a table would repeat."""
    processes = diagnosis.snapshot.processes
    from_text = all(one.given in (Given.TEXT, Given.LOG) for one in processes)
    return from_text and not diagnosis.snapshot.absent and len(processes) == 1 and len(processes[0].threads) < 2


def _grouped(seen: Sequence[_Seen], most_rows: int, one_row_each: int) -> List[List[_Seen]]:
    """Rows: one a process when they are few, else equal ones together, as finely as `most_rows` allows."""
    if len(seen) <= one_row_each:
        return [[one] for one in seen]
    for fine in (2, 1, 0):
        groups: Dict[Tuple[object, ...], List[_Seen]] = {}
        for one in seen:
            groups.setdefault(one.key(fine), []).append(one)
        if len(groups) <= most_rows:
            break
    return list(groups.values())


def _seen(diagnosis: Diagnosis, style: Style) -> List[_Seen]:
    judged = {judgement.index: judgement for judgement in diagnosis.processes}
    culprits = frozenset(diagnosis.verdict.culprits)
    processes = diagnosis.snapshot.processes
    states_matter = any(process.state != ReadState.OK for process in processes)
    # Ranks in order, processes of unknown rank behind them.
    ordered = sorted(processes, key=lambda one: (one.rank is None, one.rank or 0, one.index))
    return [_look(one, judged.get(one.index), culprits, states_matter, style) for one in ordered]


def _look(
    process: RankSnapshot,
    judgement: Optional[ProcessJudgement],
    culprits: FrozenSet[int],
    states_matter: bool,
    style: Style,
) -> _Seen:
    wait = judgement.wait if judgement else None
    thread = next((one for one in process.threads if wait and one.id == wait.thread), None)
    return _Seen(
        process=process,
        wait=clean(kind_text(process, wait), style) if wait else "",
        collective=clean(wait.collective, style) if wait else "",
        thread_id=clean(wait.thread, style) if wait else "",
        thread_name=clean(thread.name, style) if thread else "",
        where=_where(process, judgement, thread, style),
        state=clean(process.state, style) if states_matter else "",
        culprit=process.index in culprits,
    )


def kind_text(process: RankSnapshot, wait: Wait) -> str:
    """The label of a wait, and whether the thread sleeps for a time that it asked for: nobody wakes that one."""
    if not process.threads and wait.kind in ("unknown", "exited-or-crashed"):
        return "no stack" if wait.kind == "unknown" else "error in its log"
    asleep = any(one.id == wait.thread and one.sleeps is not None for one in process.threads)
    return f"{shown_kind(wait.kind)} (sleep)" if asleep else shown_kind(wait.kind)


def _where(
    process: RankSnapshot, judgement: Optional[ProcessJudgement], thread: Optional[ThreadStack], style: Style
) -> str:
    """The first frame of the engine's own code in the thread that decides, else the frame that decided."""
    if judgement is None or thread is None:
        return ""
    judged = next((one for seen, one in zip(process.threads, judgement.threads) if seen is thread), None)
    for number in (judged.shown if judged else None, judgement.wait.frame):
        if number is not None and 0 <= number < len(thread.frames):
            return frame_text(thread.frames[number], style)
    return ""


def frame_text(frame: Frame, style: Style) -> str:
    """`ft::Decoder::forward  decoder.cc:212`."""
    name = shorten_name(function_name(frame.function, style), 160, style)
    return name_with_place(name, place_of(frame.file, frame.line, frame.module, style))


def _row(group: Sequence[_Seen], alone: bool, style: Style) -> Row:
    """`alone`: the table has no other row."""
    first = group[0]
    pids = [one.process.pid for one in group]
    pauses = [one.process.pause_ms for one in group if one.process.pause_ms is not None and not one.process.unstopped]
    ranks = [one.process.rank for one in group if one.process.rank is not None]
    mark = f"{style.mark} " if first.culprit and (ranks or not alone) else ""
    threads = [" ".join(dict.fromkeys((one.thread_id, one.thread_name))).strip() for one in group]
    return Row(
        (
            mark + (_numbers(ranks, style) if len(ranks) == len(group) else _unranked(group, alone, style)),
            str(pids[0]) + (style.ellipsis if len(pids) > 1 else "") if pids[0] is not None else "",
            first.wait,
            first.collective,
            _common(threads) or _common([one.thread_name for one in group]) or _different(threads),
            _common([one.where for one in group]) or _different([one.where for one in group]),
            first.state,
            milliseconds(max(pauses)) if pauses else "",
        ),
        "bad" if first.culprit else "",
    )


def _unranked(group: Sequence[_Seen], alone: bool, style: Style) -> str:
    """Processes of unknown rank: their pid tells them apart; without pids, their place in the text or their file."""
    if any(one.process.pid is None for one in group):
        if len(group) == 1:
            one = group[0].process
            return "process" if one.only or alone else one.label
        return f"process {_numbers([one.process.index + 1 for one in group], style)}"
    roles = [one.process.role for one in group]
    if RANK not in roles:
        return roles[0] if len(group) == 1 else f"{roles[0]}{style.ellipsis}"
    return "" if alone else "?" if len(group) == 1 else f"? ({len(group)})"


def _numbers(ranks: Sequence[int], style: Style) -> str:
    return rank_set(ranks, style, _RANKS_WIDTH)


def _common(texts: Sequence[str]) -> str:
    """The text when all are equal, else nothing."""
    return texts[0] if len(set(texts)) == 1 else ""


def _different(texts: Sequence[str]) -> str:
    kinds = len(set(texts))
    return f"{kinds:,} different" if kinds > 1 else ""
