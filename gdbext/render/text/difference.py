"""Two looks compared, as text: who moved, who did not; stacks that came and went; counters that advanced."""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Sequence

from gdbext.model.difference import JobDifference, RankDifference, StackDifference
from gdbext.model.look_origin import Origin
from gdbext.model.text.ranges import counted, ranges_text, ranks
from gdbext.model.waits import shown_kind
from gdbext.render.lines import left_out
from gdbext.render.safe_text import clean, utc_text, wrapped
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table
from gdbext.render.text.verdict.origin import INVALID

MOST_RANKS, MOST_STACKS, MOST_CALLS, MOST_COUNTS = 64, 12, 6, 24

WORDS = {"moved": "moved", "same": "did not move", "unknown": "unknown", "new": "new", "gone": "gone"}
_COLUMNS = (
    Column("rank", keep=9),
    Column("state", keep=9),
    Column("waited in", least=12, keep=7),
    Column("waits in", least=12, keep=8),
    Column("pid", keep=4),
    Column("why", least=16, keep=3),
)


def difference_lines(answer: JobDifference, style: Style) -> List[str]:
    """The sums, a table of ranks, stacks with + and -, counters."""
    lines = [style.paint(sums(answer), "strong")]
    for name, origin in (("before", answer.before), ("after", answer.after)):
        lines += wrapped(clean(f"{name}: {origin_words(origin)}", style), style, indent="  ")
    changed = [one for one in answer.ranks if one.state != "same"]
    still = [one for one in answer.ranks if one.state == "same"]
    if changed:
        lines += ["", *table(_COLUMNS, [_row(one, style) for one in changed[:MOST_RANKS]], style)]
        lines += left_out(len(changed) - MOST_RANKS, style)
    if still:
        kinds: Dict[str, List[RankDifference]] = {}
        for one in still:
            kinds.setdefault(shown_kind(one.wait_after or ""), []).append(one)
        lines.append("")
        for kind, differences in kinds.items():
            lines += wrapped(clean(f"did not move: {_names(differences)}, in {kind}", style), style, indent="  ")
    if answer.stacks:
        lines += ["", style.paint("stacks (- before, + after):", "strong")]
        for stack in answer.stacks[:MOST_STACKS]:
            lines += _stack(stack, answer.counts, style)
        lines += left_out(len(answer.stacks) - MOST_STACKS, style)
    arrow = style.arrow
    counts = [
        "  "
        + clean(f"{one.name}: {count.kind} on {count.communicator:#x} {count.before:,} {arrow} {count.after:,}", style)
        for one in answer.ranks
        for count in one.counts
    ]
    if counts:
        lines += ["", style.paint("launched collectives:", "strong"), *counts[:MOST_COUNTS]]
        lines += left_out(len(counts) - MOST_COUNTS, style)
    for note in answer.notes:
        lines += wrapped(clean(note, style), style)
    return lines


def sums(answer: JobDifference) -> str:
    """`2 ranks moved; 6 ranks did not move`."""
    found = []
    for state, word in WORDS.items():
        count = sum(one.state == state for one in answer.ranks)
        if count:
            found.append(f"{counted(count, 'rank')} {word}")
    return "; ".join(found) or "no ranks"


def origin_words(origin: Origin) -> str:
    """Its files, when it was taken, and where."""
    words = [", ".join(origin.files)]
    if origin.taken_at is not None:
        words.append(utc_text(origin.taken_at) or INVALID)
    return ", ".join(words + ([f"host {', '.join(origin.hosts)}"] if origin.hosts else []))


def _row(one: RankDifference, style: Style) -> Row:
    pids = [str(pid) for pid in dict.fromkeys((one.pid_before, one.pid_after)) if pid is not None]
    state = WORDS.get(one.state, one.state)
    cells = (
        one.name,
        state,
        shown_kind(one.wait_before or ""),
        shown_kind(one.wait_after or ""),
        ", ".join(pids),
        one.why or "",
    )
    return Row([clean(cell, style) for cell in cells])


def _names(differences: Sequence[RankDifference]) -> str:
    numbers = [one.rank for one in differences if one.rank is not None]
    if len(numbers) == len(differences):
        return ranks(numbers)
    return ", ".join(one.name for one in differences[:MOST_RANKS])


def _stack(stack: StackDifference, counts: str, style: Style) -> List[str]:
    inner = stack.calls[-MOST_CALLS:]
    calls = f" {style.arrow} ".join(inner)
    calls = f"{style.ellipsis} {style.arrow} {calls}" if len(inner) < len(stack.calls) else calls
    lines = []
    for sign, frames in (("-", stack.before), ("+", stack.after)):
        if frames:
            noun = counts if len(frames) == 1 else counts + ("es" if counts == "process" else "s")
            who = f"{noun} {ranges_text(frames)}"
            lines.append(style.paint(f"  {sign} {who}", "dim" if sign == "-" else ""))
    return lines + wrapped(clean(calls, style), style, indent="      ", first="    ")


RENDERERS: Mapping[type, Callable[..., List[str]]] = {JobDifference: difference_lines}
