"""All witnesses are asked at once, before any rank is stopped, and nobody waits longer than the deadline."""

from __future__ import annotations

import threading
import time
from typing import Callable, Dict, Sequence, Tuple

from gdbext.model.witness import Witness
from gdbext.witnesses import flight_recorder, kernel_log, nvml, ras, shared_memory
from gdbext.witnesses.question import Asked, Question, failed_witness

SECONDS = 2.0

Ask = Callable[[Question], Witness]

WITNESSES: Tuple[Tuple[str, Ask], ...] = (
    (ras.NAME, ras.ask),
    (nvml.NAME, nvml.ask),
    (flight_recorder.NAME, flight_recorder.ask),
    (shared_memory.NAME, shared_memory.ask),
    (kernel_log.NAME, kernel_log.ask),
)


def ask_all(
    ranks: Sequence[Asked],
    proc: str = "/proc",
    seconds: float = SECONDS,
    witnesses: Sequence[Tuple[str, Ask]] = WITNESSES,
) -> Tuple[Witness, ...]:
    """What each witness says, in the order of `witnesses`. Returns within `seconds`, whatever they do."""
    question = Question(tuple(ranks), time.monotonic() + seconds, proc)
    answers: Dict[str, Witness] = {}
    # Daemons: one that is stuck in the kernel (a dead network file system) must not keep us from ending.
    threads = [
        threading.Thread(target=_ask_one, args=(name, ask, question, answers), daemon=True) for name, ask in witnesses
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(question.left)
    late = f"no answer within {seconds:g} s"
    return tuple(answers.get(name) or failed_witness(name, late) for name, _ in witnesses)


def _ask_one(name: str, ask: Ask, question: Question, answers: Dict[str, Witness]) -> None:
    try:
        answers[name] = ask(question)
    except Exception as error:  # noqa: BLE001  what a witness says must not cost the look
        answers[name] = failed_witness(name, f"{type(error).__name__}: {error}"[:200])
