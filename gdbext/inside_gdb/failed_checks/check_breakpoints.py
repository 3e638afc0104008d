"""The breakpoints of llm-check. What they decide, they decide from registers and memory in the moment of the stop."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import islice
from typing import Optional, Protocol, Tuple

import gdb

from gdbext.analysis.failures import check_messages
from gdbext.inside_gdb.base.exceptions import (
    MESSAGE_CAP,
    message_of,
    read_ostringstream,
    read_std_string,
    type_words,
    typeinfo_name,
)
from gdbext.inside_gdb.base.memory import NOW
from gdbext.inside_gdb.base.selected_frame import argument_register, newest_frames
from gdbext.knowledge.engines.engine_row_kinds import FailRow
from gdbext.model.check_report import Failure
from gdbext.model.error_code import ErrorCode

MOST_IN_A_ROW = 100
"""Exceptions that are no failed check; a `throw` with more of them, without a second of less than FEW, is let alone."""
FEW = 10
_MOST_CALLERS = 6


class Watch(Protocol):
    """Whom the breakpoints tell."""

    def watches_here(self) -> Optional[object]: ...
    def note(self, error: Optional[ErrorCode]) -> None: ...
    def noted(self) -> Optional[ErrorCode]: ...
    def passed(self, count: int = 1) -> None: ...
    def problem(self, text: str) -> None: ...
    def failed(self, failure: Failure) -> bool: ...


class Point(gdb.Breakpoint):
    """A breakpoint that gdb's own lists do not show. Raises `GdbextError` where the machine's registers are unknown."""

    function = ""

    def __init__(self, place: str, watch: Watch) -> None:
        argument_register(0)
        super().__init__(place, internal=True)
        self.silent = True
        self._watch = watch

    def is_here(self) -> bool:
        """Whether the function exists in the selected inferior."""
        return bool(self.function) and function_exists(self.function)


class ThrowPoint(Point):
    """On one `throw`: the call of __cxa_throw(exception, typeinfo, destructor)."""

    def __init__(self, address: int, watch: Watch) -> None:
        super().__init__(f"*{address:#x}", watch)
        self.address = address
        self._since = self._second = 0.0
        self._count = self._before = 0

    def stop(self) -> bool:
        if self._watch.watches_here() is None:
            return False
        thrown = _argument(0)
        failure = check_messages.failure_of(message_of(thrown), self._watch.noted())
        if failure is None:
            self._let_pass()
            return False
        kind = type_words(typeinfo_name(_argument(1)))
        return self._watch.failed(replace(failure, raised=f"throws {kind}"))

    def _let_pass(self) -> None:
        self._watch.passed()
        now = time.monotonic()
        if now - self._second > 1.0:  # on a busy machine a look takes so long that a second has room for few
            if self._count - self._before < FEW:
                self._since, self._count = now, 0
            self._second, self._before = now, self._count
        self._count += 1
        if self._count > MOST_IN_A_ROW:
            self.enabled = False
            place = gdb.execute(f"info symbol {self.address:#x}", to_string=True).strip().split(" in section")[0]
            seconds = now - self._since
            self._watch.problem(
                f"the throw at {place} threw {self._count} exceptions in {seconds:.1f} s, and no failed check: "
                "gdbext no longer watches it"
            )


class FunctionPoint(Point):
    """On a function that is called only after a failure."""

    def __init__(self, row: FailRow, watch: Watch) -> None:
        super().__init__(f"-qualified -function {row.function}", watch)
        self.function = row.function
        self._row = row
        self._last: Optional[Tuple[object, int]] = None

    def stop(self) -> bool:
        row = self._row
        if self._watch.watches_here() is None or self._seen_on_the_way() or _is_within(row.within):
            return False
        number = _at(row.code) & 0xFFFFFFFF if row.code else None
        text = (read_ostringstream(_at(row.stream)) or "") if row.stream else _text(_at(row.text)) if row.text else ""
        error = check_messages.error_of(row.library, number, text) or self._watch.noted()
        file, line, name = _c_string(row.file), _at(row.line) & 0xFFFFFFFF, _c_string(row.name)
        if row.stream and not text:  # whether file and line are members of that object depends on the release
            file, line = "", 0
        return self._watch.failed(check_messages.make_failure(row, text, error, file, line, name))

    def _seen_on_the_way(self) -> bool:
        """gdb also stops at the stub through which another library calls the function: one failure, two places."""
        row, pc = self._row, gdb.newest_frame().pc()
        call = (gdb.selected_thread().ptid, *map(_at, (row.file, row.line, row.text, row.stream)))
        before, self._last = self._last, (call, pc)
        if before is not None and before[0] == call and before[1] != pc:
            self._last = None
            return True
        return False


class TextPoint(Point):
    """On a function that gives the text of an error number: noted, never a stop."""

    def __init__(self, function: str, watch: Watch) -> None:
        super().__init__(f"-qualified -function {function}", watch)
        self.function = function
        self.condition = f"(int) ${argument_register(0)} != 0"

    def stop(self) -> bool:
        if self._watch.watches_here() is not None:
            self._watch.note(check_messages.error_of_check(self.function, _argument(0) & 0xFFFFFFFF))
        return False


class ExitPoint(Point):
    """On exit(status): macros like NCCLCHECK print the error and end the process."""

    function = "exit"

    def __init__(self, watch: Watch) -> None:
        super().__init__("-qualified -function exit", watch)
        self.condition = f"(int) ${argument_register(0)} != 0"

    def stop(self) -> bool:
        error = self._watch.noted() if self._watch.watches_here() is not None else None
        if error is None:
            return False
        raised = f"calls exit({_argument(0) & 0xFF})"
        return self._watch.failed(
            Failure(
                kind="check",
                what="a check that ends the process",
                message="",
                text=error.meaning,
                error=error,
                raised=raised,
            )
        )


def _is_within(functions: Tuple[str, ...]) -> bool:
    """Whether one of the functions is one of the callers."""
    callers = islice(newest_frames(1 + _MOST_CALLERS), 1, None) if functions else ()
    return any((frame.name() or "").partition("(")[0] in functions for frame in callers)


def _at(place: str) -> int:
    """An argument by its number, or what lies behind the pointer that it is ("0+8"); 0 for nothing, and where nothing
    is."""
    number, plus, offset = place.partition("+")
    value = _argument(int(number)) if number else 0
    return value if not plus else NOW.read_pointer(value + int(offset)) or 0


def _argument(number: int) -> int:
    return int(gdb.newest_frame().read_register(argument_register(number))) & ((1 << 64) - 1)


def _c_string(place: str) -> str:
    return (NOW.read_cstring(_at(place), 1024) or "") if place else ""


def _text(address: int) -> str:
    """A C string, or the std::string that a reference means: its first word points to as many characters as it says."""
    start, length = NOW.read_pointer(address), NOW.read_pointer(address + 8)
    if start and length is not None and 0 < length < 1 << 20:
        text = read_std_string(address)
        end = NOW.read_pointer(start + length)
        if text is not None and end is not None and not end & 0xFF:
            return text
    return NOW.read_cstring(address, MESSAGE_CAP) or ""


def function_exists(function: str) -> bool:
    """Whether any object file of the selected inferior has the function. A breakpoint on none nags at each load."""
    try:  # no command: this runs while a program starts, and gdb 13 forgets that it does when one is executed then
        return bool(gdb.decode_line(function)[1])
    except gdb.error:
        return False
