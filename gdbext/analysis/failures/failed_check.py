"""A check that failed and ended its process: what it says, where it stands, and what that means for the others."""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.analysis.failures.check_messages import failure_in_line
from gdbext.analysis.failures.error_codes import by_name
from gdbext.analysis.logs.lines_of_logs import all_lines
from gdbext.analysis.view.candidate import Candidate, blame, evidence_of
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, calls_of, threads
from gdbext.analysis.view.places import place, where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.errors.checks import DEVICE_ASSERT, KERNEL_ASSERT, NAMES_OF_ERRORS, POLLED, WATCHDOG_ENDED
from gdbext.model.check_report import Failure
from gdbext.model.error_code import ErrorCode
from gdbext.model.text.patterns import regex
from gdbext.model.verdict import Evidence

_ASSERT = regex(KERNEL_ASSERT)
_ENDS = regex(r".*(?:terminate called|Aborted|core dumped|[Ss]ignal\b|SIG[A-Z]{3,4}\b|\[TM\]\[FATAL\])|F\d{4,8} ")
_MARKS = (
    *("CUDA ", "CUDA_", "cudaError", "Cuda failure", "CUBLAS_STATUS"),
    *("ssertion fail", "Check failed", "non NULL", "][FATAL]"),
)
"""A line without any of these is not looked at: a log of a thousand ranks has many."""
_AT_THE_END = ("cudaErrorCudartUnloading", "CUDA_ERROR_DEINITIALIZED")  # what a destructor or an exit handler gets
_HIDES = ("cublasStatus_t", (13, 14))  # cuBLAS failed to run a kernel: the error of the kernel is hidden
_LONGEST = 300
_ONLY_SEEN = "torch's watchdog only saw the error; the call or kernel that failed is not in the text."
_WATCHDOG = regex(WATCHDOG_ENDED)
_POLLED, _NAME_OF_ERROR = regex(POLLED), regex(NAMES_OF_ERRORS)
_SHARED_MEMORY = regex(r"(shm|SharedMemory|ftruncate|memset|nccl)", re.IGNORECASE)


class _CheckMessage(NamedTuple):
    """A failed check's message, and the process that said it (None: one of several)."""

    failure: Failure
    process: Optional[int]


def ended_by_check(view: JobView) -> Optional[Candidate]:
    """A process threw an error of CUDA, or a log has the message of a check that failed."""
    dying = _dying(view)
    said = max(_all_said(view), key=_weight, default=None)
    if said is None:
        return _without_message([one for one in dying if one.kind == "cuda-error-throw"], view)
    own = [one for one in dying if said.process in (None, one.index)]
    fault = _is_fault(said.failure)
    if not own and not fault and not _says_the_end(view):
        return None  # an error that was handled is no end
    culprits = own or [one for one in view.parties if one.index == said.process]
    dead = {one.index for one in culprits}
    victims = [one for one in view.of(*COMMUNICATION, "init") if one.index not in dead]
    sure = fault and bool(own) and said.process is not None and _says_the_end(view)
    confidence = "high" if sure else "medium" if own or fault else "low"
    return Candidate(
        cause="gpu-fault" if fault else "destructor-or-teardown" if _at_the_end(said.failure) else "other",
        confidence=confidence,
        summary=_summary(said.failure, culprits, victims, _failed_assert(said.failure, view), _watched(view, said)),
        culprits=tuple(culprits),
        victims=tuple(victims),
        evidence=(_quoted(said, culprits), *evidence_of(culprits, victims)),
    )


def _dying(view: JobView) -> List[Party]:
    """Of every process that throws or aborts, itself where its deciding thread does so, else that thread."""
    found: Dict[int, Party] = {}
    for one in threads(view, ("cuda-error-throw", "exited-or-crashed")):
        whole = next((party for party in view.parties if party.index == one.index), None)
        found.setdefault(one.index, whole if whole is not None and whole.group == "fatal" else one)
    return list(found.values())


def _all_said(view: JobView) -> Iterator[_CheckMessage]:
    for process in view.snapshot.processes:
        lines = (*process.said, *(text for thread in process.threads for text in thread.problems))
        yield from _failures(lines, process.index)
    alone = view.snapshot.processes[0].index if len(view.snapshot.processes) == 1 else None
    yield from _failures(view.snapshot.said, alone)


def _failures(lines: Sequence[str], process: Optional[int]) -> Iterator[_CheckMessage]:
    for failure in (failure_in_line(line) for line in lines if any(mark in line for mark in _MARKS)):
        if failure is None:
            continue
        if failure.error is None or failure.error.library != "ncclResult_t":  # tells of a peer, mostly
            yield _CheckMessage(failure, process)


def _weight(said: _CheckMessage) -> Tuple[bool, bool, bool, bool]:
    """The most telling first; of equal ones `max` takes the first that was said."""
    failure = said.failure
    return _is_fault(failure), failure.error is not None, bool(failure.file), said.process is not None


def _is_fault(failure: Failure) -> bool:
    """Whether it is a kernel or the hardware that failed, and not the call that was checked."""
    error = failure.error
    if error is None:
        return False
    return bool(error.sticky) or (error.library == _HIDES[0] and error.number in _HIDES[1])


def _at_the_end(failure: Failure) -> bool:
    return failure.error is not None and failure.error.name in _AT_THE_END


def _says_the_end(view: JobView) -> bool:
    """Whether a line says that a process ended."""
    return any(_ENDS.match(text) for _, text in all_lines(view))


def _failed_assert(failure: Failure, view: JobView) -> str:
    """`i < n at IndexKernel.cu:92`: the condition in a kernel that the error is about, where a line names it."""
    if failure.error is None or failure.error.number != DEVICE_ASSERT:
        return ""
    found = next(filter(None, (_ASSERT.search(text) for _, text in all_lines(view))), None)
    if found is None:
        return ""
    at = f", at {found['file'].rpartition('/')[2]}:{found['line']}" if found["file"] else ""
    return f"{found['condition'][:_LONGEST]}{at}"


def _summary(
    failure: Failure, culprits: Sequence[Party], victims: Sequence[Party], asserted: str, seen_by_watchdog: bool
) -> str:
    error = failure.error
    named = f" ({error.name}, {error.number})" if error else ""
    text = failure.text.strip().rstrip(".")
    text = text[: -len(error.name) - 2].rstrip() if error and text.endswith(f"({error.name})") else text
    at = f" at {failure.file}:{failure.line}" if failure.file else ""
    text = text.replace(f"{at[4:]} ", "") if at else text  # an engine's macro may put it into its message, too
    inside = _engine_place(culprits)
    subject = f"{start(who(culprits))} ended on a failed check" if culprits else "A check failed"
    summary = f'{subject}{at}: "{text[:_LONGEST]}"{named}.{f" The error was reported in {inside}." if inside else ""}'
    if asserted:
        summary += f" An assert in a kernel failed: {asserted}."
    elif _is_fault(failure):
        summary += " The failing GPU work was launched earlier; the check only reported it."
    elif _at_the_end(failure):
        summary += " CUDA was already shut down: the call came from a destructor or an exit handler."
    elif seen_by_watchdog:
        summary += f" {_ONLY_SEEN}"
    elif error is not None and error.sticky is False:
        summary += " The checked call itself failed, not an earlier kernel."
    if victims:
        summary += f" {start(who(victims))} {verb(victims, 'waits', 'wait')} for work that can no longer complete."
    return summary


def _watched(view: JobView, said: _CheckMessage) -> bool:
    """Whether it is torch's watchdog that reports the error: it asks for the state of what others have launched."""
    texts = (text for process, text in all_lines(view) if process is None or said.process in (None, process.index))
    return any(_WATCHDOG.search(text) and said.failure.text[:40] in text for text in texts)


def _engine_place(culprits: Sequence[Party]) -> str:
    frames = (party.frame(party.judged.engine_frame) for party in culprits)
    frame = next((one for one in frames if one is not None), None)
    return place(frame) if frame is not None else ""


def _quoted(said: _CheckMessage, culprits: Sequence[Party]) -> Evidence:
    text = f"the failed check says: {said.failure.message[:_LONGEST]}"
    if said.process is None or not culprits:
        return Evidence(text, said.process)
    return Evidence(text, said.process, culprits[0].id or None, culprits[0].judged.engine_frame)


def _without_message(dying: Sequence[Party], view: JobView) -> Optional[Candidate]:
    """The stack alone shows that an error of CUDA is thrown, and which one where it is an argument."""
    if not dying:
        return None
    error = _argument(dying)
    dead = {one.index for one in dying}
    victims = tuple(one for one in view.of(*COMMUNICATION, "init") if one.index not in dead)
    summary = (
        f"{start(who(dying))} {verb(dying, 'reports', 'report')} in {closed(where(dying[0]))} that a call to the "
        "GPU runtime failed"
    )
    if error is None:
        summary += (
            ". The stack does not show the error: look for its number in the exception's message or the log; `gdbext "
            "error NUMBER` explains it."
        )
    else:
        summary += f" with {error.name} ({error.number}, an argument on the stack): {error.meaning.rstrip('.')}."
    polled = found_by_polling(dying[0])
    summary += f" {polled}" if polled else ""
    confidence = "medium" if victims or error is not None else "low"
    return Candidate(
        cause="gpu-fault" if error is None or error.sticky else "other",
        confidence=confidence,
        summary=summary,
        culprits=tuple(dying),
        victims=victims,
        evidence=evidence_of(dying, victims),
    )


def _argument(dying: Sequence[Party]) -> Optional[ErrorCode]:
    values = (
        value
        for party in dying
        for frame in (party.thread.calls if party.thread else ())
        for value in frame.captures.values()
    )
    named = (by_name(value) for value in values if isinstance(value, str) and _NAME_OF_ERROR.match(value))
    return next((found[0] for found in named if found), None)


def found_by_polling(party: Party) -> str:
    """What it means that torch found an error while it asked for the state of a collective."""
    polled = any(map(_POLLED.match, calls_of(party)))
    return "There torch only asks whether NCCL work is done, so the error is of earlier GPU work." if polled else ""


def names_an_error(view: JobView) -> bool:
    """Whether a line has the text of an error of CUDA."""
    return any(mark in text for _, text in all_lines(view) for mark in _MARKS)


def bus_error(view: JobView) -> Optional[Candidate]:
    """A thread whose memory is not there."""
    dying = list(threads(view, ("sigbus",)))
    if not dying:
        return None
    dead = {one.index for one in dying}
    victims = [party for party in view.of(*COMMUNICATION, "init") if party.index not in dead]
    shared = any(_SHARED_MEMORY.search(name) for one in dying for name in calls_of(one))
    summary = f"{start(who(dying))} got SIGBUS in {where(dying[0])}: a mapped page has no backing memory. " + (
        "With NCCL's shared memory the usual cause is a full /dev/shm."
        if shared
        else "The usual causes are a full /dev/shm and a truncated file."
    )
    return blame("shm-too-small", "medium" if shared else "low", summary, dying, victims)


PATTERNS = (ended_by_check, bus_error)
