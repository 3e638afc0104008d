"""The threads that the answer rests on, with their frames: what a click on a piece of evidence leads to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Set, Tuple

from gdbext.model.evidence import Evidence
from gdbext.model.job import RankSnapshot
from gdbext.model.page import Page
from gdbext.model.verdict import Diagnosis
from gdbext.model.waits import shown_kind
from gdbext.render.html.chain_picture import endings
from gdbext.render.html.page_words import PLAIN, SENTENCE, frame_place, function, one_line, path, place, thread_place
from gdbext.render.text.verdict.process_names import seen_at

MOST_THREADS, MOST_FRAMES, MOST_EVIDENCE = 16, 128, 200


@dataclass(frozen=True)
class CitedFrame:
    """`decides`: it is the one that says what the thread is in."""

    place: str
    number: int
    name: str
    where: str
    path: str
    python: bool
    decides: bool


@dataclass(frozen=True)
class CitedThread:
    """A thread, innermost frame first."""

    place: str
    title: str
    about: str
    culprit: bool
    frames: Tuple[CitedFrame, ...]
    notes: Tuple[str, ...]
    more: int


@dataclass(frozen=True)
class EvidenceRow:
    """`target`: the frame, the thread or the rank that shows it."""

    text: str
    seen_at: str
    target: str


class Cited:
    """`threads` in the order of the answer; `places` of each thread that is shown, by process and id."""

    def __init__(self, page: Page) -> None:
        self._processes = {one.index: one for one in page.snapshot.processes}
        self._positions: Dict[int, Dict[str, int]] = {}
        self.places: Dict[Tuple[int, Optional[str]], str] = {}
        self.threads: Tuple[CitedThread, ...] = ()
        self.evidence: Tuple[EvidenceRow, ...] = ()
        if page.diagnosis is None:
            return
        verdict = page.diagnosis.verdict
        wanted = self._wanted(page.diagnosis)
        self.threads = tuple(self._thread(index, at, page.diagnosis) for index, at in wanted)
        self.evidence = tuple(map(self._evidence, verdict.evidence[:MOST_EVIDENCE]))

    def _wanted(self, diagnosis: Diagnosis) -> List[Tuple[int, int]]:
        """Process and position of each thread that somebody may ask for: of the evidence, of the chain, culprits."""
        verdict = diagnosis.verdict
        waits = {one.index: one.wait for one in diagnosis.processes}
        asked: List[Tuple[Optional[int], Optional[str]]] = [(verdict.decisive_process, verdict.decisive_thread)]
        asked += [(one.process, one.thread) for one in verdict.evidence]
        asked += endings(verdict.chain)
        asked += [(one.process, one.thread) for edge in verdict.chain for one in edge.facts]
        asked += [(index, None) for index in (*verdict.culprits, *verdict.victims[:1])]
        found: Dict[Tuple[int, int], None] = {}
        for index, thread in asked:
            if index not in self._processes:
                continue
            wait = waits.get(index)
            at = self._position(index, thread if thread is not None else wait.thread if wait else None)
            if at is not None:
                found[index, at] = None
        shown = list(found)[:MOST_THREADS]
        named: Set[int] = set()
        for index, at in shown:
            self.places[index, self._processes[index].threads[at].id] = thread_place(index, at)
            wait = waits.get(index)
            if index not in named and (wait is None or wait.thread == self._processes[index].threads[at].id):
                self.places[index, None] = thread_place(index, at)
                named.add(index)
        return shown

    def _position(self, index: int, thread: Optional[str]) -> Optional[int]:
        known = self._positions.get(index)
        if known is None:
            threads = self._processes[index].threads
            known = self._positions[index] = {one.id: at for at, one in reversed(list(enumerate(threads)))}
        return known.get(thread) if thread is not None else None

    def _thread(self, index: int, at: int, diagnosis: Diagnosis) -> CitedThread:
        process = self._processes[index]
        thread = process.threads[at]
        judged = next((one for one in diagnosis.processes if one.index == index), None)
        one = judged.threads[at] if judged and at < len(judged.threads) else None
        frames = tuple(
            CitedFrame(
                place=frame_place(index, at, number),
                number=number,
                name=function(frame.function),
                where=place(frame.file, frame.line, frame.module),
                path=path(frame.file, frame.line, frame.module),
                python=frame.language == "python",
                decides=one is not None and one.frame == number,
            )
            for number, frame in enumerate(thread.calls[:MOST_FRAMES])
        )
        about = [one_line(process.host, 60), f"pid {process.pid}" if process.pid is not None else ""]
        about += [one_line(shown_kind(one.kind), 40) if one else "", "holds the GIL" if thread.gil else ""]
        return CitedThread(
            place=thread_place(index, at),
            title=" ".join(filter(None, [process.label, "thread", one_line(thread.id, 24), one_line(thread.name, 60)])),
            about=" · ".join(filter(None, about)),
            culprit=index in diagnosis.verdict.culprits,
            frames=frames,
            notes=tuple(one_line(note, SENTENCE) for note in (thread.truncated, *thread.problems[:8]) if note),
            more=max(len(thread.calls) - MOST_FRAMES, 0),
        )

    def _evidence(self, item: Evidence) -> EvidenceRow:
        return EvidenceRow(one_line(item.text, SENTENCE), seen_at_words(self._processes, item), self.target(item))

    def target(self, item: Evidence) -> str:
        """Where a click on it leads; "" where nothing shows it."""
        if item.process is None or item.process not in self._processes:
            return ""
        at = self._position(item.process, item.thread)
        if at is None:
            return self.places.get((item.process, None), "")
        threads = self._processes[item.process].threads
        shown = (item.process, item.thread) in self.places
        number = item.frame if item.frame is not None and 0 <= item.frame < len(threads[at].calls) else None
        if number is None or (shown and number >= MOST_FRAMES):
            return thread_place(item.process, at)
        return frame_place(item.process, at, number)


def seen_at_words(processes: Dict[int, RankSnapshot], item: Evidence) -> str:
    """`rank 3, thread 12, frame 4`."""
    some: Sequence[RankSnapshot] = [processes[item.process]] if item.process in processes else []
    return one_line(seen_at(some, item, PLAIN).strip("[]"))
