"""The parameters of a frame without debug information: their types by the function's name, their values by the ABI."""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import gdb

from gdbext.capture.machine import gdb_registers
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.memory import TargetMemory
from gdbext.inside_gdb.base.selected_frame import register
from gdbext.inside_gdb.base.symbols import symbol_at
from gdbext.inside_gdb.release_builds.engine_libraries import struct_named, tables
from gdbext.inside_gdb.release_builds.release_objects import (
    Describe,
    Seen,
    holds_up,
    is_known,
    object_at,
    only_with_debug_information,
)
from gdbext.inside_gdb.stacks.stack_walk import modules_of
from gdbext.inside_gdb.streams.stream_arguments import Arguments
from gdbext.inside_gdb.tensors.target_object import Unreadable
from gdbext.inside_gdb.tensors.tensor_reader import Described
from gdbext.knowledge.row_kinds import ReleaseRow
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.missing import Maybe, Missing
from gdbext.model.text.digits import is_whole
from gdbext.model.text.function_names import bare_name
from gdbext.parsers.parameter_types import Parameter, parameters_of

_NAME = re.compile(r"arg\d{1,2}")
_HIDDEN = 2
"""Words that may stand before the first parameter: where the result goes, and `this`. Names do not say which do."""
_REFERENCES = ("turbomind::core::Ref", "turbomind::Ref", "std::reference_wrapper")
"""Structs of one reference: their word is what they refer to."""
_ENTRY = 5  # bytes of endbr64 and a push: nothing has happened to the arguments yet
BY_ENTRY, BY_CALL = "at the function's entry", "by the code of the call"


class Typed(NamedTuple):
    """A parameter that an engine's tensors are in. `register` is its number among those of arguments, counted without
    hidden words; None where it is not known."""

    number: int
    type: str
    register: Optional[int]


class Found(NamedTuple):
    """What a parameter is; or why that is not known. `refuted`: its value is known, and no such object is there."""

    name: str
    type: str
    seen: Maybe[Seen]
    refuted: bool = False


def typed_parameters(demangled: str) -> Tuple[Typed, ...]:
    """The parameters of an engine's types, by a function's name; none where it does not say them."""
    found: List[Typed] = []
    word: Optional[int] = 0
    for number, parameter in enumerate(parameters_of(demangled) or (), 1):
        type_name = _held(parameter)
        if type_name is not None:
            found.append(Typed(number, type_name, word))
        word = None if word is None else _behind(parameter, word, type_name is not None)
    return tuple(found)


def without_offsets(demangled: str) -> Dict[int, UsageError]:
    """By number, the parameters that are tensors of an engine whose offsets nobody knows, and what to do."""
    found = {}
    for number, parameter in enumerate(parameters_of(demangled) or (), 1):
        error = only_with_debug_information(parameter.type)
        if error is not None:
            found[number] = error
    return found


def _held(parameter: Parameter) -> Optional[str]:
    """The type of the object whose address the parameter's word is; None where it is nobody's."""
    outer, _, inner = parameter.type.partition("<")
    if outer in _REFERENCES:
        name = inner[:-1]
    elif parameter.pointers + parameter.reference > 1:
        return None
    else:
        name = outer if outer.endswith("Tensor_") else parameter.type
    return name if is_known(name) else None


def _behind(parameter: Parameter, word: int, ours: bool) -> Optional[int]:
    """The number of the next parameter's word. What a struct takes that nobody knows is not known."""
    if parameter.is_float:
        return word
    if ours or parameter.pointers or parameter.reference or parameter.is_number:
        return word + 1
    if parameter.type.startswith("std::") or parameter.type.endswith("_enum"):
        return word + 1  # containers, strings and functions are passed by their address
    return None


class Parameters:
    """Of frames of the selected inferior."""

    def __init__(self, bytes_of: TargetMemory, rows: Sequence[ReleaseRow], describe: Describe) -> None:
        inferior = gdb.selected_inferior()
        is_core = compat.kind_of(inferior) != compat.HAS_PROCESS
        self._bytes_of, self._rows, self._describe = bytes_of, rows, describe
        self._arguments = Arguments(bytes_of, modules_of(inferior, is_core))

    def of(self, frame: gdb.Frame) -> List[Found]:
        """The parameters that are an engine's tensors, in order."""
        typed = [one for one in typed_parameters(frame.name() or "") if self._is_loaded(one.type)]
        if not typed:
            return []
        values = self.registers(frame)
        readings = [[self._found(one, hidden, values) for one in typed] for hidden in range(_HIDDEN + 1)]
        possible = [found for hidden, found in enumerate(readings) if _is_possible(found, hidden)] or readings[:1]
        best = max(map(_score, possible))
        fitting = [found for found in possible if _score(found) == best]
        if best and len(fitting) > 1:
            fitting = [found for found in fitting if all(self._stands(one) for one in found)] or fitting
        if best and len(fitting) > 1:
            reason: Maybe[Seen] = Missing(
                f"{len(fitting)} registers fit, as its name does not tell whether a result or `this` is before it"
            )
            return [one._replace(seen=reason) for one in fitting[0]]
        return fitting[0]

    def _stands(self, found: Found) -> bool:
        return isinstance(found.seen, Missing) or holds_up(found.seen, self._bytes_of.read)

    def registers(self, frame: gdb.Frame) -> List[Maybe[int]]:
        """What the registers of arguments had when the function was called, in order."""
        names = gdb_registers()
        if names is None:
            return []
        if at_entry(frame):
            found = [register(frame, name) for name in names.arguments]
            return [Missing("the register cannot be read") if one is None else one for one in found]
        function = _linkage_name(frame)
        return [self._arguments.in_register(frame, function, number) for number in range(len(names.arguments))]

    def how(self, frame: gdb.Frame) -> str:
        return BY_ENTRY if at_entry(frame) else BY_CALL

    def _is_loaded(self, type_name: str) -> bool:
        return any(struct_named(row, type_name) is not None for row in self._rows)

    def _found(self, typed: Typed, hidden: int, values: Sequence[Maybe[int]]) -> Found:
        name = f"arg{typed.number}"
        if typed.register is None:
            return Found(name, typed.type, Missing("how its neighbours are passed is not known"))
        if typed.register + hidden >= len(values):
            return Found(name, typed.type, Missing("passed on the stack"))
        value = values[typed.register + hidden]
        if isinstance(value, Missing):
            return Found(name, typed.type, value)
        try:
            seen = object_at(value, typed.type, name, self._rows, self._bytes_of.read, self._describe)
        except Unreadable as error:
            return Found(name, typed.type, Missing(str(error)), bool(value))
        return Found(name, typed.type, seen)


def _is_possible(found: Sequence[Found], hidden: int) -> bool:
    """Whether nothing speaks against a reading. One with hidden words must have found every parameter: else the first
    parameters could be damaged, and others be taken for them."""
    if any(one.refuted for one in found):
        return False
    return _score(found) == len(found) if hidden else _score(found) > 0


def _score(found: Sequence[Found]) -> int:
    return sum(not isinstance(one.seen, Missing) for one in found)


def at_entry(frame: gdb.Frame) -> bool:
    """Whether the function has not begun yet: its arguments are where the caller put them."""
    newest = gdb.newest_frame()
    if frame != newest:
        return False
    text = symbol_at(frame.pc()) or ""
    _, plus, offset = text.partition(" in section ")[0].rpartition(" + ")
    return bool(text) and (not plus or (is_whole(offset) and int(offset) < _ENTRY))


def _linkage_name(frame: gdb.Frame) -> str:
    """The name of a frame's function as the linker has it."""
    with compat.settings({"print demangle": "off", "print asm-demangle": "off"}):
        text = symbol_at(frame.pc()) or ""
    return text.partition(" ")[0]


def is_nameless(frame: gdb.Frame) -> bool:
    """Whether a frame's function has no debug information."""
    try:
        return frame.block() is None
    except RuntimeError:
        return True


def is_parameter(expression: str) -> bool:
    """Whether an expression is the name of a parameter of the selected frame, which has no debug information."""
    try:
        return bool(_NAME.fullmatch(expression)) and is_nameless(gdb.selected_frame())
    except gdb.error:
        return False


def parameter_called(name: str, bytes_of: TargetMemory, describe: Describe) -> Described:
    """What the parameter of this name is. Raises `GdbextError`."""
    frame = gdb.selected_frame()
    found = Parameters(bytes_of, tables(bytes_of), describe).of(frame)
    one = next((one for one in found if one.name == name), None)
    if one is None:
        error = without_offsets(frame.name() or "").get(int(name[3:]))
        if error is not None:
            raise UsageError(f"{name}: {error.args[0]}", error.hint)
        known = ", ".join(one.name for one in found) or "none of its parameters is a tensor that is known"
        function = bare_name(frame.name() or "") or "a frame without a name"
        raise UsageError(f"{name}: no such tensor of {function}", known)
    if isinstance(one.seen, Missing):
        raise GdbextError(f"{name} ({one.type}): {one.seen.reason}")
    return one.seen.described
