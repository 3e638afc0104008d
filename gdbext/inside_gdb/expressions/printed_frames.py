"""What a person sees of Python frames: their variables in a few words, and the lines around the selected one."""

from __future__ import annotations

import struct
from typing import List, Optional, Tuple

import gdb

from gdbext.capture.python.attributes import Attributes
from gdbext.capture.python.local_variables import FrameLocals
from gdbext.capture.python.names import Name, follow, parse_name, root_of, variables_in
from gdbext.inside_gdb.base import compat, memory
from gdbext.inside_gdb.expressions.tensor_names import tensors_of
from gdbext.inside_gdb.python.frames import PythonThread, python_thread, thread_of_number
from gdbext.inside_gdb.python.selected_python_frame import choose, selected_number
from gdbext.inside_gdb.tensors.python_tensors import PythonTensors
from gdbext.knowledge.runtimes.cpython_objects import DICT_CLASS, INTEGER
from gdbext.model.backtrace import FileLine, PythonPlace, PythonVariable
from gdbext.model.errors import NothingFound, UsageError
from gdbext.model.missing import Missing
from gdbext.safe_open import files

MOST_VARIABLES = 64  # of one frame
_MOST_NAMES = 4  # of a dictionary
_LONGEST = 60  # characters of a text
_BEFORE, _BEHIND = 4, 4  # lines around
_MOST_BYTES = 4 << 20  # of a source file
_LONGEST_LINE = 400


class PythonFrames:
    """One per gdb; everything is about what is selected at the moment of the call."""

    def select(self, number: Optional[int], step: int) -> PythonPlace:
        """Select a frame by its number, or so many steps further out; without both the selected one."""
        thread = python_thread()
        if isinstance(thread, Missing):
            raise NothingFound(f"no Python frames: {thread.reason}")
        count = len(thread.frames)
        if not count:
            raise NothingFound(f"thread {thread.number} has no Python frames")
        wanted = number if number is not None else selected_number(thread) + step
        if number is not None and number >= count:
            raise UsageError(f"there is no py{number}: thread {thread.number} has py0 to py{count - 1}", "llm-bt")
        if not 0 <= wanted < count:
            end = "the outermost" if wanted >= count else "the innermost"
            last = count - 1 if wanted >= count else 0
            if selected_number(thread) == last:
                raise UsageError(f"py{last} is {end} Python frame of thread {thread.number}")
            wanted = last
        choose(thread, wanted)
        return _place(thread, wanted)

    def variables(self, inferior: int, tid: int) -> Tuple[Tuple[PythonVariable, ...], ...]:
        """The local variables of each Python frame of a thread, from the innermost one on."""
        found = next((one for one in gdb.inferiors() if one.num == inferior), None)
        if found is None:
            return ()
        with compat.inferior_selected(found):
            thread = thread_of_number(tid)
            if isinstance(thread, Missing):
                return ()
            tensors = tensors_of(thread)
            return tuple(_variables(thread, number, tensors) for number in range(len(thread.frames)))


def _variables(thread: PythonThread, number: int, tensors: PythonTensors) -> Tuple[PythonVariable, ...]:
    found = list(variables_in(thread.frames[number], thread.objects).items())
    shown = [PythonVariable(name, in_words(address, tensors)) for name, address in found[:MOST_VARIABLES]]
    if len(found) > MOST_VARIABLES:
        shown.append(PythonVariable("...", f"{len(found) - MOST_VARIABLES} more"))
    return tuple(shown)


def in_words(address: int, tensors: PythonTensors) -> str:
    """What an object is: its value where that is short, else its class and size."""
    objects = tensors.objects
    one = objects.class_of(address)
    if one is None:
        return "no Python object any more"
    if tensors.is_tensor(address):
        info = tensors.info(address, "")
        shape = "[?]" if isinstance(info.shape, Missing) else f"[{', '.join(map(str, info.shape))}]"
        where = "" if isinstance(info.where, Missing) else f" on {info.where}"
        return f"tensor: {info.dtype.reason}" if isinstance(info.dtype, Missing) else f"{info.dtype} {shape}{where}"
    value = _value(address, one.name, objects)
    if value:
        return value
    held, of, _ = objects.holder(address)
    if of is None or not (of.flags & DICT_CLASS or objects.is_sequence(of)):
        return f"{one.name} object at {address:#x}"
    if not of.flags & DICT_CLASS:
        return f"{one.name} of {objects.containers.length(held):,}"
    used = objects.containers.used(held)
    keys = [objects.key(key) for key, _ in objects.containers.pairs(held, _MOST_NAMES)]
    names = ", ".join(str(key) for key in keys if key is not None)
    return f"{one.name} of {used:,}" + (f": {names}{', ...' if used > len(keys) else ''}" if names else "")


def _value(address: int, kind: str, objects: Attributes) -> str:
    containers = objects.containers
    if kind == "NoneType":
        return "None"
    if kind == "bool":
        digit = containers.pages.read(address + INTEGER + 8, 4)
        return "" if digit is None else str(bool(struct.unpack("<I", digit)[0]))
    text = containers.text(address, _LONGEST)
    if text is not None:
        return repr(text)
    number, real = containers.number(address, 8), containers.real(address)
    return str(number) if number is not None else repr(real) if real is not None else ""


def _attributes_of(name: Name, text: str, frame: FrameLocals, objects: Attributes) -> List[str]:
    root = root_of(name.root, frame, objects)
    found = root if isinstance(root, Missing) else follow(name, root, objects, text, lambda address: False)
    if isinstance(found, Missing):
        return []
    one = objects.class_of(found.address)
    return list(objects.attributes(found.address, one)) if one is not None else []


def names_behind(typed: str) -> List[str]:
    """What a name of Python that was begun may become: variables of the selected frame, attributes of an object."""
    thread = python_thread()
    before, dot, begun = typed.rpartition(".")
    name = parse_name(before) if dot else None
    if isinstance(thread, Missing) or not thread.frames or (dot and name is None):
        return []
    number = name.frame if name is not None and name.frame is not None else selected_number(thread)
    if number >= len(thread.frames):
        return []
    frame = thread.frames[number]
    if name is None:
        known = list(variables_in(frame, thread.objects))
    else:
        known = _attributes_of(name, before, frame, thread.objects)
    return sorted(before + dot + one for one in known if one.startswith(begun))


def _place(thread: PythonThread, number: int) -> PythonPlace:
    frame = thread.frames[number]
    lines, problem = _source(frame.file, frame.line)
    return PythonPlace(
        thread=str(thread.number),
        number=number,
        frames=len(thread.frames),
        function=frame.function,
        file=frame.file,
        line=frame.line,
        source=tuple(lines),
        source_problem=problem,
    )


def _source(file: Optional[str], line: Optional[int]) -> Tuple[List[FileLine], Optional[str]]:
    """The lines around, of the file as the process sees it."""
    if not file or not line:
        return [], None
    if not file.startswith("/"):
        return [], f"{file} is not an absolute path: its lines are not read"
    root = memory.current().root
    try:
        with files.stream(file, root or None) as stream:
            text = stream.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return [], f"{file} cannot be read: {error.strerror or error}"
    lines = text.splitlines()
    if line > len(lines):
        return [], f"{file} has {len(lines)} lines now: it was changed after the program was started"
    first = max(1, line - _BEFORE)
    around = lines[first - 1 : line + _BEHIND]
    return [FileLine(at, one.expandtabs()[:_LONGEST_LINE]) for at, one in enumerate(around, first)], None
