"""The one block of data in the page: every stack once, threads as references to them, ranks as sets.

Its script reads it for what the template does not show: all threads of all ranks, and the icicle. Above a budget stacks
are left out, and the page says how many.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from gdbext.model.job import RankSnapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.text.digits import is_whole
from gdbext.model.text.ranges import ranges_text
from gdbext.model.verdict import ProcessJudgement, ThreadJudgement
from gdbext.model.waits import shown_kind
from gdbext.render.html.page_words import function, one_line, path, place
from gdbext.render.json.json_text import json_text

LONGEST = 256
"""Frames of one stack; of a longer one the innermost."""
MOST_TEXT, MOST_CALLS, MOST_THREADS = 1_500_000, 400_000, 400_000
"""Characters of different names, frames of different stacks, and threads."""
LEFT_OUT = -1
FULL = "(left out: the page is full)"

_FrameKey = Tuple[Optional[str], Optional[str], Optional[int], Optional[str], str]


class PageData:
    """Grows while the page is made."""

    def __init__(self) -> None:
        self._strings: Dict[str, int] = {"": 0, FULL: 1}
        self._frames: Dict[_FrameKey, int] = {}
        self._frame_rows: List[Tuple[int, int, int, int]] = []
        self._stacks: Dict[Tuple[int, ...], int] = {}
        self._by_calls: Dict[int, Tuple[Sequence[Frame], int]] = {}
        self._sets: Dict[Tuple[int, ...], int] = {}
        self._shapes: Dict[Tuple[int, ...], int] = {}
        self._sequences: Dict[Tuple[int, ...], int] = {}
        self._seen: Dict[Tuple[object, ...], int] = {}
        self._kept: List[object] = []  # so that nothing else gets their ids
        self._ranks: List[Dict[str, Any]] = []
        self._text = self._calls = self._threads = 0
        self.tree: List[int] = []
        self.first: Optional[int] = None  # the process whose threads are shown first
        self.left_out = 0  # stacks
        self.threads_left_out = 0

    def string(self, text: str) -> int:
        """Of a text that is fit for the page."""
        number = self._strings.get(text)
        if number is None:
            self._text += len(text)
            if self._text > MOST_TEXT:
                return self._strings[FULL]
            number = self._strings[text] = len(self._strings)
        return number

    def frame(self, call: Any) -> int:
        """Of a `Frame`, or of a node of the tree."""
        key = (call.function, call.file, call.line, call.module, call.language)
        number = self._frames.get(key)
        if number is None:
            number = self._frames[key] = len(self._frames)
            name, where = function(call.function), place(call.file, call.line, call.module)
            full = path(call.file, call.line, call.module)
            row = (self.string(name), self.string(where), self.string("" if full == where else full))
            self._frame_rows.append((*row, int(call.language == "python")))
        return number

    def ranks(self, numbers: Tuple[int, ...]) -> int:
        """Of a set of numbers."""
        return self._sets.setdefault(numbers, len(self._sets))

    def stack(self, calls: Sequence[Frame]) -> int:
        """Of frames, innermost first; LEFT_OUT above the budget."""
        known = self._by_calls.get(id(calls))
        if known is not None:
            return known[1]
        full = self._text > MOST_TEXT or self._calls > MOST_CALLS
        key = () if full else tuple(self.frame(call) for call in calls[:LONGEST])
        number = LEFT_OUT if full and calls else self._stacks.get(key)
        if number is None:
            self._calls += len(key)
            number = self._stacks[key] = len(self._stacks)
        self.left_out += number == LEFT_OUT
        self._by_calls[id(calls)] = calls, number  # kept, so that nothing else gets its id
        return number

    def process(self, one: RankSnapshot, judged: Optional[ProcessJudgement], position: str) -> None:
        """All threads of a process."""
        room = max(MOST_THREADS - self._threads, 0)
        threads = one.threads[:room]
        self._threads += len(threads)
        self.threads_left_out += len(one.threads) - len(threads)
        judgements = judged.threads if judged else (None,) * len(threads)
        shapes = tuple(map(self._shape, threads, judgements))
        decisive = judged.wait.thread if judged else None
        busy = [thread.cpu or 0.0 for thread in threads]
        self._ranks.append(
            {
                "label": one.label,
                "rank": one.rank,
                "about": " · ".join(filter(None, (one_line(one.host, 60), one_line(one.device, 20), position))),
                "title": one_line(one.title, 200),
                "ids": _numbers([thread.id for thread in threads]),
                "shapes": self._sequences.setdefault(shapes, len(self._sequences)),
                "cpu": {str(at): round(cpu, 2) for at, cpu in enumerate(busy) if cpu >= 0.01},
                "decides": next((at for at, thread in enumerate(threads) if thread.id == decisive), None),
            }
        )

    def _shape(self, thread: ThreadStack, judged: Optional[ThreadJudgement]) -> int:
        """What threads may have in common; of most threads it is known from one before."""
        seen = (thread.name, thread.state, id(judged), id(thread.calls), thread.truncated, thread.problems, thread.gil)
        known = self._seen.get(seen)
        if known is None:
            self._kept.append(judged)
            known = self._seen[seen] = self._new_shape(thread, judged)
        return known

    def _new_shape(self, thread: ThreadStack, judged: Optional[ThreadJudgement]) -> int:
        notes = [thread.truncated, *thread.problems, "holds the GIL" if thread.gil else None]
        shape = (
            self.string(one_line(thread.name, 60)),
            self.string(one_line(thread.state, 4)),
            self.string(one_line(shown_kind(judged.kind), 40) if judged else ""),
            self.string(one_line(judged.helper, 40) if judged else ""),
            -1 if judged is None or judged.frame is None else judged.frame,
            self.stack(thread.calls),
            self.string("; ".join(one_line(note, 200) for note in notes[:4] if note)),
        )
        return self._shapes.setdefault(shape, len(self._shapes))

    def text(self) -> str:
        """ASCII that no parser of HTML finds an end or an escape in."""
        document = {
            "strings": list(self._strings),
            "frames": _words(number for row in self._frame_rows for number in row),
            "stacks": list(map(_words, self._stacks)),
            "sets": [ranges_text(numbers) for numbers in self._sets],
            "tree": _words(self.tree),
            "shapes": _words(number for shape in self._shapes for number in shape),
            "sequences": list(map(_words, self._sequences)),
            "ranks": self._ranks,
            "first": self.first,
        }
        text = json_text(document)
        return text.translate({ord(one): f"\\u{ord(one):04x}" for one in "<>&'"})


def _words(numbers: Iterable[int]) -> str:
    """Numbers as one string: two thirds of what they take as a list."""
    return " ".join(map(str, numbers))


def _numbers(ids: Sequence[str]) -> List[Any]:
    """Thread ids; a run of consecutive numbers as the first and how many."""
    found: List[Any] = []
    for one in ids:
        number = int(one) if len(one) < 16 and is_whole(one) and str(int(one)) == one else None
        run = found[-1] if found and isinstance(found[-1], list) else None
        if number is not None and run is not None and run[0] + run[1] == number:
            run[1] += 1
        else:
            found.append(one_line(one, 24) if number is None else [number, 1])
    return found
