"""The rows of the verdict changed in small ways, one at a time: `scripts/mutate --rows`. mutmut mutates functions only.

operators: a row left out; a row after the next one; a word of `resources`, `via`, `ends` or `states` left out; `most`
one grade surer; `everybody`, `peers`, `few` and `blames` the other way round; of a kind of wait its row left out, its
strength one lower, its needs the other way round. Killed where a pinned scene or answer is another one.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Tuple

from gdbext.analysis.waits import hypotheses, prose
from gdbext.knowledge.causes.wait_causes import CAUSES, CauseRow
from gdbext.knowledge.causes.wait_kinds import WAITS
from gdbext.knowledge.labels import CONFIDENCE
from gdbext.model.waits import ALL, ANY, STRENGTHS
from tests.bench import judges
from tests.unit import verdict_scenes

_WORDS = ("resources", "via", "ends", "states")
_OF_CIRCLES, _OF_ENDS = ("few",), ("everybody", "peers", "blames")  # what is read of each
_ALWAYS_ALL = ("device", "collective", "rendezvous", "communicator", "lock")
_Rows = Tuple[CauseRow, ...]


def of_causes() -> Iterator[Tuple[str, _Rows]]:
    """Each change of `CAUSES` with its name."""
    for at, row in enumerate(CAUSES):
        rest = (*CAUSES[:at], *CAUSES[at + 1 :])
        yield f"{row.id}: left out", rest
        if at + 1 < len(CAUSES):
            yield f"{row.id}: after {CAUSES[at + 1].id}", (*CAUSES[:at], CAUSES[at + 1], row, *CAUSES[at + 2 :])
        for name, value in _changed(row):
            other = replace(row, **{name: value})
            yield f"{row.id}: {name}={value!r}", (*CAUSES[:at], other, *CAUSES[at + 1 :])


def _changed(row: CauseRow) -> Iterator[Tuple[str, Any]]:
    for name in _WORDS:
        words = getattr(row, name)
        yield from ((name, tuple(one for one in words if one != word)) for word in words)
    if row.most != CONFIDENCE[-1]:
        yield "most", CONFIDENCE[CONFIDENCE.index(row.most) + 1]
    yield from ((name, not getattr(row, name)) for name in (_OF_CIRCLES if row.circle else _OF_ENDS))


def of_waits() -> Iterator[Tuple[str, Dict[str, Any]]]:
    """Each change of `WAITS` with its name."""
    strengths = tuple(STRENGTHS)
    for kind, row in WAITS.items():
        yield f"{kind}: left out", {key: one for key, one in WAITS.items() if key != kind}
        lower = strengths[max(0, strengths.index(row.strength) - 1)]
        yield f"{kind}: strength={lower}", {**WAITS, kind: replace(row, strength=lower)}
        if row.target not in _ALWAYS_ALL:
            yield f"{kind}: needs", {**WAITS, kind: replace(row, needs=ANY if row.needs == ALL else ALL)}


def campaign() -> Tuple[int, List[str]]:
    """How many changes there were, and the names of those that no pinned verdict noticed."""
    scenes = [(make(), lines) for make, lines in zip(verdict_scenes.SCENES.values(), _pinned())]
    texts = [(case, json.loads(judges.PINNED.read_text())[f"{case.set}/{case.name}"]) for case in judges.cases()]

    def noticed() -> bool:
        try:
            return any("\n".join(verdict_scenes.told(look)) != lines for look, lines in scenes) or any(
                json.loads(json.dumps(judges.answer(case))) != answer for case, answer in texts
            )
        except Exception:
            return True

    assert not noticed(), "the pinned verdicts are others already"
    changes: List[Tuple[str, Callable[[], None]]] = [
        *((name, lambda rows=rows: _set_causes(rows)) for name, rows in of_causes()),
        *((name, lambda rows=rows: _set_waits(rows)) for name, rows in of_waits()),
    ]
    causes, waits = CAUSES, dict(WAITS)
    left = []
    for name, change in changes:
        change()
        try:
            if not noticed():
                left.append(name)
        finally:
            _set_causes(causes)
            _set_waits(waits)
    return len(changes), left


def _pinned() -> List[str]:
    _, *blocks = ("\n" + verdict_scenes.TEXT.read_text()).split("\n== ")
    return [block.partition("\n")[2].rstrip("\n") for block in blocks]


def _set_causes(rows: _Rows) -> None:
    hypotheses.CAUSES = rows
    hypotheses._ROWS = prose._ROWS = {row.id: row for row in rows}


def _set_waits(rows: Dict[str, Any]) -> None:
    kept = dict(rows)
    WAITS.clear()  # type: ignore[attr-defined]
    WAITS.update(kept)  # type: ignore[attr-defined]
