"""What a process is set to say of itself when it hangs or fails: variables, core files, Python's fault handler."""

from __future__ import annotations

import re
import signal
from typing import Iterable, Iterator, Mapping, Optional, Sequence, Tuple

from gdbext.discovery.preflight_checks.attach_permission import attach_problems
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.errors.checks import DEBUG_CHECKS
from gdbext.knowledge.launch.debug_settings import FAULT_HANDLER, SETTINGS, DebugSetting
from gdbext.model.build_report import DebugCheck
from gdbext.model.checkup import Point
from gdbext.model.missing import Maybe, Missing

_LIMIT = re.compile(r"Max core file size\s+(\S+)")


def debug_checks(texts: Iterable[bytes], environment: Maybe[Mapping[str, str]]) -> Iterator[DebugCheck]:
    """The checks that a file has, by the texts in it, and whether the process was started with them."""
    here = set(texts)
    for row in DEBUG_CHECKS:
        if row.text in here:
            on = None if isinstance(environment, Missing) else environment.get(row.variable, "") in row.values
            yield DebugCheck(row.engine, row.function, f"{row.variable}={row.values[0]}", on, row.besides)


def process_points(
    proc: ProcFS,
    pid: int,
    environment: Maybe[Mapping[str, str]],
    libraries: Sequence[str],
    releases: Mapping[str, str],
) -> Iterator[Point]:
    """Nothing is stopped or changed. `libraries`: paths of what it has mapped; `releases`: of them and of packages."""
    yield from _variables(environment, libraries, releases)
    yield from _fault_handler(proc, pid, environment, libraries)
    yield _core_limit(proc, pid)
    yield _core_pattern(proc)
    found = attach_problems(proc, [pid])
    for problem, _ in found:
        yield Point("attach", "hindrance" if problem.blocking else "warning", problem.text, problem.remedy)
    if not any(problem.blocking for problem, _ in found):
        yield Point("attach", "ok", "the kernel lets us attach to it")


def _variables(
    environment: Maybe[Mapping[str, str]], libraries: Sequence[str], releases: Mapping[str, str]
) -> Iterator[Point]:
    if isinstance(environment, Missing):
        yield Point("variables", "warning", f"unknown, because they cannot be read: {environment.reason}")
        return
    names = [path.rpartition("/")[2] for path in libraries]
    for row in SETTINGS:
        if any(name.startswith(row.needs) for name in names):
            yield _setting(row, environment, releases)


def _setting(row: DebugSetting, environment: Mapping[str, str], releases: Mapping[str, str]) -> Point:
    variable = next((one for one in row.variables if one in environment), None)
    if variable is not None:
        value = environment[variable][:80]
        on: Optional[bool] = re.search(row.on, value) is not None
        said = f"{variable}={value}"
    else:
        on, said = _by_default(row, releases)
    if on is None:
        return Point(row.name, "warning", f"unknown: {said}", row.remedy)
    return Point(
        row.name, "ok" if on else "warning", f"{row.with_it if on else row.without} ({said})", row.remedy * (not on)
    )


def _by_default(row: DebugSetting, releases: Mapping[str, str]) -> Tuple[Optional[bool], str]:
    """Whether it is on where no variable is set, and why."""
    unset = f"{row.variables[0]} is not set"
    if row.since is None:
        return False, unset
    package, first = row.since
    here = max((numbers(text) for name, text in releases.items() if re.search(package, name)), default=())
    if len(here) < 2:  # the name of a library may have one number: libnccl.so.2
        return None, f"{unset}; on by default from {first} on, and the release here is not known"
    said = f"{unset}, {'.'.join(map(str, here))} is here"
    return (True, said) if here >= numbers(first) else (None, f"{said}; on by default from {first} on")


def numbers(release: str) -> Tuple[int, ...]:
    """Those at the beginning of a release: 2.13.0+cu130 is (2, 13, 0)."""
    found = re.match(r"\d{1,6}(?:\.\d{1,6}){0,3}", release)
    return tuple(map(int, found[0].split("."))) if found else ()


def _fault_handler(
    proc: ProcFS, pid: int, environment: Maybe[Mapping[str, str]], libraries: Sequence[str]
) -> Iterator[Point]:
    if not any("python" in path for path in libraries):
        return
    handlers = proc.handlers(pid)
    if handlers is None:
        yield Point("segfault", "warning", "unknown, because /proc does not tell its signal handlers")
    elif signal.SIGSEGV in handlers:
        by = " by PYTHONFAULTHANDLER" if not isinstance(environment, Missing) and environment.get(FAULT_HANDLER) else ""
        yield Point("segfault", "ok", f"SIGSEGV has a handler{by}: a crash prints stacks before it ends")
    else:
        yield Point(
            "segfault",
            "warning",
            "SIGSEGV has no handler: a crash ends without Python's stacks",
            f"{FAULT_HANDLER}=1 at start",
        )


def _core_limit(proc: ProcFS, pid: int) -> Point:
    text = proc.text(f"{pid}/limits")
    found = _LIMIT.search(text) if isinstance(text, str) else None
    if found is None:
        return Point("core limit", "warning", "unknown, because its limits cannot be read")
    if found[1] == "0":
        return Point(
            "core limit",
            "warning",
            "0: a crash leaves no core file",
            f"prlimit --pid {pid} --core=unlimited (now, by its user or root); `ulimit -c unlimited` before a start",
        )
    return Point("core limit", "ok", found[1] if found[1] == "unlimited" else f"{found[1]} bytes")


def _core_pattern(proc: ProcFS) -> Point:
    text = proc.text("sys/kernel/core_pattern")
    if isinstance(text, Missing):
        return Point("core files", "warning", "unknown, because kernel.core_pattern cannot be read")
    pattern = text.strip()[:200]
    if pattern.startswith("|"):
        return Point("core files", "ok", f"given to a program of the host: {pattern[1:]}")
    if not pattern:
        return Point("core files", "warning", "kernel.core_pattern is empty: none is written", _PATTERN)
    place = "" if pattern.startswith("/") else ", in the folder that the process works in"
    named = "%p" in pattern or "%P" in pattern or proc.text("sys/kernel/core_uses_pid") == "1"
    if not named:
        said = f"written as {pattern}{place}: without %p each rank writes over that of the one before"
        return Point("core files", "warning", said, _PATTERN)
    return Point("core files", "ok", f"written as {pattern}{place}")


_PATTERN = "sysctl kernel.core_pattern='/var/crash/core.%e.%p.%h' (root of the host)"
