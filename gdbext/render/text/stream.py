"""CUDA streams and events as text: one of them, and the table of all."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, Optional, Union

from gdbext.model.codes import Code
from gdbext.model.missing import Maybe, Missing, value_or_none
from gdbext.model.stream import (
    AFTER_ERROR,
    NOT_MAPPED,
    Asked,
    DeviceKernel,
    KnownStream,
    RankStreams,
    StreamInfo,
    StreamTable,
    StreamUse,
    StreamWait,
)
from gdbext.model.text.ranges import counted, ranges_text
from gdbext.render.lines import joined, left_out
from gdbext.render.safe_text import clean, name_with_place, place_of, shorten_located, shorten_name, wrapped
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table

MOST_ROWS = 64
_NO_STREAM = "no stream was found in the frames that have debug information, nor in the arguments of calls"
MOST_PROBLEMS = 8

_STREAMS = (
    Column("stream", keep=9),
    Column("kind", keep=6),
    Column("device", right=True, keep=5),
    Column("state", least=12, keep=8),
    Column("prio", right=True, keep=2),
    Column("id", right=True, keep=1),
    Column("waited for by", least=12, keep=7),
    Column("held by", least=20, keep=4, cut=shorten_name),
    Column("on its device", least=12, keep=3, cut=shorten_name),
)
_WAITS = (
    Column("thread", keep=9),
    Column("in", least=12, keep=8),
    Column("waits for", least=14, keep=9),
    Column("known by", least=12, keep=2, accent="dim"),
    Column("called by", least=20, keep=7, cut=shorten_located),
)
_KERNELS = (
    Column("kernel", right=True, keep=8),
    Column("device", right=True, keep=7),
    Column("grid", right=True, keep=8),
    Column("status", keep=5),
    Column("blocks", keep=4),
    Column("threads", keep=3),
    Column("name", least=20, keep=9, cut=shorten_name),
)


def stream_lines(info: StreamInfo, style: Style) -> List[str]:
    """The handle, then what is known of it."""
    what = "event" if info.kind == "event" else f"{info.kind} stream"
    handle = f"handle unknown, {info.handle.reason}" if isinstance(info.handle, Missing) else f"{info.handle:#x}"
    lines = [style.paint(clean(f"{info.expression}: {what}, {handle} ({info.type_name})", style), "strong")]
    if info.pool_index is not None:
        lines.append(f"  torch's pool: index {info.pool_index}, priority {info.priority}")
    rows = [("device", _words(info.device)), ("state", _words(info.state))]
    asked = info.asked
    if asked is not None:
        rows[1] = ("state", _state(asked))
        if info.kind != "event":
            more = (("id", asked.id, ""), ("priority", asked.priority, ""), ("flags", asked.blocking, _flags(asked)))
            rows += [(title, text or _words(value)) for title, value, text in more if value != AFTER_ERROR]
    for title, value in rows:
        lines += wrapped(clean(f"{title}: {value}", style), style, indent="    ", first="  ")
    for note in info.notes:
        lines += wrapped(clean(note, style), style, indent="  ", first="  ")
    return lines


def _words(value: Union[Maybe[int], Maybe[str]]) -> str:
    return f"unknown, {value.reason}" if isinstance(value, Missing) else str(value)


def _flags(asked: Asked) -> str:
    if isinstance(asked.blocking, Missing):
        return f"unknown, {asked.blocking.reason}"
    return "waits for the legacy default stream" if asked.blocking else "non-blocking"


def _state(asked: Asked) -> str:
    if isinstance(asked.state, Missing):
        return _words(asked.state)
    if asked.error is None:
        return asked.state
    return f"{asked.state}: {asked.error.name} ({asked.error.number}), {asked.error.meaning}"


def stream_table_lines(answer: StreamTable, style: Style) -> List[str]:
    """Each process's streams, then who waits, then what could not be had."""
    if len(answer.ranks) > 1 and not any(map(_has_any, answer.ranks)):
        ranks = [rank.rank if rank.rank is not None else rank.pid for rank in answer.ranks]
        return wrapped(f"ranks {ranges_text(ranks)}: {_NO_STREAM}", style)
    lines = joined(_rank_lines(rank, style) for rank in answer.ranks)
    for note in answer.notes:
        lines += [style.paint(line, "dim") for line in wrapped(clean(note, style), style)]
    return lines


def _has_any(rank: RankStreams) -> bool:
    return bool(rank.streams or rank.events or rank.waits or rank.problems)


def _rank_lines(rank: RankStreams, style: Style) -> List[str]:
    name = f"rank {rank.rank}" if rank.rank is not None else f"process {rank.pid}"
    counts = counted(len(rank.streams), "stream") + (f", {counted(len(rank.events), 'event')}" if rank.events else "")
    lines = [style.paint(f"{name}: {counts}", "strong")]
    both = [*rank.streams, *rank.events]
    lines += table(_STREAMS, [_row(one, rank, style) for one in both[:MOST_ROWS]], style)
    lines += left_out(len(both) - MOST_ROWS, style)
    if rank.waits:
        lines.append("")
        lines += table(_WAITS, [_wait_row(one, style) for one in rank.waits[:MOST_ROWS]], style)
    if not isinstance(rank.kernels, Missing) and rank.kernels:
        lines.append("")
        lines += table(_KERNELS, [_kernel_row(one, style) for one in rank.kernels[:MOST_ROWS]], style)
    for text in _remarks(rank)[:MOST_PROBLEMS]:
        lines += wrapped(clean(text, style), style, indent="  ", first="", most=3)
    return lines


def _remarks(rank: RankStreams) -> List[str]:
    """Why something is unknown, each reason once."""
    found = [
        f"{_name(one)}: {text}"
        for one in (*rank.streams, *rank.events)
        for text in (*[NOT_MAPPED.reason] * one.unmapped, *_unknown(one, rank))
    ]
    found += [
        f"thread {one.thread} in {one.call}: {one.handle.reason}"
        for one in rank.waits
        if isinstance(one.handle, Missing) and one.waits != "device"
    ]
    left = [one.asked for one in (*rank.streams, *rank.events) if isinstance(one.asked, Missing)]
    count = sum(one.code is Code.GIVEN_UP for one in left)
    if count:
        found.append(f"{counted(count, 'other')} not queried: after an error gdbext makes no more calls in the process")
    if not rank.streams and not rank.problems:
        found.append(_NO_STREAM)
    return list(dict.fromkeys([*rank.problems, *found]))


def _unknown(one: KnownStream, rank: RankStreams) -> List[str]:
    """Why the driver did not say a state; not where it was not asked at all."""
    if rank.unasked:
        return []
    if isinstance(one.asked, Missing):
        quiet = one.asked.code in (Code.NOT_ASKED, Code.GIVEN_UP) or isinstance(one.handle, Missing)
        return [] if quiet or one.asked.reason in one.notes else [one.asked.reason]
    if isinstance(one.asked.state, Missing):
        return [one.asked.state.reason]
    return [_state(one.asked)] if one.asked.error else []


def _name(one: KnownStream) -> str:
    if not isinstance(one.handle, Missing):
        return f"{one.handle:#x}"
    return f"pool {one.priority}/{one.pool_index}" if one.pool_index is not None else "unknown"


def _row(one: KnownStream, rank: RankStreams, style: Style) -> Row:
    asked = value_or_none(one.asked)
    device = one.device if asked is None or isinstance(asked.device, Missing) else asked.device
    waits = [f"thread {use.thread}" for use in one.uses if use.waits]
    pool = f" {one.priority}/{one.pool_index}" if one.pool_index is not None else ""
    state = _short(asked)
    return Row(
        (
            _name(one),
            one.kind + pool,
            "" if isinstance(device, Missing) else str(device),
            clean(state, style),
            "" if asked is None or isinstance(asked.priority, Missing) else str(asked.priority),
            "" if asked is None or isinstance(asked.id, Missing) else str(asked.id),
            ", ".join(dict.fromkeys(waits)),
            clean(_held(one), style),
            clean(", ".join(one.kernels), style),
        ),
        "doubt" if waits or (asked is not None and asked.state == "failed") else "",
    )


def _short(asked: Optional[Asked]) -> str:
    if asked is None or isinstance(asked.state, Missing):
        return ""
    return f"{asked.state} {asked.error.number}" if asked.error else asked.state


def _held(one: KnownStream) -> str:
    """The object that owns it before the variables that only mention it."""
    uses = sorted(one.uses, key=lambda use: (not use.owner, bool(use.waits), use.argument))
    if not uses:
        return ""
    rest = len({_use(use) for use in uses}) - 1 + one.more_uses
    return _use(uses[0]) + (f" +{rest}" if rest > 0 else "")


def _use(use: StreamUse) -> str:
    if use.owner:
        member = use.expression.replace("->", ".").rpartition(".")[2]
        return f"{use.owner}::{member}"
    return f"{use.expression} in {use.function}" if use.function and not use.argument else use.expression


def _wait_row(one: StreamWait, style: Style) -> Row:
    if one.waits == "device":
        waits = "all streams of the device"
    elif isinstance(one.handle, Missing):
        waits = f"an unknown {one.waits}"
    else:
        waits = f"{one.waits} {one.handle:#x}"
    place = place_of(one.file, one.line, None, style)
    return Row(
        (
            clean(f"{one.thread} {one.name}", style),
            clean(one.call, style),
            waits,
            one.how,
            name_with_place(clean(one.engine_function, style), place),
        )
    )


def _kernel_row(one: DeviceKernel, style: Style) -> Row:
    return Row(
        (
            ("*" if one.focus else "") + str(one.kernel),
            str(one.device),
            str(one.grid),
            clean(one.status, style),
            one.grid_size,
            one.block_size,
            clean(one.name, style),
        )
    )


RENDERERS: Mapping[type, Callable[[Any, Style], List[str]]] = {
    StreamInfo: stream_lines,
    StreamTable: stream_table_lines,
}
