"""What stands on the page beside matrix, chain and stacks: facts, locks, communicators, witnesses, samples, limits."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.model.codes import Given
from gdbext.model.job import JobSnapshot
from gdbext.model.locks import LockRow
from gdbext.model.page import Page, Sample
from gdbext.model.text.ranges import counted, ranges_text, ranks
from gdbext.model.verdict import Diagnosis, Verdict
from gdbext.render.html.page_words import PLAIN, SENTENCE, function, one_line, thread_place
from gdbext.render.html.rank_matrix import wait_words
from gdbext.render.safe_text import shorten_name, utc_text
from gdbext.render.text.comms import launch_counts_text, places_of, search_notes, states_of, unread_text
from gdbext.render.text.verdict.details import problems_of
from gdbext.render.text.verdict.origin import INVALID
from gdbext.render.text.verdict.process_names import names_of_processes
from gdbext.render.text.verdict.short_verdict import pause_text

MOST_ROWS = 200
MOST_SAMPLES, MOST_HISTORIES = 24, 40
MOST_HOSTS, MOST_FILES = 4, 4
Pairs = Tuple[Tuple[str, str], ...]


@dataclass(frozen=True)
class Status:
    """`accent`: bad, doubt or good; `mark` says it without colour."""

    accent: str
    mark: str
    words: str


def status(diagnosis: Optional[Diagnosis]) -> Status:
    """What kind of answer it is, in two words."""
    if diagnosis is None:
        return Status("plain", "≡", "communicators")
    if diagnosis.hangs is None:
        return Status("doubt", "?", "undecided")
    if not diagnosis.hangs:
        return Status("good", "✓", "nothing hangs")
    return Status("doubt", "!", "finding") if diagnosis.verdict.cause == "unknown" else Status("bad", "▲", "finding")


def answer_facts(diagnosis: Diagnosis) -> Pairs:
    """Whom the answer is about."""
    verdict, processes = diagnosis.verdict, diagnosis.snapshot.processes
    found: List[Tuple[str, str]] = []
    if verdict.culprits:
        title = "Suspect" if len(verdict.culprits) == 1 else "Suspects"
        found.append((title, names_of_processes(processes, verdict.culprits, PLAIN, details=True)))
    if verdict.absent:
        found.append(("Absent", f"{ranks(verdict.absent)}: no process found"))
    if verdict.victims:
        found.append(("Held up", names_of_processes(processes, verdict.victims, PLAIN)))
    if verdict.unexplained:
        found.append(("Left", f"{names_of_processes(processes, verdict.unexplained, PLAIN)}: not explained by this"))
    found += [("Error line", text) for text in verdict.other_errors]
    return tuple((name, one_line(text, 300)) for name, text in found)


def other_explanations(verdict: Verdict, snapshot: JobSnapshot) -> Pairs:
    """What else would explain it: cause, and whom it blames."""
    found = []
    for one in verdict.alternatives:
        suspects = names_of_processes(snapshot.processes, one.culprits, PLAIN) or (
            ranges_text(one.absent) and f"absent {ranges_text(one.absent)}"
        )
        found.append(
            (
                f"{one_line(one.cause, 60)}",
                one_line(", ".join(filter(None, (suspects, f"{one.confidence} confidence")))),
            )
        )
    return tuple(found)


def look_facts(page: Page) -> Pairs:
    """When and where the look was taken, of what, and what it cost."""
    snapshot = page.snapshot
    hosts = list(dict.fromkeys(one.host for one in snapshot.processes if one.host))
    shown = [one_line(host, 60) for host in hosts[:MOST_HOSTS]]
    threads = sum(len(one.threads) for one in snapshot.processes)
    numbers = counted(len(snapshot.processes), "process", "processes")
    cores = page.origin is not None and page.origin.cores
    files = [os.path.basename(name) or name for name in page.origin.files] if page.origin else []
    when = "" if snapshot.taken_at is None else utc_text(snapshot.taken_at) or INVALID
    found = [
        ("Written" if cores else "Taken", when),
        ("Host" if len(hosts) == 1 else "Hosts", ", ".join(shown) + _more_than(len(hosts), MOST_HOSTS)),
        ("Host", "unknown: a core file names none" if cores and not hosts else ""),
        ("Engine", one_line(snapshot.engine, 60)),
        ("Read", f"{numbers}, {counted(threads, 'thread')}, {_from(snapshot)}"),
        ("Pause", next(iter(pause_text(snapshot.processes, PLAIN)), "")),
        ("File", ", ".join(one_line(name, 120) for name in files[:MOST_FILES]) + _more_than(len(files), MOST_FILES)),
        ("Made by", " · ".join(filter(None, (one_line(snapshot.tool, 60), one_line(snapshot.command, 80))))),
    ]
    return tuple((name, text) for name, text in found if text)


def _more_than(number: int, shown: int) -> str:
    return f" and {number - shown:,} more" if number > shown else ""


_FROM = {
    Given.LIVE: "running processes",
    Given.HELD: "processes that gdb holds",
    Given.CORE: "core files",
    Given.TEXT: "pasted stacks",
    Given.LOG: "log lines",
}


def _from(snapshot: JobSnapshot) -> str:
    kinds = dict.fromkeys(one.given for one in snapshot.processes)
    return "from " + (" and ".join(_FROM[one] for one in kinds) or "nothing")


def limits(page: Page) -> Tuple[str, ...]:
    """What was not read, or stands here in part: equal problems of several processes once."""
    texts = problems_of(page.snapshot, PLAIN)
    texts += page.diagnosis.verdict.missing if page.diagnosis else ()
    more = len(texts) - MOST_ROWS
    shown = [one_line(text, SENTENCE) for text in texts[:MOST_ROWS]]
    return (*shown, f"… {more:,} more, all in --json") if more > 0 else tuple(shown)


@dataclass(frozen=True)
class LockLine:
    """A wait for a lock."""

    circle: bool
    process: str
    thread: str
    kind: str
    owner: str
    owner_does: str
    where: str
    lock: str
    target: str


def lock_rows(page: Page) -> Tuple[LockLine, ...]:
    """Circles first."""
    rows = page.locks.rows[:MOST_ROWS] if page.locks else ()
    by_index = {one.index: one for one in page.snapshot.processes}

    def line(row: LockRow) -> LockLine:
        threads = by_index[row.process].threads if row.process in by_index else ()
        at = next((at for at, thread in enumerate(threads) if thread.id == row.thread), None)
        kind = f"{row.wait.kind} ({row.wait.detail})" if row.wait.detail else row.wait.kind
        address = f"{row.wait.address:#x}" if row.wait.address else ""
        return LockLine(
            circle=row.circle is not None or row.wait.gone,
            process=one_line(row.label, 40),
            thread=one_line(f"{row.thread} {row.name}", 60),
            kind=one_line(kind, 80),
            owner=one_line(row.owner, 120),
            owner_does=one_line(row.owner_does, 300),
            where=one_line(row.where, 200),
            lock=one_line(" ".join(filter(None, (row.wait.name, address))), 120),
            target="" if at is None else thread_place(row.process, at),
        )

    return tuple(map(line, rows))


@dataclass(frozen=True)
class GroupLine:
    """A communicator."""

    name: str
    size: str
    ranks: str
    launched: str
    state: str
    uneven: bool
    notes: Tuple[str, ...]


def group_rows(page: Page) -> Tuple[GroupLine, ...]:
    """As `gdbext comms` has them."""
    processes = {process.index: process for process in page.snapshot.processes}
    groups = page.communicators.groups[:MOST_ROWS] if page.communicators else ()
    found = []
    for group in groups:
        ends = [member.communicator for member in group.members]
        found.append(
            GroupLine(
                name=group.name,
                size=f"{group.n_ranks:,}",
                ranks=one_line(places_of([processes.get(one.process) for one in group.members], PLAIN), 120),
                launched=one_line(launch_counts_text(group, ends), 300),
                state=one_line(", ".join(states_of(group, ends)), 200),
                uneven=bool(group.uneven) and not group.moving,
                notes=tuple(one_line(note, SENTENCE) for note in group.notes[:8]),
            )
        )
    return tuple(found)


def group_notes(page: Page) -> Tuple[str, ...]:
    """What could not be read of communicators, and what to keep in mind."""
    table = page.communicators
    if table is None:
        return ()
    processes = {process.index: process for process in page.snapshot.processes}
    texts = [unread_text(member, processes) for member in table.unreadable]
    texts += [*search_notes(page.snapshot.processes, PLAIN), *table.notes]
    return tuple(one_line(text, SENTENCE) for text in texts[:24])


@dataclass(frozen=True)
class WitnessLine:
    name: str
    state: str
    reason: str
    statements: Tuple[str, ...]


def witness_rows(snapshot: JobSnapshot) -> Tuple[WitnessLine, ...]:
    """Who was asked beside the stacks, and what each said."""
    return tuple(
        WitnessLine(
            name=one_line(one.name, 60),
            state=one_line(one.state, 20),
            reason=one_line(one.reason, 300),
            statements=tuple(one_line(each.text, SENTENCE) for each in one.statements[:24]),
        )
        for one in snapshot.witnesses
    )


@dataclass(frozen=True)
class History:
    """What ranks with the same past were in at each look; `changed` where it is not as at the one before."""

    ranks: str
    waits: Tuple[Tuple[str, bool], ...]


def sample_times(page: Page) -> Tuple[str, ...]:
    """Heads of the columns: seconds before the look of the page, where both have a time."""
    samples, now = page.samples[-MOST_SAMPLES:], page.snapshot.taken_at
    heads = []
    for number, one in enumerate(samples[:-1]):
        known = now is not None and one.taken_at is not None
        heads.append(f"{one.taken_at - now:+.1f} s" if known else f"look {number + 1}")  # type: ignore[operator]
    return (*heads, "the answer") if samples else ()


def histories(page: Page) -> Tuple[History, ...]:
    """Rows of the timeline."""
    samples = page.samples[-MOST_SAMPLES:]
    groups: Dict[Tuple[str, ...], List[int]] = {}
    for number, process in enumerate(page.snapshot.processes if samples else ()):
        words = tuple(_in_words(sample, number) for sample in samples)
        groups.setdefault(words, []).append(process.index)
    rows = sorted(groups.items(), key=lambda item: len(item[1]))[:MOST_HISTORIES]
    return tuple(
        History(names_of_processes(page.snapshot.processes, some, PLAIN), _changes(words)) for words, some in rows
    )


def _in_words(sample: Sample, number: int) -> str:
    """`io in read`, `nccl-group-launch, all_reduce in ncclAllReduce`."""
    wait = sample.waits[number] if number < len(sample.waits) else None
    call = sample.calls[number] if number < len(sample.calls) else None
    inside = f" in {shorten_name(function(call.function), 60, PLAIN)}" if call is not None else ""
    return f"{wait_words(wait)}{inside}"


def _changes(words: Sequence[str]) -> Tuple[Tuple[str, bool], ...]:
    return tuple((one, number > 0 and one != words[number - 1]) for number, one in enumerate(words))
