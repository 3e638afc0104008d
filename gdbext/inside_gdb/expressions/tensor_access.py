"""Tensors of the selected frame: expressions, locals and raw addresses to `TensorInfo`. The port of the commands."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Callable, Dict, List, Optional, Tuple, TypeVar

import gdb

from gdbext.commands.tensor_port import Description, OneTensor
from gdbext.inside_gdb.base import compat, memory
from gdbext.inside_gdb.base.selected_frame import newest_frames, variables_of
from gdbext.inside_gdb.base.symbols import symbol_at
from gdbext.inside_gdb.release_builds.engine_libraries import tables
from gdbext.inside_gdb.release_builds.found_tensors import FrameTensors
from gdbext.inside_gdb.release_builds.frame_parameters import is_nameless, is_parameter, parameter_called
from gdbext.inside_gdb.release_builds.release_objects import Describe, is_known, object_at, only_with_debug_information
from gdbext.inside_gdb.tensors import torch_kinds, torch_offsets
from gdbext.inside_gdb.tensors.object_by_dwarf import ValueNode
from gdbext.inside_gdb.tensors.python_objects import PYTHON_TYPES, tensor_of
from gdbext.inside_gdb.tensors.target_object import Node, Null, Read, StructNode, Unreadable, one_line
from gdbext.inside_gdb.tensors.tensor_reader import (
    MOST_ENTRIES,
    MOST_STEPS,
    Described,
    Reader,
    UnknownType,
    mentions_tensor,
)
from gdbext.knowledge.all_tensor_layouts import STRUCTS
from gdbext.knowledge.dtypes import dtype_named
from gdbext.model.codes import Code
from gdbext.model.errors import GdbextError, NothingFound, UsageError
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo, TensorList
from gdbext.model.text.function_names import bare_name

T = TypeVar("T")
_ENTRY = re.compile(r"""(.*?)(?:\[\s*("[^"]*"|'[^']*'|-?\d+)\s*\]|(?:\.|->)at\(\s*("[^"]*"|\d+)\s*\))\Z""", re.DOTALL)
_PLACES = ("cpu", "pinned", "gpu", "managed")


class TensorAccess:
    """One per gdb; everything is about what is selected at the moment of the call."""

    def evaluate(self, expression: str, description: Description, only: str = "") -> Described:
        """What an expression is; of a graph with many tensors only those called `only`. Raises GdbextError."""
        parameter = self._parameter(expression)
        if parameter is not None:
            return parameter
        try:
            value = _value(expression)
        except UsageError:
            entry = _ENTRY.match(expression)
            if entry is None and expression.startswith("*"):  # what a pointer is and what it points to look alike here
                return replace(self.evaluate(expression[1:].lstrip(), description), name=expression)
            if entry is None:
                raise
            return self._entry(entry.group(1), entry.group(2) or entry.group(3), description)
        if description.dtype is not None or description.shape is not None:
            return _raw(expression, value, description)
        bytes_of = memory.current()
        try:
            if description.type_name is not None and self._is_of_release(description.type_name):
                address = _address(ValueNode(value, bytes_of.read))
                return object_at(
                    address, description.type_name, expression, tables(bytes_of), bytes_of.read, _describer(bytes_of)
                ).described
            node, note = self._node(value, description.type_name, bytes_of)
        except Unreadable as error:
            raise GdbextError(f"{expression}: {error}") from None
        try:
            return reader(bytes_of, note, only).describe(node, expression)
        except UnknownType:
            if not isinstance(node, ValueNode) or not (node.is_scalar or node.is_pointer):
                raise
            hint = "describe its contents: --dtype and --shape, or --as torch, ggml, pyobject or a type of the program"
            raise UsageError(f"{expression} is an address of something unknown", hint) from None

    def _parameter(self, expression: str) -> Optional[Described]:
        """The parameter of a frame without debug information that is called `arg2`; None for anything else."""
        bytes_of = memory.current()
        return parameter_called(expression, bytes_of, _describer(bytes_of)) if is_parameter(expression) else None

    def _is_of_release(self, type_name: str) -> bool:
        """Whether a type is to be read by offsets: a table has it, and the program has no debug information of it."""
        if not is_known(type_name) or any(row.id == type_name for row in STRUCTS):  # these are read everywhere
            return False
        try:
            return not gdb.lookup_type(type_name).strip_typedefs().fields()
        except (gdb.error, RuntimeError):
            return True

    def describe(self, value: gdb.Value, name: str) -> Described:
        """What a value is. Raises GdbextError."""
        bytes_of = memory.current()
        try:
            return reader(bytes_of).describe(ValueNode(value, bytes_of.read), name)
        except Unreadable as error:
            raise GdbextError(str(error)) from None

    def _entry(self, container: str, key: str, description: Description) -> TensorInfo:
        """One tensor of a map or vector, although the program has no operator for it that gdb could call."""
        try:
            found = self.evaluate(container, description, key.strip("\"'"))
        except OneTensor as one:
            raise OneTensor(one.expression, f"{one.index}[{key}]") from None
        names = (key.strip("\"'"), f"[{key}]")
        if isinstance(found, TensorInfo):
            if not found.kind:
                raise GdbextError(f"{container}: {found.problems[0]}")
            raise OneTensor(container, f"[{key}]")
        chosen = [one for one in found.entries if one.name in names]
        if not chosen:
            known = ", ".join(one.name for one in found.entries[:8])
            raise UsageError(f"{container} has no tensor {key}", f"it has {known}" if known else "")
        return replace(chosen[0], name=f"{container}[{key}]")

    def _node(self, value: gdb.Value, type_name: Optional[str], bytes_of: memory.TargetMemory) -> Tuple[Node, str]:
        node = ValueNode(value, bytes_of.read)
        if type_name is None:
            return self._python(node, bytes_of) if _is_python(node) else (node, "")
        address = _address(node)
        if type_name == "torch":
            return torch_offsets.tensor_at(address, bytes_of.read, release_in(bytes_of))
        if type_name == "pyobject":
            return self._python_at(address, bytes_of)
        row = next((row for row in STRUCTS if type_name in (row.id, row.id.split("_")[0])), None)
        if row is not None and "::" not in row.id:
            return StructNode(address, row, {one.id: one for one in STRUCTS}, bytes_of.read), ""
        try:
            return node.at(address, type_name), ""
        except Unreadable as error:  # the program has no such type
            raise Unreadable(str(only_with_debug_information(type_name) or error)) from None

    def _python(self, node: ValueNode, bytes_of: memory.TargetMemory) -> Tuple[Node, str]:
        return self._python_at(_address(node), bytes_of)

    def _python_at(self, address: int, bytes_of: memory.TargetMemory) -> Tuple[Node, str]:
        release = release_in(bytes_of)
        return torch_offsets.tensor_at(tensor_of(address, bytes_of.read, release), bytes_of.read, release)

    def read_of(self, info: TensorInfo) -> Read:
        """How to read the values of a tensor."""
        if not isinstance(info.where, Missing) and info.where.startswith("gpu"):
            return memory.read_global if compat.has_cuda_device() else lambda address, size: None
        return memory.current().read

    def in_frame(self) -> TensorList:
        """Tensors among the arguments and locals of the selected frame, and the members of `this`."""
        try:
            frame = gdb.selected_frame()
        except gdb.error as error:
            raise NothingFound(
                f"no frame is selected: {one_line(error).rstrip('.')}", "start or attach first"
            ) from None
        if is_nameless(frame):
            bytes_of = memory.current()
            return FrameTensors(frame, bytes_of, _describer(bytes_of)).listed(_place(frame))
        try:
            variables = variables_of(frame)
        except (gdb.error, RuntimeError) as error:
            raise NothingFound(f"{_place(frame)} cannot be read: {one_line(error).rstrip('.')}") from None
        found, problems = self._among(variables)
        return TensorList(_place(frame), tuple(found), tuple(problems))

    def _among(self, variables: Dict[str, gdb.Value]) -> Tuple[List[TensorInfo], List[str]]:
        bytes_of = memory.current()
        shared = reader(bytes_of)
        described: List[TensorInfo] = []
        problems: List[str] = []
        for name, value in variables.items():
            if len(described) >= MOST_ENTRIES:
                problems.append(f"only the first {MOST_ENTRIES} tensors are listed")
                break
            try:
                one = replace(shared, steps=[MOST_STEPS]).describe(ValueNode(value, bytes_of.read), name)
            except UsageError:
                continue
            except (Unreadable, gdb.error) as error:
                problems.append(f"{name}: {one_line(error)}")
                continue
            if isinstance(one, TensorInfo):
                described += [one] if one.kind else []
                problems += [f"{name}: {one.problems[0]}"] if not one.kind and _lost(value, one) else []
            else:
                described += [replace(entry, name=f"{name}{_step(entry.name)}") for entry in one.entries]
                if isinstance(one.total, int) and one.total > len(one.entries):
                    problems.append(f"{name}: the first {len(one.entries)} of {one.total:,} tensors")
        return described[:MOST_ENTRIES], problems

    def on_rank(self, number: int, body: Callable[[], T]) -> T:
        """Run `body` on another inferior, in the frame of the same function when there is one."""
        function = _selected_function()
        inferior = next((one for one in gdb.inferiors() if one.num == number), None)
        if inferior is None:
            raise NothingFound(f"there is no inferior {number}")
        with compat.inferior_selected(inferior):
            _select_function(function)
            return body()


def reader(bytes_of: memory.TargetMemory, note: str = "", only: str = "") -> Reader:
    """The reader of tensor objects in this memory."""

    def substitute(node: Node) -> Node:
        """A TensorImpl of which the program knows only the name is read by offsets."""
        if node.type_name != torch_offsets.TENSOR or not isinstance(node, ValueNode) or not node.address:
            return node
        if node.type.fields():
            return node
        return torch_offsets.tensor_at(node.address, bytes_of.read, release_in(bytes_of))[0]

    def behind(node: Node, info: TensorInfo) -> TensorInfo:
        """A quantised or a sparse tensor of torch."""
        return torch_kinds.with_torch_kind(node, info, bytes_of.read, part)

    def part(node: Node, name: str) -> TensorInfo:
        found = Reader(classify=bytes_of.classify, kind_note=note).describe(node, name)
        assert isinstance(found, TensorInfo)
        return found

    return Reader(
        classify=bytes_of.classify,
        symbol_at=symbol_at,
        device_memory=compat.has_cuda_device(),
        substitute=substitute,
        behind=behind,
        kind_note=note,
        only=only,
    )


def _describer(bytes_of: memory.TargetMemory) -> Describe:
    """Describes nodes over tables of offsets."""
    return lambda node, name, note: reader(bytes_of, note).describe(node, name)


def release_in(bytes_of: memory.TargetMemory) -> Optional[torch_offsets.Release]:
    return torch_offsets.loaded_release(bytes_of.files(), bytes_of.root)


def _value(expression: str) -> gdb.Value:
    """Evaluates without calling functions of the program: `*shared` and `map["key"]` would be calls."""
    try:
        with compat.settings({} if memory.calls_allowed() else {"may-call-functions": "off"}):
            return gdb.parse_and_eval(expression)
    except (gdb.error, RuntimeError) as error:
        raise UsageError(f"{expression}: {one_line(error)}") from None


def _address(node: ValueNode) -> int:
    """The address that a value is, or that it has."""
    if node.is_pointer or node.is_scalar:
        return node.integer()
    if node.address is None:
        raise Unreadable("not in memory")
    return node.address


def _raw(expression: str, value: gdb.Value, said: Description) -> TensorInfo:
    """Memory of which the user says what lies in it."""
    row = dtype_named(said.dtype) if said.dtype is not None else None
    if row is None:
        known = "bool, int8 to uint64, fp16, bf16, fp32, fp64, fp8_e4m3fn, ..."
        raise UsageError(f"--dtype {said.dtype or ''}: no element type of this name", known)
    if said.shape is None:
        raise UsageError("--dtype needs --shape too", "--shape 2,3")
    if said.where is not None and said.where.split()[0] not in _PLACES:
        raise UsageError(f"--where {said.where}: no such place", ", ".join(_PLACES))
    bytes_of = memory.current()
    try:
        node = ValueNode(value, bytes_of.read)
        address = _address(node)
    except Unreadable as error:
        raise UsageError(f"{expression}: {error}") from None
    where = Missing("not said") if said.where is None else said.where
    info = TensorInfo(
        name=expression,
        kind="memory",
        dtype=row.name,
        shape=said.shape,
        strides=said.strides,
        where=where,
        address=address,
    )
    return reader(bytes_of).finish(info)


def _is_python(node: ValueNode) -> bool:
    kind = node.type.target().strip_typedefs() if node.is_pointer else node.type
    return (kind.name or kind.tag or "") in PYTHON_TYPES


def _lost(value: gdb.Value, info: TensorInfo) -> bool:
    """Whether a variable is a tensor by its type, and cannot be read."""
    unread = isinstance(info.address, Missing) and info.address.code is Code.UNREADABLE
    return unread and mentions_tensor(str(value.type))


def _selected_function() -> Optional[str]:
    try:
        return gdb.selected_frame().name()
    except gdb.error:
        return None


def _select_function(function: Optional[str]) -> None:
    """The innermost frame of this function in the selected thread, or the frame that is selected."""
    if function is None:
        return
    try:
        found = next((frame for frame in newest_frames(256) if frame.name() == function), None)
        if found is not None:
            found.select()
    except gdb.error:
        return


def _place(frame: gdb.Frame) -> str:
    thread = gdb.selected_thread()
    number = f" of thread {thread.num}" if thread is not None else ""
    level = getattr(frame, "level", None)  # gdb 11
    name = bare_name(frame.name() or "") or "without a name"
    return f"frame{f' {level()}' if level else ''}{number}, {name}"


def _step(key: str) -> str:
    return key if key.startswith("[") else f".{key}"


__all__ = ["Null", "TensorAccess", "reader"]
