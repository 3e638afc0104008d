"""Words for people: who does something, and how sentences are put together."""

from __future__ import annotations

import signal
from string import Formatter
from typing import Dict, List, Mapping, Sequence

from gdbext.analysis.stacks.outer_names import lacks_main
from gdbext.analysis.view.job_view import Party
from gdbext.model.codes import KERNEL_TEXT
from gdbext.model.job import ONLY, RankSnapshot
from gdbext.model.text.ranges import ranks

CALLED, REACHED = ", called from ", ", reached from "


def who(parties: Sequence[Party]) -> str:
    """`ranks 0-2,5`, `pid 4711`, `thread 3 of rank 0`: what people call them."""
    if any(party.is_thread for party in parties):
        owners: Dict[str, List[str]] = {}
        for party in parties:
            owners.setdefault(party.process.label, []).append(str(party.id))
        return label_list(
            [f"{_threads(ids)} {label_list(ids)}{of_process(process)}" for process, ids in owners.items()]
        )
    if len(parties) == 1 and parties[0].group != "fatal" and _one_of_many(parties[0].process):
        return f"thread {parties[0].id}"
    known = [party.process.rank for party in parties if party.process.rank is not None]
    if len(known) == len(parties):
        return ranks(known)
    return label_list([called(party.process) for party in parties])


def called(process: RankSnapshot) -> str:
    """Its label; of a task of the kernel's log with the name that the log gives it: `pid 1839 (teamredminer)`."""
    named = process.source == KERNEL_TEXT and process.pid is not None and process.rank is None and process.title
    return f"{process.label} ({process.title})" if named else process.label


def _one_of_many(process: RankSnapshot) -> bool:
    """Whether the only thread that was read of the only process is not its first."""
    return process.label == ONLY and len(process.threads) == 1 and lacks_main(process)


def of_process(process: str) -> str:
    return "" if process == ONLY else f" of {process}"


def _threads(ids: Sequence[str]) -> str:
    return "thread" if len(set(ids)) == 1 else "threads"


def label_list(labels: Sequence[str]) -> str:
    """`pid 1, pid 2 and 7 more`, each once."""
    labels = list(dict.fromkeys(labels))
    *first, last = [*labels[:4], f"{len(labels) - 4} more"] if len(labels) > 4 else labels
    return f"{', '.join(first)} and {last}" if first else last


def start(text: str) -> str:
    """The text with a capital letter."""
    return text[:1].upper() + text[1:]


def signal_name(number: int) -> str:
    """`SIGUSR1`; `signal 34` of one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def verb(parties: Sequence[Party], singular: str, plural: str) -> str:
    """`waits` for one, `wait` for several."""
    return singular if len(parties) == 1 else plural


def closed(text: str) -> str:
    """`poll, called from decode,`: a place for the middle of a sentence, where what follows needs the second comma."""
    last = text.rpartition(". ")[2].rpartition("; ")[2]
    return f"{text}," if (CALLED in last or REACHED in last) and not text.endswith((".", ",", ";", ":")) else text


def filled_in(template: str, words: Mapping[str, str]) -> str:
    """The template with its words, and with the second comma behind places in the middle of a sentence."""
    text = ""
    for literal, name, _, _ in reversed(list(Formatter().parse(template))):
        word = words[name] if name is not None else ""
        text = literal + (closed(word) if text.startswith(" ") and text[1:2] != "(" else word) + text
    return text
