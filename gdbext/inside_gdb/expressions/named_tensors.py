"""Tensors by the names of a Python frame: `hidden`, `self.kv[3]`, `py1:batch["ids"]`, and all of them as a list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import List, Optional, Tuple, Union

import gdb

from gdbext.capture.python.local_variables import FrameLocals
from gdbext.capture.python.names import Name, follow, parse_name, root_of, variables_in
from gdbext.capture.python.object_walk import Walk
from gdbext.commands.tensor_port import OneTensor
from gdbext.inside_gdb.python.frames import PythonThread, python_process, python_thread
from gdbext.inside_gdb.python.selected_python_frame import selected_number
from gdbext.inside_gdb.tensors.python_tensors import PythonTensors
from gdbext.model.errors import UsageError
from gdbext.model.missing import Maybe, Missing
from gdbext.model.tensor import TensorInfo, TensorList, TensorMapInfo
from gdbext.model.text.ranges import counted

MOST_TENSORS = 256


@dataclass(frozen=True)
class Function:
    """A Python function that is to be found again in another rank."""

    name: str
    file: str

    def has(self, frame: FrameLocals) -> bool:
        """Whether a frame executes it."""
        return (frame.function, frame.file) == (self.name, self.file)


@dataclass(frozen=True)
class Stack:
    """What the Python frames of a thread execute, and which of them is selected."""

    functions: Tuple[Function, ...]
    selected: int

    def function(self, number: Optional[int]) -> Function:
        """Of the frame of this number, of the selected one without. Raises UsageError."""
        number = self.selected if number is None else number
        if number >= len(self.functions):
            count = counted(len(self.functions), "Python frame")
            raise UsageError(f"py{number}: the selected thread has {count}", "llm-bt shows their numbers")
        return self.functions[number]


def stack() -> Optional[Stack]:
    """That of the selected thread; None where it runs no Python."""
    thread = python_thread()
    if isinstance(thread, Missing) or not thread.frames:
        return None
    functions = tuple(Function(frame.function or "?", frame.file or "?") for frame in thread.frames)
    return Stack(functions, selected_number(thread))


def place_of(thread: PythonThread, number: int) -> str:
    """`py1, in Layer.forward at layers.py:12`."""
    frame = thread.frames[number]
    file = (frame.file or "?").rpartition("/")[2]
    return f"py{number}, in {frame.function or '?'} at {file}:{frame.line or '?'}"


def thread_with(function: Function) -> Maybe[Tuple[PythonThread, int]]:
    """The selected thread of a rank, else the only one there, that executes a function, and the number of its frame."""
    process, here = python_process(), python_thread()
    if isinstance(process, Missing):
        return process
    if isinstance(here, PythonThread):
        found = next((number for number, frame in enumerate(here.frames) if function.has(frame)), None)
        if found is not None:
            return here, found
    others: List[Tuple[PythonThread, int]] = []
    for thread in gdb.selected_inferior().threads():
        frames, objects = process.frames_of(thread.ptid[1]), process.objects()
        if isinstance(frames, Missing) or isinstance(objects, Missing):
            continue
        at = next((number for number, frame in enumerate(frames) if function.has(frame)), None)
        if at is not None:
            others.append((PythonThread(process, thread.num, thread.ptid[1], frames, objects), at))
    if len(others) == 1:
        return others[0]
    return Missing(f"{counted(len(others), 'thread')} of it in {function.name}: `thread N` selects one" if others
                   else f"none of its threads is in {function.name}")  # fmt: skip


@dataclass(frozen=True)
class NamedTensors:
    """What names mean in one Python frame."""

    tensors: PythonTensors
    thread: PythonThread
    number: int

    def named(self, text: str, name: Name) -> Union[TensorInfo, TensorMapInfo]:
        """The tensor, or the tensors below an object. Raises UsageError with what there is instead; OneTensor."""
        objects, place = self.thread.objects, place_of(self.thread, self.number)
        root = root_of(name.root, self.thread.frames[self.number], objects)
        if isinstance(root, Missing):
            head, _, hint = root.reason.partition("; ")
            raise NoName(f"{text}: {head} in {place}", self._elsewhere(text, name) or hint)
        found = follow(name, root, objects, text, self.tensors.is_tensor)
        if isinstance(found, Missing):
            head, _, hint = found.reason.partition("; ")
            raise UsageError(f"{head} ({place})", hint)
        if found.rest.startswith("["):
            raise OneTensor(found.name, found.rest)
        if found.rest:
            raise UsageError(f"{found.name} is a tensor: reading {found.rest} of it needs a call", f"of {place}")
        note = f"Python frame {place}"
        if self.tensors.is_tensor(found.address):
            info = self.tensors.info(found.address, text)
            return replace(info, notes=(note, *info.notes))
        return self._below(text, found.address, place)

    def _elsewhere(self, text: str, name: Name) -> str:
        """The nearest frame that has a variable of this name."""
        frames = self.thread.frames if name.frame is None else ()
        for number, frame in enumerate(frames):
            if name.root in variables_in(frame, self.thread.objects):
                return f"{place_of(self.thread, number)} has one: py{number}:{text}"
        return ""

    def _below(self, text: str, address: int, place: str) -> TensorMapInfo:
        """The tensors that an object holds."""
        walk = Walk(objects=self.thread.objects, ends=self.tensors.is_tensor)
        infos, cut = self._infos(walk, [("", address)])
        one = self.thread.objects.class_of(address)
        kind = one.name if one is not None else "?"
        if not infos:
            left_out = "; ".join(walk.left_out())
            value = "None" if kind == "NoneType" else self._value(address)
            none = f"no tensor was found in {text}, a {kind}" if left_out else f"{text} is a {kind} without tensors"
            what = f"{text} is {value}" if value else none
            raise UsageError(f"{what} ({place})", left_out)
        total = Missing("not counted") if cut or walk.cut else len(infos)
        return TensorMapInfo(text, f"{kind} in Python frame {place}", tuple(infos), total, (*cut, *walk.left_out()))

    def _value(self, address: int) -> str:
        """What a number or a text is."""
        containers = self.thread.objects.containers
        number, real, text = containers.number(address, 4), containers.real(address), containers.text(address, 40)
        if number is not None:
            return f"the number {number}"
        return f"the number {real:g}" if real is not None else f"the text {text!r}" if text is not None else ""

    def _infos(self, walk: Walk, starts: List[Tuple[str, int]]) -> Tuple[List[TensorInfo], Tuple[str, ...]]:
        found: List[TensorInfo] = []
        for leaf in walk.leaves(starts):
            if len(found) >= MOST_TENSORS:
                return found, (f"only the first {MOST_TENSORS} tensors are listed",)
            found.append(self._noted(self.tensors.info(leaf.address, leaf.name)))
        return found, ()

    def _noted(self, info: TensorInfo) -> TensorInfo:
        """With the function, where the name says which frame it is of."""
        name = parse_name(info.name)
        if name is None or name.frame is None:
            return info
        function = (self.thread.frames[name.frame].function or "?").rpartition("<locals>.")[2]
        return replace(info, notes=(f"in {function}", *info.notes))

    def all(self) -> TensorList:
        """Every tensor of every Python frame, by names that can be typed here: those of other frames with `pyN:`."""
        frames, objects = self.thread.frames, self.thread.objects
        walk = Walk(objects=objects, ends=self.tensors.is_tensor)
        starts: List[Tuple[str, int]] = []
        for number in sorted(range(len(frames)), key=lambda one: (one != self.number, one)):
            before = "" if number == self.number else f"py{number}:"
            variables = variables_in(frames[number], objects)
            starts += [(before + name, address) for name, address in variables.items()]
        found, cut = self._infos(walk, starts)
        place = f"{counted(len(frames), 'Python frame')} of thread {self.thread.number}; selected is "
        place += place_of(self.thread, self.number) if frames else "none"
        return TensorList(place, tuple(found), (*cut, *walk.left_out()))


class NoName(UsageError):
    """No variable of that name is in the frame."""
