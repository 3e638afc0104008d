"""One report of the selected thread: its failure, frames, source, tensors and streams, read at the moment of a stop."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Dict, List, Mapping, Optional, Tuple

import gdb

from gdbext.analysis.failures import check_messages, fatal_signal
from gdbext.analysis.stacks.engine import engine_of
from gdbext.capture.memory.maps import read_maps
from gdbext.commands.tensor_port import TensorPort
from gdbext.inside_gdb.base import compat, memory
from gdbext.inside_gdb.base.selected_frame import newest_frames
from gdbext.inside_gdb.base.values import read_variable
from gdbext.inside_gdb.failed_checks.check_call_sites import placed_by_caller
from gdbext.inside_gdb.failed_checks.ended_checks import ended_by_check
from gdbext.inside_gdb.stacks import held_ranks
from gdbext.inside_gdb.stacks.uncaught_exception import uncaught_exception
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.check_report import CheckReport, Failure, SourceLine
from gdbext.model.codes import RankState
from gdbext.model.error_code import ErrorCode
from gdbext.model.errors import GdbextError
from gdbext.model.missing import Missing
from gdbext.model.stack import Frame
from gdbext.model.tensor import TensorList
from gdbext.safe_open import files

MOST_FRAMES = 64
_CONTEXT = 3  # source lines before and after
_LARGEST_SOURCE = 8 << 20
_STREAMS = ("stream", "stream_", "this->stream_", "cuda_stream")
_ENGINE_FRAMES = 3  # looked at for tensors and streams


def report_of(failure: Failure, rank: AttachedRank, tensors: TensorPort, environment: Mapping[str, str]) -> CheckReport:
    """Everything about the failure that the selected thread shows. Nothing is written, nothing is called."""
    thread = gdb.selected_thread()
    is_core = rank.state == RankState.CORE
    with compat.kept_selection():
        look = held_ranks.one_thread(gdb.selected_inferior(), thread, is_core)
        native = tuple(look.native.frames[:MOST_FRAMES])
        frames = tuple(look.stack.frames[:MOST_FRAMES])
        inside = check_messages.engine_frame(native)
        failure = placed_by_caller(failure, native, list(newest_frames(len(native))))
        failure = check_messages.with_frames(failure, native)
        source, before = _source(failure, native, inside, rank.process.pid, is_core)
        found, problems = _tensors(tensors, native, inside)
        streams = _streams(native, inside)
    engine = engine_of((look.stack,), rank.process.engine) or failure.engine or None
    return CheckReport(
        failure=failure,
        taken_at=time.time(),
        pid=rank.process.pid,
        rank=rank.process.rank,
        host=rank.process.host,
        engine=engine,
        thread=look.stack.id,
        lwp=look.stack.lwp,
        thread_name=look.stack.name or "",
        frames=frames,
        engine_frame=check_messages.engine_frame(frames),
        check_frame=check_messages.check_frame(frames),
        source=source,
        tensors=found,
        streams=streams,
        timing=check_messages.timing(failure, environment, before),
        steps=check_messages.steps(failure, engine, environment),
        notes=_destructor(failure, native, inside),
        problems=(*look.problems, *problems),
    )


def signal_failure(
    name: str, is_core: bool, pid: int, error: Optional[ErrorCode] = None
) -> Tuple[Failure, Tuple[str, ...]]:
    """A fatal signal of the selected thread as a failure, and what to do about it.

    `error` is the error that the thread asked the text of right before.
    """
    if name == "SIGABRT":
        return _aborted(error), ()
    seen = fatal_signal.Fault(name, _siginfo("si_code"), _siginfo("_sifields._sigfault.si_addr"))
    if name not in ("SIGBUS", "SIGSEGV"):
        seen = replace(seen, address=None)
    elif seen.address is not None:
        seen = _in_core(seen) if is_core else _placed(seen, pid)
    return Failure(kind="signal", what=name, details=fatal_signal.explain_fault(seen)), fatal_signal.steps(seen)


def _aborted(error: Optional[ErrorCode]) -> Failure:
    """Why a thread called abort: an exception that nobody caught, a check that ends the process, or not known."""
    thrown = uncaught_exception()
    if thrown is not None:
        raised = f"throwing {thrown.kind}, which was not caught"
        failure = check_messages.failure_of(thrown.message, error)
        if failure is not None:
            return replace(failure, kind="signal", what="SIGABRT", raised=raised)
        return Failure(
            kind="signal", what="SIGABRT", message=thrown.message, text=thrown.message.split("\n")[0], raised=raised
        )
    ended = ended_by_check(error)
    if ended is not None:
        return replace(ended, kind="signal", what="SIGABRT", raised=f"the failed check {ended.what}")
    if error is not None:
        raised = f"asking for the text of {error.name}: a check that ends the process"
        return Failure(kind="signal", what="SIGABRT", error=error, raised=raised)
    return Failure(kind="signal", what="SIGABRT")


def _destructor(failure: Failure, frames: Tuple[Frame, ...], inside: Optional[int]) -> Tuple[str, ...]:
    """Whether the check throws in a destructor."""
    name = (frames[inside].function or "") if inside is not None else ""
    if "::~" not in name or not failure.raised.startswith("throw"):
        return ()
    return (f"It is thrown in the destructor {name}: unless that is noexcept(false), std::terminate ends the process.",)


def _siginfo(field: str) -> Optional[int]:
    try:
        return int(gdb.parse_and_eval(f"$_siginfo.{field}"))
    except (gdb.error, RuntimeError):
        return None


def _in_core(seen: fatal_signal.Fault) -> fatal_signal.Fault:
    """A core file names the mapped file; what its file system had left is not in it."""
    place = memory.TargetMemory().classify(seen.address or 0)
    return replace(seen, path=place.name) if place.name.startswith("/") else seen


def _placed(seen: fatal_signal.Fault, pid: int) -> fatal_signal.Fault:
    """What is mapped at the address, and what /proc says of its file, seen through the process's root."""
    try:
        mapping = read_maps(pid).find(seen.address or 0)
    except OSError:
        return seen
    if mapping is None:
        return replace(seen, mapped=False)
    seen = replace(seen, mapped=True, access=mapping.permissions)
    if not mapping.is_file:
        return seen
    seen = replace(seen, path=mapping.path, offset=(seen.address or 0) - mapping.start + mapping.offset)
    try:
        with files.folder(f"/proc/{pid}/root{os.path.dirname(mapping.file)}") as folder:
            room = os.statvfs(folder)
        seen = replace(seen, total=room.f_blocks * room.f_frsize, free=room.f_bavail * room.f_frsize)
        status = files.status(f"/proc/{pid}/map_files/{mapping.start:x}-{mapping.end:x}")
        seen = replace(seen, size=status.st_size, allocated=status.st_blocks * 512)
    except OSError:
        pass
    return seen


def _engine_frames(frames: Tuple[Frame, ...], first: Optional[int]) -> List[gdb.Frame]:
    """gdb's frames of the engine's own code, from the first one outwards."""
    return [] if first is None else list(newest_frames(min(len(frames), first + _ENGINE_FRAMES)))[first:]


def _tensors(
    port: TensorPort, frames: Tuple[Frame, ...], first: Optional[int]
) -> Tuple[Optional[TensorList], Tuple[str, ...]]:
    """Those of the first engine frame that has any."""
    for frame in _engine_frames(frames, first):
        try:
            frame.select()
            found = port.in_frame(False)
        except (GdbextError, gdb.error, TypeError):  # no debug information there; gdb 13 on a closure's members
            continue
        known = tuple(one for one in found.tensors if not isinstance(one.shape, Missing))
        if known:
            return replace(found, tensors=known), ()
    return None, ()


def _streams(frames: Tuple[Frame, ...], first: Optional[int]) -> Tuple[Tuple[str, str], ...]:
    found: Dict[str, str] = {}
    for frame in _engine_frames(frames, first):
        for name in _STREAMS:
            value = read_variable(frame, name)
            if isinstance(value, int):
                found.setdefault(f"{name.replace('this->', '')} of {frame.name()}", f"{value:#x}")
    return tuple(found.items())


def _source(
    failure: Failure, frames: Tuple[Frame, ...], first: Optional[int], pid: int, is_core: bool
) -> Tuple[Tuple[SourceLine, ...], str]:
    """The lines around the place of the check, and which check stands before it; where the file is at hand."""
    if not failure.file or not failure.line:
        return (), ""
    base = os.path.basename(failure.file)
    engine = _engine_frames(frames, first)
    names = [failure.file] if os.path.isabs(failure.file) else []
    names += [full for frame in engine for full in [_full_name(frame)] if full]
    for name in dict.fromkeys(names):
        if os.path.basename(name) != base:
            continue
        for path in (name,) if is_core else (f"/proc/{pid}/root{name}", name):
            lines = _lines(path)
            if failure.line <= len(lines):
                begin, end = max(1, failure.line - _CONTEXT), failure.line + _CONTEXT
                around = tuple(SourceLine(begin + at, line) for at, line in enumerate(lines[begin - 1 : end]))
                return around, _check_before(lines, failure.line, name, engine)
    return (), ""


def _check_before(lines: List[str], line: int, name: str, engine: List[gdb.Frame]) -> str:
    """`cuda_utils.h:40`: the check before the line `line` in the function that it stands in."""
    for frame in engine:
        function = frame.function()
        if function is not None and _full_name(frame) == name and function.line < line:
            number = check_messages.check_before(lines, function.line, line)
            return f"{os.path.basename(name)}:{number}" if number else ""
    return ""


def _full_name(frame: gdb.Frame) -> Optional[str]:
    symtab = frame.find_sal().symtab
    return symtab.fullname() if symtab is not None else None


def _lines(path: str) -> List[str]:
    try:
        with files.stream(path, most=_LARGEST_SOURCE) as file:
            return file.read(_LARGEST_SOURCE).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
