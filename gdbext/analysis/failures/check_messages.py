"""Messages of failed checks taken apart; what a failure means and what to do about it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import List, Mapping, Optional, Sequence, Tuple

from gdbext.analysis.failures.error_codes import code, in_message
from gdbext.analysis.stacks.frame_facts import FrameBook
from gdbext.analysis.stacks.reporting_frames import is_raising
from gdbext.knowledge.engines.engine_row_kinds import CalledRow, FailRow, MessageRow
from gdbext.knowledge.errors import TEXT_FUNCTIONS
from gdbext.knowledge.errors.checks import CALLED, CHECKING, MESSAGES, PRINTED, THROWN
from gdbext.knowledge.errors.cuda import BLOCKING
from gdbext.model.check_report import Failure
from gdbext.model.error_code import ErrorCode
from gdbext.model.stack import Frame

_MESSAGES = [(row, re.compile(row.pattern, re.DOTALL)) for row in MESSAGES]
_PRINTED = [(row, re.compile(row.pattern)) for row in PRINTED]
_BEFORE = re.compile(r"\s*(?:(?:what\(\):|[\w.:]{0,80}(?:Error|Exception):)\s+)+")  # the message in a log's line
_THROWN = re.compile("|".join(f"(?:{name})" for name in THROWN))
_LONGEST = 4096
_LAUNCH_BLOCKING = "CUDA_LAUNCH_BLOCKING"
_SWITCHED = {"fastertransformer": "FT_DEBUG_LEVEL", "turbomind": "TM_DEBUG_LEVEL", "rtp-llm": "LOG_LEVEL"}
_CHECKING = re.compile(CHECKING)
_PLACED = re.compile(r"(?P<file>[^\s()]{1,500})\((?P<line>\d{1,7})\): (?P<text>.*)", re.DOTALL)
_MOST_LINES = 1 << 20
_SOURCE = re.compile(r"[\w./+@-]{1,500}\.(?:cu|cuh|cc|cpp|cxx|h|hpp|inl)\Z")
_TEMPLATE = re.compile(r"<.*|\(.*| \[clone.*")


def may_be_thrown(typeinfo_name: str) -> bool:
    """Whether a check of the table may throw a type with this typeinfo name."""
    return bool(_THROWN.match(typeinfo_name))


def failure_of(message: str, recorded: Optional[ErrorCode] = None) -> Optional[Failure]:
    """What a thrown message says of a failed check; None when it is about something else.

    `error_of_check` is the error that this thread asked the library a text for right before.
    """
    text = message[:_LONGEST].strip()
    for row, pattern in _MESSAGES:
        found = pattern.search(text)
        if found is not None:
            return _failure(row, found.groupdict(), text, recorded)
    return None


def failure_in_line(line: str) -> Optional[Failure]:
    """What a line of a log says of a failed check; None when it is about something else. Rows for any spelling count
    only where the line names an error."""
    text = _BEFORE.sub("", line[:_LONGEST], count=1).strip()
    for row, pattern in _PRINTED:
        found = pattern.search(text)
        if found is not None:
            return _failure(row, found.groupdict(), text, None)
    failure = failure_of(text)
    return failure if failure is not None and (failure.engine or failure.error or failure.file) else None


def _failure(
    row: MessageRow, groups: Mapping[str, Optional[str]], message: str, recorded: Optional[ErrorCode]
) -> Failure:
    text = (groups.get("text") or message).strip()
    number = groups.get("number")
    error = (code("cudaError_t", int(number)) if number else in_message(text, row.library)) or recorded
    line = groups.get("line")
    return Failure(
        kind="check",
        what=row.check,
        message=message,
        text=text,
        error=error,
        expression=groups.get("expression") or "",
        file=groups.get("file") or "",
        line=int(line) if line and len(line) < 9 else None,
        engine=row.engine,
    )


def make_failure(
    row: FailRow, text: str, error: Optional[ErrorCode], file: str = "", line: int = 0, name: str = ""
) -> Failure:
    """A failure that a function of the rows was called for. A place in the text itself counts more than `file` and
    `line`, which may be anything, unless these have the same place by a longer name.
    """
    message = row.said.format(text) if text else ""
    within = _PLACED.match(text)
    if within is not None and not (line == int(within["line"]) and file.endswith(within["file"])):
        file, line = within["file"], int(within["line"])
    first = (within["text"] if within is not None else message).split("\n")[0].strip()
    raised = [f"in {name}"] if name else []
    if not is_place(file, line):
        file, line = "", 0
    return Failure(
        kind="check",
        what=row.function,
        message=message.strip(),
        text=first or (error.meaning if error else ""),
        error=error,
        file=file,
        line=line or None,
        raised=", ".join(raised + (["aborts"] if row.aborts else [])),
        engine=row.engine,
    )


def is_place(file: str, line: int) -> bool:
    """Whether a text and a number of a target can be a source file and a line of it."""
    return looks_like_source(file) and 0 < line < _MOST_LINES


def error_of(library: str, number: Optional[int], text: str) -> Optional[ErrorCode]:
    """The error of a fail-only function: its number where it has one, else what its text says."""
    return code(library, number) if library and number is not None else in_message(text)


def error_of_check(function: str, number: int) -> Optional[ErrorCode]:
    """The error whose text or name a check asked for."""
    return code(TEXT_FUNCTIONS[function], number)


def engine_frame(frames: Sequence[Frame]) -> Optional[int]:
    """The first frame, from the inside, of the engine's own code that is no check; Python code counts as well."""
    book = FrameBook()
    for number, frame in enumerate(frames):
        known = book.known_frame(frame)
        if not is_raising(frame.function) and known.name and not known.system and not known.vendor and not known.entry:
            return number
    return None


def check_frame(frames: Sequence[Frame]) -> Optional[int]:
    """The innermost frame of the check itself, where it is a frame of its own."""
    return next(
        (
            number
            for number, frame in enumerate(frames)
            if is_raising(frame.function) and not (frame.function or "").startswith(("__", "_U", "std::"))
        ),
        None,
    )


def timing(failure: Failure, environment: Mapping[str, str], before: str = "") -> str:
    """What asynchronous means for this failure. `before` names the check that stands before it in the source."""
    error = failure.error
    place = f"{failure.file}:{failure.line}" if failure.file and failure.line else "this check"
    if error is None:
        return ""
    if not error.sticky and not (error.library == "cublasStatus_t" and error.number in (13, 14)):
        return "The checked call itself failed." if error.sticky is False else ""
    if environment.get(_LAUNCH_BLOCKING, "0") not in ("", "0"):
        return f"{_LAUNCH_BLOCKING} is set, so the call checked at {place} is the one that failed."
    if every_layer(failure.engine, environment):
        since = f"the check before this one ({before})" if before else "the check before this one"
        return (
            f"The failing kernel was launched recently, between {since} and {place}, which reported the failure: the "
            f"engine's own check after every layer is on. {_OTHERS}"
        )
    known = "Which check passed last is unknown, because gdbext does not watch checks that pass"
    known += f"; the one before it in the source is {before}." if before else "."
    return (
        f"The failing kernel was launched earlier: after the last check that waited for the GPU and passed, and before "
        f"{place}, which only reported the failure. {known} {_OTHERS}"
    )


_OTHERS = "Every other thread of this process sees the same error from now on."


def every_layer(engine: str, environment: Mapping[str, str]) -> bool:
    """Whether the engine's own check after every layer is on."""
    name = _SWITCHED.get(engine)
    return name is not None and environment.get(name, "") == "DEBUG"


def check_before(lines: Sequence[str], first: int, line: int) -> Optional[int]:
    """The line of the last check in source text before `line`, in the function that begins at the line `first`."""
    for number in range(min(line - 1, len(lines)), first - 1, -1):
        if _CHECKING.search(lines[number - 1].split("//")[0]):
            return number
    return None


def called_check(frames: Sequence[Frame], what: str) -> Optional[Tuple[int, CalledRow]]:
    """The frame of a check whose caller's code holds file and line, and its row. The message tells `what` failed."""
    for number, frame in enumerate(frames):
        name = _TEMPLATE.sub("", frame.function or "")
        row = next((row for row in CALLED if row.function == name), None)
        if row is not None:
            return number, row
    row = next((row for row in CALLED if row.function == what), None)
    return (0, row) if row is not None and frames and not frames[0].function else None  # it throws itself, nameless


def looks_like_source(text: Optional[str]) -> bool:
    """Whether a text of a target is the name of a source file."""
    return bool(text and _SOURCE.match(text))


def steps(failure: Failure, engine: Optional[str], environment: Mapping[str, str]) -> Tuple[str, ...]:
    """What to do next, without what is done already."""
    found: List[str] = list(failure.error.steps) if failure.error else []
    if environment.get(_LAUNCH_BLOCKING, "0") not in ("", "0"):
        found = [step for step in found if step != BLOCKING]
    name = _SWITCHED.get(engine or failure.engine)
    sticky = failure.error is not None and failure.error.sticky
    if sticky and name and environment.get(name, "") != "DEBUG":
        found.insert(0, f"llm-check enable makes the engine check after every layer (at start: {name}=DEBUG)")
    return tuple(dict.fromkeys(found))


def with_frames(failure: Failure, frames: Sequence[Frame]) -> Failure:
    """The failure with what the frames say better: the check's own name, and its place when the message has none."""
    number = check_frame(frames)
    if number is not None and failure.kind == "check":
        failure = replace(failure, what=frames[number].function or failure.what)
    inside = engine_frame(frames)
    if not failure.file and inside is not None and frames[inside].file:
        failure = replace(failure, file=frames[inside].file or "", line=frames[inside].line)
    return failure
