"""What a sanitizer or a GPU core says of kernels: equal errors of all ranks as one, who launched them, what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.analysis.failures.error_codes import in_message
from gdbext.analysis.stacks.frame_facts import FrameBook
from gdbext.analysis.stacks.reporting_frames import is_raising
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party
from gdbext.analysis.view.places import place
from gdbext.analysis.view.wording import start, verb, who
from gdbext.knowledge.errors.compute_sanitizer import GPU_CORE, KINDS
from gdbext.knowledge.errors.xid import XID_LINE, meaning_of
from gdbext.model.gpu_errors import SANITIZER, DevicePlace, GpuError, GpuFinding, SeenIn
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.stack import Frame
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import counted, ranks
from gdbext.model.verdict import Evidence, ThreadJudgement

MOST_ERRORS = 12
_LONGEST_NAME = 160
_ORDER = {kind: number for number, kind in enumerate(KINDS)}
_XID = regex(XID_LINE)
_STUB = ("__device_stub__", "__cudaPush", "__sti____cuda")


def findings(snapshot: JobSnapshot) -> Tuple[GpuFinding, ...]:
    """All errors of all processes, the gravest first, then the most frequent."""
    errors: Dict[Tuple[object, ...], GpuError] = {}
    seen: Dict[Tuple[object, ...], List[SeenIn]] = {}
    for process in snapshot.processes:
        for error in process.gpu_errors:
            key = _same(error)
            errors.setdefault(key, error)
            seen.setdefault(key, []).append(SeenIn(process.index, error.count))
    book = FrameBook()
    found = []
    for key, error in errors.items():
        frames = error.host_frames or launcher_frames(snapshot.processes[seen[key][0].process], error.host_thread)
        found.append(
            GpuFinding(
                error=error,
                seen=tuple(seen[key]),
                engine_frame=own_frame(frames, book, "native"),
                python_frame=own_frame(frames, book, "python"),
            )
        )
    found = [replace(one, text=_error_sentence(snapshot, one)) for one in found]
    return tuple(sorted(found, key=lambda one: (_ORDER.get(one.error.kind, len(_ORDER)), -one.count)))


def _same(error: GpuError) -> Tuple[object, ...]:
    """What ranks must share: the kernel and its place, and the frames that have names."""
    places = tuple((one.function, one.file, one.line, one.access) for one in error.places)
    calls = tuple((one.function, one.file, one.line) for one in error.host_frames if one.function)
    what = (error.kind, error.space, error.access, error.size, error.problem, error.kernel, error.call, error.error)
    return (*what, places, calls)


def launcher_frames(process: RankSnapshot, thread: Optional[int]) -> Sequence[Frame]:
    """The stack of the thread that launched the kernel, as it is now."""
    threads = process.threads if thread is not None else ()
    return next((one.frames for one in threads if one.lwp == thread), ())


def own_frame(frames: Sequence[Frame], book: FrameBook, language: str) -> Optional[Frame]:
    """The first frame of that language that is no library's: of the engine's own code."""
    for frame in frames:
        if frame.language != language or is_raising(frame.function):
            continue
        known = book.known_frame(frame)
        stub = any(mark in (frame.function or "") for mark in _STUB)
        if not (stub or known.name is None or known.system or known.vendor or known.entry):
            return frame
    return None


def reported(view: JobView) -> Optional[Candidate]:
    """A sanitizer or the driver watched the kernels, and some did what they must not."""
    found = findings(view.snapshot)
    if not found:
        return None
    worst = found[0]
    row = KINDS.get(worst.error.kind, KINDS["other"])
    cause, confidence = (row.cause, row.confidence)
    fault = in_message(worst.error.error) if worst.error.kind == "api-error" else None
    if fault is not None and fault.sticky:
        cause, confidence = "gpu-fault", "medium"
    culprits = [_party(view, one.process) for one in worst.seen]
    hit = {party.index for party in culprits}
    victims = [party for party in view.of(*COMMUNICATION, "init") if party.index not in hit] if row.ends_work else []
    return Candidate(
        cause=cause,
        confidence=confidence,
        summary=_summary(found, culprits, victims),
        culprits=tuple(culprits),
        victims=tuple(victims),
        evidence=(
            *(Evidence(one.text, one.seen[0].process) for one in found[:MOST_ERRORS]),
            *_xids(culprits),
            *evidence_of([party for party in culprits if party.thread is not None], victims),
        ),
    )


def clean_reports(view: JobView) -> Optional[Candidate]:
    """Nothing but reports of a sanitizer, and no error in them: whether that says that there is none."""
    processes = view.snapshot.processes
    if not processes or any(one.source != SANITIZER or one.threads or one.gpu_errors for one in processes):
        return None
    problems = list(dict.fromkeys(text for one in processes for text in one.problems))
    if not problems:
        return Candidate(
            cause="not-a-hang",
            confidence="low",
            summary=f"The sanitizer reports no error: {counted(len(processes), 'report')} with a summary of 0 errors. "
            "It checks kernels only; whether anything hangs, only stacks can show.",
        )
    return Candidate(
        cause="unknown",
        confidence="low",
        summary=f"The reports show no error, but they are not complete: {problems[0]}.",
        decided_by="gdbext run --sanitizer -- COMMAND",
    )


def _xids(culprits: Sequence[Party]) -> List[Evidence]:
    """What the kernel's log says of the same processes."""
    lines = [(party, _XID.search(line)) for party in culprits for line in party.process.said]
    return [
        Evidence(
            f"the kernel log has Xid {found['number']} on GPU {found['bus']} for {party.process.label}: "
            f"{meaning_of(int(found['number'])).meaning}",
            party.index,
        )
        for party, found in lines
        if found is not None
    ][:MOST_ERRORS]


def _party(view: JobView, index: int) -> Party:
    """The process as a party, also where none of its stacks was read."""
    known = next((party for party in view.parties if party.index == index), None)
    process = view.snapshot.processes[index]
    return known or Party(process=process, thread=None, judged=ThreadJudgement(kind="unknown"), group="unknown")


def _summary(found: Sequence[GpuFinding], culprits: Sequence[Party], victims: Sequence[Party]) -> str:
    worst, source = found[0], "sanitizer"
    error, means = _short_files(worst.error), KINDS.get(worst.error.kind, KINDS["other"]).means
    if error.tool == GPU_CORE:
        source, error, means = "GPU core", replace(error, problem=""), error.problem or means
    text = f"The {source} reports for {who(culprits)}: {_what(error)}{_launched(worst)}. In short: {means}."
    if len(found) > 1:
        text += f" {counted(len(found) - 1, 'other kind')} of error {'is' if len(found) == 2 else 'are'} reported too."
    if victims:
        text += f" {start(who(victims))} {verb(victims, 'waits', 'wait')} for what cannot complete any more."
    return text


def _short_files(error: GpuError) -> GpuError:
    """Without folders, as host frames are told: the answer has few lines, and the list of errors has the path."""
    return replace(error, places=tuple(replace(one, file=one.file.rsplit("/", 1)[-1]) for one in error.places))


def _error_sentence(snapshot: JobSnapshot, finding: GpuFinding) -> str:
    """One error with all that its report says, as a sentence."""
    error = finding.error
    names = [snapshot.processes[one.process] for one in finding.seen]
    numbers = [one.rank for one in names if one.rank is not None]
    affected = ranks(numbers) if len(numbers) == len(names) else ", ".join(one.label for one in names[:8])
    often = f", {counted(finding.count, 'time')} on {affected}"
    near = f", {error.nearest.words}" if error.nearest else ""
    return f"{_what(error)}{near}{_thread(error)}{_launched(finding)}{often}"


def _what(error: GpuError) -> str:
    """`Invalid __global__ write of size 4 bytes in k(int*) at f.cu:41 (out of bounds)`."""
    if error.kind == "race" and len(error.places) > 1:
        sides = " and ".join(f"{one.access or 'access'} in {_place(one)}" for one in error.places[:2])
        hazards = f" ({counted(error.hazards, 'hazard')})" if error.hazards is not None else ""
        return f"race on {error.space or 'shared'} memory between {sides}{hazards}"
    head = error.text.rstrip(" .:")
    inside = f" in {_place(error.places[0])}" if error.places else ""
    kernel = f", kernel {_short(error.kernel)}" if error.places and error.kernel != error.places[0].function else ""
    return f"{head}{inside}{kernel}{f', {error.problem}' if error.problem else ''}"


def _place(code: DevicePlace) -> str:
    at = f" at {code.file}:{code.line}" if code.file and code.line else ""
    return f"{_short(code.function) or 'a function without a name'}{at}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _thread(error: GpuError) -> str:
    first = error.places[0] if error.places else None
    if first is None or not first.thread:
        return ""
    return f", first by thread {first.thread}" + (f" of block {first.block}" if first.block else "")


def _launched(finding: GpuFinding) -> str:
    """Whose code it was: the engine's frame and the Python one."""
    named = [place(one) for one in (finding.engine_frame, finding.python_frame) if one is not None]
    if finding.error.host_thread is not None and not finding.error.host_frames:
        now = f", now in {' from '.join(named)}" if named else ""
        return f", launched by thread {finding.error.host_thread}{now}"
    word = "called" if finding.error.kind in ("api-error", "leak", "unused") else "launched"
    return f", {word} by {' from '.join(named)}" if named else ""


PATTERNS = (reported,)
