"""Who waits for which lock and who holds it: the stories first, then one row for each wait."""

from __future__ import annotations

from typing import Callable, List, Mapping

from gdbext.model.locks import LockReport, LockRow, PeerRow
from gdbext.render.safe_text import clean, counted, located, shorten_located, wrapped
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table

MOST_ROWS = 24
MOST_STORIES = 8

_COLUMNS = (
    Column("process", least=6, keep=6),
    Column("thread", least=8, keep=8),
    Column("waits for", least=8, keep=9),
    Column("held by", least=10, keep=8),
    Column("which", least=14, keep=7),
    Column("in", least=16, keep=4, cut=shorten_located),
    Column("lock", keep=1, accent="dim"),
)
_PEERS = (
    Column("process", least=6, keep=6),
    Column("thread", least=8, keep=7),
    Column("waits for", least=20, keep=8),
    Column("other end", least=16, keep=9),
)
_THREADS_WAIT = {"condvar": "condition variables", "once": "initialisers", "malloc": "locks of malloc"}


def lock_lines(report: LockReport, style: Style) -> List[str]:
    """The whole report; long lists are cut, and say so."""
    lines: List[str] = []
    bad = len({row.circle for row in report.rows if row.circle is not None}) or int(report.suspected)
    for number, story in enumerate(report.stories[:MOST_STORIES]):
        accent = "bad" if number < bad else ""
        lines += [style.paint(line, accent) for line in wrapped(clean(story, style), style, "  ", "")]
    lines += _more(len(report.stories) - MOST_STORIES, "story", "stories", style)
    if report.rows:
        lines += [""] * bool(lines) + table(_COLUMNS, [_row(one, style) for one in report.rows[:MOST_ROWS]], style)
        lines += _more(len(report.rows) - MOST_ROWS, "wait", "waits", style)
    if report.peers:
        lines += [""] * bool(lines) + table(_PEERS, [_peer_row(one, style) for one in report.peers[:MOST_ROWS]], style)
        lines += _more(len(report.peers) - MOST_ROWS, "wait", "waits", style)
    if report.ownerless:
        kinds = ", ".join(f"{count:,} for {_named(kind)}" for kind, count in report.ownerless)
        text = f"Threads that wait for what nobody in particular holds: {kinds}"
        lines += [""] * bool(lines) + wrapped(text, style, "  ", "")
    for note in report.notes:
        lines += wrapped(clean(note, style), style, "  ", "")
    return lines


def _more(count: int, noun: str, plural: str, style: Style) -> List[str]:
    return (
        [style.paint(f"{style.ellipsis} {counted(count, f'more {noun}', f'more {plural}')}", "dim")]
        if count > 0
        else []
    )


def _named(kind: str) -> str:
    return _THREADS_WAIT.get(kind, f"{kind}es" if kind.endswith("x") else f"{kind}s")


def _row(row: LockRow, style: Style) -> Row:
    wait = row.wait
    where, _, place = row.where.rpartition(" (")
    kind = f"{wait.kind} ({wait.detail})" if wait.detail else wait.kind
    mark = f"{style.mark} " if row.circle is not None else ""
    return Row(
        (
            f"{mark}{clean(row.label, style)}",
            f"{clean(row.thread, style)} {clean(row.name, style)}".rstrip(),
            clean(kind, style),
            clean(row.owner.replace("thread ", "", 1), style),
            clean(row.owner_does, style),
            located(clean(where, style), clean(place.rstrip(")"), style)) if where else clean(row.where, style),
            " ".join(filter(None, (clean(wait.name, style), f"{wait.address:#x}" if wait.address else ""))),
        ),
        "bad" if row.circle is not None or wait.gone else "",
    )


def _peer_row(row: PeerRow, style: Style) -> Row:
    return Row((clean(row.label, style), clean(row.thread, style), clean(row.file, style), clean(row.other_end, style)))


RENDERERS: Mapping[type, Callable[..., List[str]]] = {LockReport: lock_lines}
