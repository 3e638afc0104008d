"""Causes in log lines: what NCCL, torch, the kernel or a launcher reports itself."""

from __future__ import annotations

import dataclasses
import re
from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.analysis.causes.died_by_itself import stream_keeper, told_by_frames
from gdbext.analysis.causes.gpu_resets import RULES as OF_RESETS
from gdbext.analysis.causes.gpu_resets import reset_told
from gdbext.analysis.causes.log_quotes import (
    LONGEST_QUOTE,
    excerpt,
    first_fault,
    is_witness,
    number_in,
    quotation,
    ranks_in,
)
from gdbext.analysis.causes.watchdog_logs import told_by_coordinator, told_by_watchdog
from gdbext.analysis.failures.checker_reports import in_report, is_report, says_itself
from gdbext.analysis.failures.failed_check import found_by_polling, names_an_error
from gdbext.analysis.logs.lines_of_logs import Line, all_lines, fault_before, lines, meaning, waited_in_vain
from gdbext.analysis.stacks.device_threads import device_of
from gdbext.analysis.stacks.reporting_frames import reports_failure
from gdbext.analysis.view.candidate import Candidate
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, parties_of_ranks, party_of, threads
from gdbext.analysis.view.on_device import shown_on_device
from gdbext.analysis.view.places import died_at, ended, what_places, where
from gdbext.analysis.view.wording import label_list, verb, who
from gdbext.knowledge.log_lines import WHAT
from gdbext.knowledge.log_lines.last_words import FATAL, IGNORED
from gdbext.knowledge.log_lines.timeouts_and_warnings import HOLDER
from gdbext.knowledge.log_lines.writers import THREAD_OF_UCX
from gdbext.model.codes import Given
from gdbext.model.job import ONLY
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import ranks

_WHAT, _LINE = regex(WHAT), regex(r"[^\s()]{1,300}:\d{1,7}(?:,|$)")
_THREAD = regex(THREAD_OF_UCX)
_ASSERTION, _TAKEN = "failed-assertion", "gpu-memory-taken"
_HOLDER = regex(HOLDER)
_MOST_HOLDERS = 3
_DOUBTFUL = ("collective-mismatch",)
"""Causes that a fault of the network, of memory or of a driver also looks like, if it came first."""


def told_by_log(view: JobView) -> Optional[Candidate]:
    """A library or the kernel said what went wrong, in a line or by the call with which it ended the process."""
    known = lines(view)
    telling = next((line for line in known if line.rule.cause and _may_decide(view, line, known)), None)
    if telling is None:
        return told_by_frames(view, waited_in_vain(known))
    later = ""
    first = fault_before(view, telling)
    if first is not None and telling.rule.cause in _DOUBTFUL and telling.rule.confidence != "high":
        later = f"A later line says {excerpt(telling)}; that may be a consequence of this failure."
        telling = first._replace(rule=dataclasses.replace(first.rule, confidence="low"))
    rule = telling.rule
    if rule.alone and len(view.snapshot.processes) < 2:
        rule = dataclasses.replace(rule, cause=rule.alone, confidence="low")
    alike = [line for line in known if line.rule.id == rule.id]
    blamed = tuple(sorted({number for line in alike for number in ranks_in(line)}))
    if blamed:
        culprits = parties_of_ranks(view, blamed)
    else:
        accusing = rule.cause in ("missing-rank", "init-rendezvous", "network-transport", "collective-mismatch")
        nobody = accusing or is_witness(telling)
        culprits = () if nobody or telling.process is None else (party_of(view, telling.process),)
    named = {party.index for party in culprits}
    waiting = tuple(party for party in view.of(*COMMUNICATION, "init") if party.index not in named)
    means = f"{meaning(telling)}{number_in(telling)}{f' ({ranks(blamed)})' if blamed else ''}"
    if blamed and rule.befell:
        was = "was" if len(blamed) == 1 else "were"
        means = rule.befell.format(ranks=ranks(blamed), was=was, number=number_in(telling))
    beside = later or first_fault(view, telling).strip()
    if not beside and rule.id == "stream-locked-at-its-end":
        beside = stream_keeper(view)
    if not beside and (is_report(view) or not (rule.past or rule.id == "rust-panicked")):  # a panic names its place
        beside = _stacks_beside(view)
    if rule.id in OF_RESETS:
        beside = f"{reset_told(view, telling.text)} {beside}".strip()
    if rule.id == _TAKEN:
        beside = f"{_holders(view)} {beside}".strip()
    if rule.id == _ASSERTION:
        beside = f"{_several_threads(alike)} {beside}".strip()
    because = _held_up(waiting, blamed) if waiting else beside
    said = _thrown(view, telling) or excerpt(telling)
    if is_report(view) and because is beside and says_itself(said, view):
        means = ""
    summary = f"{quotation(view, telling, means, said)} {because}".rstrip()
    return Candidate(cause=rule.cause, confidence=rule.confidence, summary=summary, culprits=culprits, victims=waiting)


def _several_threads(alike: Sequence[Line]) -> str:
    """Which threads of one process failed the same assertion."""
    found = [match for match in (_THREAD.search(line.text) for line in alike) if match is not None]
    threads_of: Dict[Tuple[str, str], List[str]] = {}
    for match in found:
        threads_of.setdefault((match["pid"], match["says"]), []).append(match["tid"])
    for (pid, _), tids in threads_of.items():
        several = list(dict.fromkeys(tids))
        if len(several) > 1:
            return (
                f"Threads {label_list(several)} of pid {pid} failed the same assertion: they probably use one "
                "object at once that only one thread at a time may use."
            )
    return ""


def _holders(view: JobView) -> str:
    """Who uses memory of a GPU, as far as a list of nvidia-smi is in the text."""
    found = [match for match in (_HOLDER.match(text.strip()) for _, text in all_lines(view)) if match is not None]
    named = [f"pid {one['holder']}{_in_brackets(one['name'] or one['title'])} with {one['memory']}" for one in found]
    named = list(dict.fromkeys(named))[:_MOST_HOLDERS]
    return f"The text lists {label_list(named)}." if named else ""


def _in_brackets(name: Optional[str]) -> str:
    return f" ({name})" if name else ""


def _held_up(waiting: Sequence[Party], blamed: Sequence[int]) -> str:
    """What the line means for those that wait."""
    whose = who(waiting)
    if blamed:
        return f"Without {ranks(blamed)}, {whose} cannot continue."
    read = all(one.thread is not None and one.thread.calls for one in waiting)
    place = f": {verb(waiting, 'it is', 'they are')} in {what_places(waiting)}" if read else ""
    return f"So {'this process' if whose == ONLY else whose} cannot continue{place}."


def _thrown(view: JobView, line: Line) -> str:
    """`std::runtime_error "..."`, where the line tells of an exception of C++ and the next one of its what()."""
    texts = [text for process, text in all_lines(view) if process is line.process]
    following = texts[texts.index(line.text) + 1 :] if line.text in texts else []
    found = _WHAT.match(following[0].strip()) if following else None
    if found is None:
        return ""
    said = " ".join(found["text"].split())
    type_name = re.search(r"instance of '([^']{1,200})'", line.text)
    shown = f'"{said[:LONGEST_QUOTE]}{"…" if len(said) > LONGEST_QUOTE else ""}"'
    return f"{type_name[1]} {shown}" if type_name else shown


def _stacks_beside(view: JobView) -> str:
    """What the stacks add to a line of the log."""
    if view.given is Given.LOG or not view.parties:
        return ""
    if len(view.parties) > 1:
        return ""
    (one,) = view.parties
    if one.thread is None or all(reports_failure(frame.function) for frame in one.thread.calls if frame.function):
        return ""
    if is_report(view):
        return in_report(one)
    if device_of(one.thread) is not None:
        return f"{shown_on_device(one.thread)}."
    whose = f"{'goroutine' if one.process.source == 'text:go' else 'thread'} shown"
    if one.group == "fatal":
        texts = "\n".join((*one.process.said, *one.thread.problems))
        if IGNORED in texts and FATAL not in texts:
            ignored = f"Python ignored that exception, which was raised in {died_at(one)}, and went on"
            return f"{ignored}. Unless the process was exiting then, it did no harm."
        spot = died_at(one)
        if one.kind == "cuda-error-throw":
            text = "" if names_an_error(view) else " The text of the error is in the lines above the stack."
            return f"The {whose} reports a CUDA error in {where(one)}. {found_by_polling(one)}{text}".strip()
        return f"The {whose} {ended([one])} {'at' if _LINE.match(spot) else 'in'} {spot}."
    return f"The {whose} is in {where(one)}." if view.given is Given.TEXT else f"It is in {where(one)}."


def _may_decide(view: JobView, line: Line, known: Sequence[Line]) -> bool:
    """What a process says of its own death counts where it is dead, and where no line tells of waiting for others."""
    if not line.rule.own:
        return True
    if waited_in_vain(known):
        return False
    dead = (one for one in threads(view) if one.group == "fatal")
    return view.given is Given.LOG or is_report(view) or any(line.process in (None, one.process) for one in dead)


PATTERNS = (told_by_log, told_by_watchdog, told_by_coordinator)
