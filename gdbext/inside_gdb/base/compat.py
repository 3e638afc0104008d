"""What differs between gdb releases, found by asking and never by version. Each probe says when it can go.

The floor is gdb 10.1 (Debian 11); cuda-gdb 11.6 is 10.2.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import contextmanager
from typing import Any, Callable, Generator, Iterator, List, Mapping, Optional, Tuple

import gdb

from gdbext.inside_gdb.base.alarm import Alarm

HAS_PROCESS = "process"
HAS_CORE = "core"
_FORGOTTEN = re.compile(r"^Python Exception <class 'KeyboardInterrupt'>", re.MULTILINE)


def parameter(name: str) -> Any:
    """Value of a setting; None when this gdb does not know it (RuntimeError; `gdb.error` in new releases)."""
    try:
        return gdb.parameter(name)
    except (RuntimeError, gdb.error):
        return None


@contextmanager
def settings(wanted: Mapping[str, str]) -> Iterator[None]:
    """Change settings for a while; those that this gdb does not know are left out.

    Replaceable by gdb.with_parameter once the floor is gdb 12.
    """
    before = []
    try:
        for name, value in wanted.items():
            old = setting_text(name)
            if old is not None:
                before.append((name, old))
                gdb.execute(f"set {name} {value}", to_string=True)
        yield
    finally:
        for name, old in reversed(before):
            gdb.execute(f"set {name} {old}", to_string=True)


def setting_text(name: str) -> Optional[str]:
    """A setting as `set NAME TEXT` takes it back; None when this gdb does not know it."""
    try:
        value = gdb.parameter(name)
    except (RuntimeError, gdb.error):
        return None
    if value is None:
        return "unlimited"
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def is_cuda_gdb() -> bool:
    """`gdb.cuda` exists since CUDA 12.7; before, a setting tells."""
    return hasattr(gdb, "cuda") or parameter("cuda break_on_launch") is not None


def has_cuda_device() -> bool:
    """Whether this is a cuda-gdb that sees a device of the current process, or of a GPU core.

    One that does not reads global memory from the host: as zeros (cuda-gdb 11.8, without a GPU).
    """
    if not is_cuda_gdb():
        return False
    try:
        text = gdb.execute("info cuda devices", to_string=True)
    except gdb.error:
        return False
    return bool(text.strip()) and "No CUDA devices" not in text


def somebody_types() -> bool:
    """Whether gdb has a person before it: on a terminal, and not in batch mode, which turns `confirm` off."""
    return bool(parameter("confirm")) and os.isatty(0) and os.isatty(1)


def confirm(question: str) -> bool:
    """`query` of gdb, which has no API: nobody is asked with `set confirm off` (-batch does that), nor where the input
    is no terminal. The end of the input counts as yes."""
    if not somebody_types():
        return True
    while True:
        try:
            answer = input(f"{question} (y or n) ").strip().lower()
        except EOFError:
            return True
        except KeyboardInterrupt:
            return False
        if answer[:1] in ("y", "n"):
            return answer[0] == "y"
        gdb.write("Please answer y or n.\n")


def on_exit(callback: Callable[[], None]) -> None:
    """Run when gdb ends. Needs gdb 12 (`gdb.events.gdb_exiting`); older ones just detach, as gdb does itself."""
    registry = getattr(gdb.events, "gdb_exiting", None)
    if registry is not None:
        ready = _uninterrupted(callback)
        next(ready)
        registry.connect(ready.send)


def _uninterrupted(callback: Callable[[], None]) -> Generator[None, object, None]:
    """When SIGTERM ends gdb, it raises KeyboardInterrupt at the first instruction of the first callback (seen in 13.1).
    A function has not begun its `try` by then; a generator waits inside of it."""
    while True:
        try:
            yield
            _swallow_interrupt()
        except KeyboardInterrupt:
            pass
        callback()


def run(command: str) -> str:
    """Run a command that may take long, as `one_command` does; what it printed. A Ctrl-C in a callback of Python's (gdb
    asks some about every file) is printed and forgotten by gdb (seen in 18.1): here it counts."""
    text = one_command(command)
    if _FORGOTTEN.search(text):
        raise KeyboardInterrupt
    return text


def one_command(command: str) -> str:
    """Run a command with the name of a file in it. gdb takes what stands behind a line break for the next command, and
    the name may be an attack. Raises gdb.error for one that gdb cannot be given."""
    if "\n" in command:
        raise gdb.error("gdb cannot be given a name with a line break")
    try:
        text: str = gdb.execute(command, to_string=True)
    except UnicodeEncodeError:
        raise gdb.error("gdb cannot be given a name that is not UTF-8") from None
    except UnicodeDecodeError as error:  # it has run, and printed such a name
        text = error.object.decode("utf-8", "replace")
    return text


def has_program(space: gdb.Progspace) -> bool:
    """Whether gdb has the file of its program."""
    try:
        return bool(space.filename)
    except UnicodeDecodeError:  # it has, by a name that is no UTF-8
        return True


def thread_name(thread: gdb.InferiorThread) -> Optional[str]:
    """The name of a thread. The kernel cuts it after 15 bytes, and a character with it: what is left is no UTF-8."""
    try:
        return thread.name
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "replace")


def add_inferior() -> gdb.Inferior:
    """A new inferior that shares no connection with the current one. `add-inferior` itself returns nothing."""
    before = {inferior.num for inferior in gdb.inferiors()}
    gdb.execute("add-inferior -no-connection", to_string=True)
    return next(inferior for inferior in gdb.inferiors() if inferior.num not in before)


def remove_inferior(inferior: gdb.Inferior) -> None:
    """Remove an inferior without a process; gdb refuses the selected one, so another is selected first."""
    if not inferior.is_valid():
        return
    if gdb.selected_inferior().num == inferior.num:
        switch_inferior(next(other for other in gdb.inferiors() if other.num != inferior.num))
    gdb.execute(f"remove-inferiors {inferior.num}", to_string=True)


_CONNECTION = re.compile(r"^[* ] +\d+ .*?\s\d+ \(([\w-]+)", re.MULTILINE)


def kind_of(inferior: gdb.Inferior) -> Optional[str]:
    """HAS_PROCESS, HAS_CORE, or None for an inferior without threads.

    Never by gdb.Inferior.connection: gdb keeps that object, and when SIGTERM ends gdb 13.1 while ranks run, its exit
    fails an assertion about it (py-connection.c) and asks what to do. The table is alike in every release.
    """
    if inferior.pid == 0:
        return None
    found = _CONNECTION.search(one_command(f"info inferiors {inferior.num}"))
    return HAS_CORE if found and found.group(1) == "core" else HAS_PROCESS


_CORE_FILE = re.compile(r"^\s*`(.+)', file type elf\d\d-", re.MULTILINE)


def core_path(inferior: gdb.Inferior) -> Optional[str]:
    """Path of the core file; gdb.Inferior.corefile (gdb 18) would say it, `info target` says it in all releases."""
    with inferior_selected(inferior):
        text = one_command("info target")
    _, _, below = text.partition("core dump file")
    found = _CORE_FILE.search(below)
    return found.group(1) if found else None


def open_core(path: str) -> None:
    """`core-file` for a path with anything in it: gdb 18 takes a quoted word, older ones the rest of the line as it is.

    Both refuse the other form before they let go of anything. Replaceable by the quoted form once the floor is gdb 18.
    """
    if _PLAIN_PATH.match(path):
        one_command(f"core-file {path}")
        return
    try:
        one_command(f"core-file {quoted(path)}")
    except gdb.error:
        one_command(f"core-file {path}")


def quoted(path: str) -> str:
    """One word for gdb_buildargv, which knows backslashes and quotes."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


_PLAIN_PATH = re.compile(r"/[\w./+,:@%=-]*\Z")


_LOCATION = re.compile(r"\s(0x[0-9a-f]+)\s.*?(?:\sinf ([\d, ]+))?$", re.MULTILINE)


def locations(point: gdb.Breakpoint) -> List[Tuple[int, Tuple[int, ...]]]:
    """Where a breakpoint stands: addresses, and the numbers of the inferiors.

    gdb.Breakpoint.locations came with gdb 13; before it the table is read.
    """
    known = getattr(point, "locations", None)
    if known is not None:
        return [(one.address, tuple(one.thread_groups or ())) for one in known if one.address is not None]
    found = _LOCATION.findall(gdb.execute(f"info breakpoints {point.number}", to_string=True))
    only = str(gdb.selected_inferior().num)  # of one inferior the table does not say it
    return [(int(at, 16), tuple(map(int, (nums or only).split(",")))) for at, nums in found]


def enable_location(point: gdb.Breakpoint, number: int, on: bool) -> None:
    """Whether a breakpoint is put into one inferior. A location can be told so since gdb 13; before, its number."""
    for place, (_, numbers) in enumerate(locations(point), 1):
        if number in numbers:
            known = getattr(point, "locations", None)
            if known is not None:
                known[place - 1].enabled = on
            else:
                gdb.execute(f"{'enable' if on else 'disable'} {point.number}.{place}", to_string=True)
    if on:
        disable_stubs(point)


def disable_stubs(point: gdb.Breakpoint) -> None:
    """Of a C++ function gdb 13.1 also takes its stubs in the procedure linkage tables (18.1 does not): each passing
    would count twice, and stop where there are no arguments yet."""
    table = gdb.execute(f"info breakpoints {point.number}", to_string=True)
    rows = re.findall(rf"^{point.number}\.(\d+) +(\S+) +(0x[0-9a-f]+) (.*)", table, re.MULTILINE)
    known = {address for address, _ in locations(point)}  # names with line breaks may make rows of their own
    places = [(place, enabled, what) for place, enabled, at, what in rows if int(at, 16) in known]
    stubs = [(place, enabled) for place, enabled, what in places if "@plt" in what]
    for place, enabled in stubs if len(stubs) < len(places) else ():
        if enabled == "y":
            gdb.execute(f"disable {point.number}.{place}", to_string=True)


@contextmanager
def inferior_selected(inferior: gdb.Inferior) -> Iterator[None]:
    """Make `inferior` current for a while; inferior, thread and frame of before come back, also on Ctrl-C."""
    with kept_selection():
        switch_inferior(inferior)
        yield


NO_NOTIFICATIONS = {"suppress-cli-notifications": "on"}
"""gdb announces switches and stops past every redirection. Before gdb 13 nothing helps against it."""


CALL_SETTINGS = {
    **NO_NOTIFICATIONS,
    "unwindonsignal": "on",  # `unwind-on-signal` since gdb 14, which still takes this
    "unwind-on-terminating-exception": "on",
    "unwind-on-timeout": "on",
    "may-call-functions": "on",
    "schedule-multiple": "off",
    "language": "c",
    "confirm": "off",
}
"""For one call of the target's functions."""

_TIMEOUTS = ("direct-call-timeout", "indirect-call-timeout")


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """A call of the target's functions inside ends after a time with gdb.error or KeyboardInterrupt.

    gdb 14 has settings for it, in whole seconds; before, gdb gets a Ctrl-C. The Alarm can go once the floor is gdb 14.
    """
    if setting_text(_TIMEOUTS[0]) is not None:
        with settings({name: str(max(1, round(seconds))) for name in _TIMEOUTS}):
            yield
        return
    end = time.monotonic() + seconds
    try:
        with Alarm(seconds):
            yield
    finally:
        if time.monotonic() >= end:
            _swallow_interrupt()


def _swallow_interrupt() -> None:
    """A Ctrl-C of the Alarm that gdb has noted, and not yet handed to Python."""
    try:
        for _ in range(1000):
            pass
    except KeyboardInterrupt:
        pass


@contextmanager
def locked_scheduler() -> Iterator[bool]:
    """Other threads stand still while one is made to run; False where they cannot (cuda-gdb since 11.4)."""
    before = setting_text("scheduler-locking")
    try:
        gdb.execute("set scheduler-locking on", to_string=True)
        locked = True
    except gdb.error:
        locked = False
    try:
        yield locked
    finally:
        if locked and before is not None:
            gdb.execute(f"set scheduler-locking {before}", to_string=True)


def switch_inferior(inferior: gdb.Inferior) -> None:
    """Make an inferior the current one, and one of its threads, without a word."""
    if gdb.selected_inferior().num == inferior.num:
        return
    threads = inferior.threads()
    if threads:
        min(threads, key=lambda thread: thread.num).switch()
        return
    with settings(NO_NOTIFICATIONS):
        gdb.execute(f"inferior {inferior.num}", to_string=True)


@contextmanager
def kept_selection() -> Iterator[None]:
    """Inferior, thread and frame are the same afterwards, as far as they still exist."""
    inferior = gdb.selected_inferior()
    thread = gdb.selected_thread()
    try:
        frame = gdb.selected_frame()
    except gdb.error:
        frame = None
    try:
        yield
    finally:
        _restore(inferior, thread, frame)


@contextmanager
def kept_thread() -> Iterator[None]:
    """The selected inferior is the same afterwards, and so is its thread, although the process is attached anew."""
    inferior, thread = gdb.selected_inferior(), gdb.selected_thread()
    chosen = None if thread is None else thread.ptid
    try:
        yield
    finally:
        same = [one for one in inferior.threads() if one.ptid == chosen] if inferior.is_valid() else []
        _restore(inferior, same[0] if same else None, None)


def _restore(inferior: gdb.Inferior, thread: Optional[gdb.InferiorThread], frame: Optional[gdb.Frame]) -> None:
    if inferior.is_valid():
        switch_inferior(inferior)
        if thread is not None and thread.is_valid():
            thread.switch()
            if frame is not None and frame.is_valid():
                frame.select()
