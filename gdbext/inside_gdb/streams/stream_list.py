"""Every stream that an inferior's memory leads to: variables of frames, objects, arguments of calls, torch's own."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import List, Optional, Set, Tuple

import gdb

from gdbext.analysis.failures.check_messages import engine_frame
from gdbext.analysis.streams.stream_ids import Decoded, of_handle
from gdbext.analysis.streams.stream_table import Sighting, grouped
from gdbext.inside_gdb.base import compat, settings
from gdbext.inside_gdb.base.memory import UNMAPPED, TargetMemory
from gdbext.inside_gdb.base.selected_frame import newest_frames, variables_of
from gdbext.inside_gdb.stacks.stack_walk import Budget, Captures, Walker, by_number, modules_of
from gdbext.inside_gdb.streams.stream_arguments import Arguments
from gdbext.inside_gdb.streams.stream_objects import StreamPaths, found_in, name_of, object_of, owner_of
from gdbext.inside_gdb.streams.stream_pools import current_streams, has_pools, with_pool_handle
from gdbext.inside_gdb.tensors.member_paths import follow
from gdbext.inside_gdb.tensors.object_by_dwarf import ValueNode
from gdbext.inside_gdb.tensors.target_object import Node, Unreadable, one_line
from gdbext.knowledge.engines.torch.streams import TORCH_LIBRARY
from gdbext.knowledge.runtimes.cuda_streams import CURRENT
from gdbext.knowledge.vendor_calls.stream_calls import CallRow, call_row
from gdbext.model.missing import Maybe, Missing
from gdbext.model.stack import ThreadStack
from gdbext.model.stream import (
    NO_KERNELS,
    NOT_IN_HANDLE,
    NOT_MAPPED,
    DeviceKernel,
    KnownStream,
    RankStreams,
    StreamUse,
    StreamWait,
)
from gdbext.parsers.cuda_kernels import kernels

_MOST_FRAMES = 64  # of a thread, looked at for variables
_MOST_SIGHTINGS = 8192
_ONLY = "the caller has one only"


def without_calls(inferior: gdb.Inferior, rank: Optional[int]) -> RankStreams:
    """What memory alone tells. The selection comes back."""
    kind = compat.kind_of(inferior)
    empty = RankStreams(number=inferior.num, pid=inferior.pid, rank=rank)
    if any(thread.is_running() for thread in inferior.threads()):
        return replace(empty, problems=("the process is running; `interrupt` stops it",))
    with compat.inferior_selected(inferior):
        look = _Look(inferior, kind == compat.HAS_CORE)
        look.walk()
        streams, events = grouped(look.sightings)
        return replace(
            empty,
            streams=tuple(look.checked(one) for one in streams),
            events=tuple(look.checked(one) for one in events if not isinstance(one.handle, Missing)),
            waits=tuple(look.waits),
            kernels=_kernels(),
            problems=tuple(dict.fromkeys(look.problems)),
        )


class _Look:
    """One inferior, which is selected."""

    def __init__(self, inferior: gdb.Inferior, is_core: bool) -> None:
        self._inferior, self._is_core = inferior, is_core
        self._memory = TargetMemory(inferior)
        self._modules = modules_of(inferior, is_core)
        self._arguments = Arguments(self._memory, self._modules)
        self._paths = StreamPaths()
        self.sightings: List[Sighting] = []
        self.waits: List[StreamWait] = []
        self.problems: List[str] = []

    def walk(self) -> None:
        """All threads: their stacks in plain words first, then the frames that hold or take streams."""
        budget = Budget(settings.value("max-pause"), settings.value("frames"), settings.value("threads"))
        walk = Walker(self._modules, budget, Captures(()), by_number).walk(self._inferior)
        self.problems += walk.problems
        torch = has_pools() or any(TORCH_LIBRARY.search(path) for path in self._modules.paths)
        threads = {by_number(thread): thread for thread in self._inferior.threads()}
        end = time.monotonic() + settings.value("max-pause")
        late = 0
        for stack in sorted(walk.threads, key=_calls_nothing):
            if time.monotonic() > end:
                late += 1
                continue
            try:
                threads[stack.id].switch()
                self._thread(stack, end)
                self._current(stack)
                if torch:
                    self._torch(stack)
            except gdb.error as error:
                self.problems.append(f"thread {stack.id}: {one_line(error)}")
        if late:
            limit = settings.value("max-pause")
            self.problems.append(f"frames of {late} threads were not looked at: limit of {limit:g} s")

    def checked(self, stream: KnownStream) -> KnownStream:
        """With a note where nothing can be at the handle."""
        if stream.kind not in ("user", "pool", "event") or isinstance(stream.handle, Missing) or self._is_core:
            return stream
        unmapped = self._memory.classify(stream.handle).kind == UNMAPPED
        return replace(stream, notes=(*stream.notes, NOT_MAPPED.reason), unmapped=True) if unmapped else stream

    # --- one thread ---

    def _thread(self, stack: ThreadStack, end: float) -> None:
        rows = {number: row for number, frame in enumerate(stack.frames) for row in [call_row(frame.function)] if row}
        last = max([*rows, *(number for number, frame in enumerate(stack.frames) if frame.file)], default=-1)
        waiting = next((number for number in sorted(rows) if rows[number].waits), None)
        wait: Optional[Tuple[Maybe[int], str]] = None
        seen: Set[Tuple[str, int, int]] = set()
        for number, frame in enumerate(newest_frames(min(last + 1, _MOST_FRAMES))):
            if number in rows:
                found = self._call(stack, number, frame, rows[number], number == waiting)
                wait = found if number == waiting else wait
            if number < len(stack.frames) and stack.frames[number].file:
                self._variables(stack, number, frame, seen)
            if time.monotonic() > end:
                self.problems.append(f"thread {stack.id}: not all frames were looked at")
                break
        if waiting is not None:
            self._waits(stack, waiting, rows[waiting], wait or (Missing("the frame cannot be read"), ""))

    def _call(
        self, stack: ThreadStack, number: int, frame: gdb.Frame, row: CallRow, waiting: bool
    ) -> Tuple[Maybe[int], str]:
        """The argument of one call, noted as a use of the stream; the handle, and how it is known."""
        function = stack.frames[number].function or ""
        if row.waits == "default":
            handle: Maybe[int] = 0
            how = "it uses the default stream"
        elif row.argument is None:
            return Missing("it waits for all streams of the device"), ""
        else:
            handle, how = self._arguments.of(frame, function, row)
        if isinstance(handle, Missing):
            return handle, how
        event = row.takes == "event"
        use = StreamUse(
            expression=f"argument of {function}",
            owner="",
            thread=stack.id,
            frame=number,
            function=function,
            waits=row.waits if waiting else "",
            argument=True,
        )
        decoded = Decoded("event", handle) if event else of_handle(handle)
        if handle or not event:
            self._saw(Sighting(event, decoded, NOT_IN_HANDLE, use))
        return handle, how

    def _waits(self, stack: ThreadStack, number: int, row: CallRow, found: Tuple[Maybe[int], str]) -> None:
        handle, how = found
        if isinstance(handle, Missing) and row.waits == "stream":
            handle, how = self._only_one(stack, number, handle)
        inside = engine_frame(stack.frames[number:])
        engine = stack.frames[number + inside] if inside is not None else None
        self.waits.append(
            StreamWait(
                *(stack.id, stack.lwp, stack.name or "", stack.frames[number].function or ""),
                *(row.waits if row.waits != "default" else "stream", number, handle, how),
                engine_function=(engine.function or "") if engine else "",
                file=engine.file if engine else None,
                line=engine.line if engine else None,
            )
        )

    def _only_one(self, stack: ThreadStack, number: int, why: Missing) -> Tuple[Maybe[int], str]:
        """The calling frame's stream, if it has one only: then that is the likely one."""
        around = {
            one.decoded.handle
            for one in self.sightings
            if not one.event and one.use.thread == stack.id and one.use.frame == number + 1
        }
        known = [handle for handle in around if not isinstance(handle, Missing)]
        return (known[0], _ONLY) if len(around) == 1 and known else (why, "")

    def _variables(self, stack: ThreadStack, number: int, frame: gdb.Frame, seen: Set[Tuple[str, int, int]]) -> None:
        if frame.function() is None:
            return
        try:
            variables = variables_of(frame)
        except (gdb.error, RuntimeError):
            return
        for name, value in variables.items():
            if len(self.sightings) >= _MOST_SIGHTINGS:
                self.problems.append(f"only the first {_MOST_SIGHTINGS:,} places that hold streams were looked at")
                return
            try:
                depth = 2 if name == "this" else 1
                paths = self._paths.of(value.type, depth)
                if not paths or value.is_optimized_out:
                    continue
                node = ValueNode(value, self._memory.read)
                place = node.integer() if node.is_pointer else node.address or 0
                key = (name_of(object_of(value.type)), place, depth)
                if paths != ("",) and key in seen and place:  # the same object, seen from an outer frame
                    continue
                if paths == ("",) and _not_yet(frame, name):
                    continue
                seen.add(key)
                for path in paths:
                    self._member(stack, number, (name, path), node)
            except (gdb.error, RuntimeError, Unreadable):
                continue

    def _member(self, stack: ThreadStack, number: int, where: Tuple[str, str], node: ValueNode) -> None:
        name, path = where
        try:
            found = found_in(follow(node, path) if path else _pointed(node))
        except Unreadable:  # a null pointer on the way, an object that is not made yet
            return
        if found is None:
            return
        arrow = "->" if node.is_pointer else "."
        expression = f"{name}{arrow}{path}" if path else name
        owner = owner_of(node, path) if path else ""
        function = stack.frames[number].function or ""
        self._saw(
            Sighting(
                found.event,
                with_pool_handle(found.decoded, found.device),
                found.device,
                StreamUse(expression=expression, owner=owner, thread=stack.id, frame=number, function=function),
            )
        )

    def _current(self, stack: ThreadStack) -> None:
        """The stream of an engine's own that is current on this thread."""
        for row in CURRENT:
            if not any(re.match(row.function, frame.function or "") for frame in stack.frames):
                continue
            try:
                with compat.settings({"may-call-functions": "off", "language": "c++"}):
                    found = found_in(ValueNode(gdb.parse_and_eval(row.expression), self._memory.read))
            except (gdb.error, RuntimeError, Unreadable) as problem:
                self.problems.append(f"{row.what} is not known: {one_line(problem)}")
                continue
            if found is not None:
                use = StreamUse(expression=row.what, owner="", thread=stack.id)
                self._saw(Sighting(found.event, found.decoded, found.device, use))

    def _torch(self, stack: ThreadStack) -> None:
        gdb.newest_frame().select()
        found = current_streams(self._memory)
        if isinstance(found, Missing):
            self.problems.append(f"torch's current streams are not known: {found.reason}")
            return
        for device, decoded in found:
            self._saw(
                Sighting(
                    False, decoded, device, StreamUse(expression="torch's current stream", owner="", thread=stack.id)
                )
            )

    def _saw(self, sighting: Sighting) -> None:
        self.sightings.append(sighting)


def _pointed(node: ValueNode) -> Node:
    """The stream itself where a variable is a pointer or reference to one."""
    for _ in range(2):
        if found_in(node) is not None or not node.is_pointer:
            return node
        target = node.target()
        if not isinstance(target, ValueNode):
            return node
        node = target
    return node


def _calls_nothing(stack: ThreadStack) -> bool:
    """Threads inside of a call that takes a stream, or waits for one, come first where time is short."""
    return not any(call_row(frame.function) for frame in stack.frames)


def _not_yet(frame: gdb.Frame, name: str) -> bool:
    """Whether a local variable is declared further down than the frame stands: what is in it is of somebody else."""
    symbol = gdb.lookup_symbol(name, frame.block())[0]
    line = frame.find_sal().line
    return symbol is not None and not symbol.is_argument and bool(line) and symbol.line > line


def _kernels() -> Maybe[Tuple[DeviceKernel, ...]]:
    if not compat.is_cuda_gdb():
        return NO_KERNELS
    try:
        text = gdb.execute("info cuda kernels", to_string=True)
    except gdb.error as error:
        return Missing(one_line(error))
    return kernels(text)[0]
