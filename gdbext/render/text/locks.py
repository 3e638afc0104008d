"""Who waits for which lock and who holds it: one row for each wait, and what it comes to as the last lines."""

from __future__ import annotations

from typing import Callable, List, Mapping, Optional, Sequence

from gdbext.model.command_typed import BRIEF, FULL
from gdbext.model.locks import LockReport, LockRow, PeerRow
from gdbext.model.look_origin import Origin
from gdbext.model.text.ranges import counted
from gdbext.render.lines import joined, left_out
from gdbext.render.safe_text import clean, name_with_place, shorten_located, wrapped
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table
from gdbext.render.text.ending.next_command import next_line
from gdbext.render.text.ending.short_answer import Line, ending
from gdbext.render.text.verdict.origin import origin_text

MOST_ROWS = 24
MOST_WITH_ALL = 200
MOST_CHAINS = 8

_COLUMNS = (
    Column("process", least=6, keep=6),
    Column("thread", least=8, keep=8),
    Column("in", least=16, keep=4, cut=shorten_located),
    Column("waits for", least=8, keep=9),
    Column("held by", least=10, keep=8),
    Column("the holder", least=14, keep=7),
    Column("lock", keep=1, accent="dim"),
)
_PEERS = (
    Column("process", least=6, keep=6),
    Column("thread", least=8, keep=7),
    Column("waits for", least=20, keep=8),
    Column("other end", least=16, keep=9),
)
_THREADS_WAIT = {
    "condvar": ("a condition variable", "condition variables"),
    "once": ("an initialiser", "initialisers"),
    "malloc": ("a lock of malloc", "locks of malloc"),
}


def lock_lines(report: LockReport, style: Style, origin: Optional[Origin] = None) -> List[str]:
    """The tables, what is told besides the answer, and the answer; long lists are cut, and say so."""
    answer = _answer(report, style, origin)
    if style.typed.detail == BRIEF:
        return answer
    most = MOST_WITH_ALL if style.typed.detail == FULL else MOST_ROWS
    sections = (
        _table(_COLUMNS, [_row(one, style) for one in report.rows[:most]], len(report.rows), style),
        _table(_PEERS, [_peer_row(one, style) for one in report.peers[:most]], len(report.peers), style),
        _other_deadlocks(report, style),
        answer,
    )
    return joined(sections)


def _table(columns: Sequence[Column], rows: Sequence[Row], number: int, style: Style) -> List[str]:
    return table(columns, rows, style) + _more(number - len(rows), "wait", "waits", style)


def _other_deadlocks(report: LockReport, style: Style) -> List[str]:
    """The stories but the first, which is the answer, and what is to be known of all of it."""
    lines: List[str] = []
    bad = len({row.circle for row in report.rows if row.circle is not None}) or int(report.suspected)
    for number, chain in enumerate(report.stories[1:MOST_CHAINS], 1):
        accent = "bad" if number < bad else ""
        lines += [style.paint(line, accent) for line in wrapped(clean(chain, style), style, "  ", "")]
    lines += _more(len(report.stories) - MOST_CHAINS, "story", "stories", style)
    for note in report.notes[0 if report.stories else 1 :]:
        lines += wrapped(clean(note, style), style, "  ", "")
    return lines


def _answer(report: LockReport, style: Style, origin: Optional[Origin]) -> List[str]:
    first = next(iter((*report.stories, *report.notes)), "No thread waits for a lock that another thread holds.")
    no_finding_note = "" if report.finding or not report.stories else "No deadlock was seen. "
    further = len(report.stories) - 1
    waits = ", ".join(f"{count:,} on {_named(kind, count)}" for kind, count in report.ownerless)
    facts = [
        Line("besides", (f"{counted(further, 'more story', 'more stories')}, above" if further > 0 else "",)),
        Line("no owner", (waits,), most=2),
        Line("taken", (origin_text(origin, style) if origin is not None else "",), accent="dim"),
        next_line(style, "", known=style.typed.detail == FULL or len(report.rows) + len(report.peers) <= MOST_ROWS),
    ]
    return ending(f"{no_finding_note}{clean(first, style)}", "bad" if report.finding else "", facts, style)


def _more(count: int, noun: str, plural: str, style: Style) -> List[str]:
    return [style.paint(line, "dim") for line in left_out(count, style, f"more {noun if count == 1 else plural}")]


def _named(kind: str, count: int) -> str:
    one, many = _THREADS_WAIT.get(kind, (kind, f"{kind}es" if kind.endswith("x") else f"{kind}s"))
    return one if count == 1 else many


def _row(row: LockRow, style: Style) -> Row:
    wait = row.wait
    where, _, place = row.where.rpartition(" (")
    kind = f"{wait.kind} ({wait.detail})" if wait.detail else wait.kind
    mark = f"{style.mark} " if row.circle is not None else ""
    return Row(
        (
            f"{mark}{clean(row.label, style)}",
            f"{clean(row.thread, style)} {clean(row.name, style)}".rstrip(),
            name_with_place(clean(where, style), clean(place.rstrip(")"), style)) if where else clean(row.where, style),
            clean(kind, style),
            clean(row.owner.replace("thread ", "", 1), style),
            clean(row.owner_does, style),
            " ".join(filter(None, (clean(wait.name, style), f"{wait.address:#x}" if wait.address else ""))),
        ),
        "bad" if row.circle is not None or wait.gone else "",
    )


def _peer_row(row: PeerRow, style: Style) -> Row:
    return Row((clean(row.label, style), clean(row.thread, style), clean(row.file, style), clean(row.other_end, style)))


RENDERERS: Mapping[type, Callable[..., List[str]]] = {LockReport: lock_lines}
DATED = RENDERERS
