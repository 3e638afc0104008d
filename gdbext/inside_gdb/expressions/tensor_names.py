"""What a name is: a tensor of the program's language where there is one of this name, else of the Python frame."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Optional, TypeVar

import gdb

from gdbext.capture.python.names import parse_name, root_of
from gdbext.commands.tensor_port import Description, OneTensor
from gdbext.inside_gdb.base import memory
from gdbext.inside_gdb.expressions.named_tensors import NamedTensors, NoName, Stack, place_of, stack, thread_with
from gdbext.inside_gdb.expressions.tensor_access import TensorAccess, reader, release_in
from gdbext.inside_gdb.python.frames import PythonThread, python_thread
from gdbext.inside_gdb.python.selected_python_frame import selected_number
from gdbext.inside_gdb.tensors.python_tensors import PythonTensors
from gdbext.inside_gdb.tensors.tensor_reader import Described, UnknownType
from gdbext.model.errors import NothingFound, UsageError
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo, TensorList
from gdbext.model.text.ranges import counted

T = TypeVar("T")
_PYTHON = "`llm-tensor list --python` lists the tensors of its Python frames"


def tensors_of(thread: PythonThread) -> PythonTensors:
    """The tensors among the objects of a thread's process."""
    bytes_of = memory.current()
    return PythonTensors(
        objects=thread.objects,
        read=thread.process.read,
        release=release_in(bytes_of),
        describe=lambda node, name, note: reader(bytes_of, note).describe(node, name),
        finish=reader(bytes_of).finish,
    )


class TensorNames:
    """One per gdb; everything is about what is selected at the moment of the call."""

    def __init__(self) -> None:
        self._native = TensorAccess()
        self.read_of, self.describe = self._native.read_of, self._native.describe
        self._like: Optional[Stack] = None  # what the rank executes from which this one is asked

    def evaluate(self, expression: str, description: Description) -> Described:
        """What an expression of the program's language is, else a name of Python. Raises GdbextError, OneTensor."""
        name = parse_name(expression) if description == Description() else None
        if name is not None and name.frame is not None:
            return self._of_python(name.frame).named(expression, name)
        try:
            return self._also_in_python(self._native.evaluate(expression, description), expression)
        except OneTensor:
            raise
        except UsageError as error:
            if name is None or (self._like is None and isinstance(python_thread(), Missing)):
                raise
            try:
                return self._of_python(name.frame).named(expression, name)
            except NoName:
                if isinstance(error, UnknownType):  # a variable of the program that is no tensor
                    raise error from None
                raise

    def _also_in_python(self, found: Described, expression: str) -> Described:
        """Says so when a Python variable has the same name as the one of the program that was taken."""
        name, thread = parse_name(expression), python_thread()
        if name is None or isinstance(thread, Missing) or not thread.frames or not isinstance(found, TensorInfo):
            return found
        number = selected_number(thread)
        if isinstance(root_of(name.root, thread.frames[number], thread.objects), Missing):
            return found
        text = f"a variable of the native frame; py{number}:{expression} is that of {place_of(thread, number)}"
        return replace(found, notes=(text, *found.notes))

    def in_frame(self, python: bool) -> TensorList:
        """Tensors of the selected frame, or of the Python frames of the thread."""
        if python:
            return self._of_python().all()
        try:
            found = self._native.in_frame()
        except NothingFound as error:
            error.hint = error.hint if isinstance(python_thread(), Missing) else _PYTHON
            raise
        empty = not found.tensors and not isinstance(python_thread(), Missing)
        return replace(found, problems=(*found.problems, _PYTHON)) if empty else found

    def _of_python(self, number: Optional[int] = None) -> NamedTensors:
        """The names of a Python frame, of the selected one without a number; asked from another rank, of the frame
        here that executes the same function."""
        if self._like is not None:
            found = thread_with(self._like.function(number))
        else:
            thread = python_thread()
            found = thread if isinstance(thread, Missing) else (thread, selected_number(thread))
        if isinstance(found, Missing):
            raise NothingFound(f"no Python frames: {found.reason}")
        thread, selected = found
        if self._like is not None or number is None:
            number = selected
        if number >= len(thread.frames):
            count = counted(len(thread.frames), "Python frame")
            raise UsageError(f"py{number}: this thread has {count}", "llm-bt shows their numbers")
        return NamedTensors(tensors_of(thread), thread, number)

    def on_rank(self, number: int, body: Callable[[], T]) -> T:
        """Run `body` on another inferior, in the native and the Python frame of the same functions as here."""
        other = number != gdb.selected_inferior().num
        like = stack() if other else None

        def there() -> T:
            self._like = like
            try:
                return body()
            finally:
                self._like = None

        return self._native.on_rank(number, there)
