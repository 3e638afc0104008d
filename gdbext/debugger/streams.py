"""Streams and events of the selected frame: the handle out of whatever holds it. Nothing is called in the target."""

from __future__ import annotations

import re

import gdb

from gdbext.analysis.streams import Decoded, of_handle, of_torch_id
from gdbext.debugger import compat
from gdbext.debugger.holders import NoMember, follow, matches, peel
from gdbext.debugger.memory import TargetMemory
from gdbext.debugger.nodes import NAME_CAP, Node, Null, Unreadable, one_line
from gdbext.debugger.value_nodes import ValueNode
from gdbext.knowledge.streams import EVENT_TYPE, HOLDERS, STREAM_TYPE, Holder
from gdbext.model.errors import GdbextError
from gdbext.model.missing import Maybe, Missing
from gdbext.model.stream import NOT_IN_HANDLE, StreamInfo

_MOST_PEELS = 8
_NUMBERS = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_PTR)
_HINT = "give a cudaStream_t, a cudaEvent_t, an object with a stream, or an address"


class StreamAccess:
    """One per session."""

    def evaluate(self, expression: str) -> StreamInfo:
        """The stream or event that an expression of the program's language is. Raises `GdbextError`."""
        try:
            with compat.settings({"may-call-functions": "off"}):  # nor by the expression
                value = gdb.parse_and_eval(expression)
            node = ValueNode(value, TargetMemory().read)
            return _describe(node, expression)
        except Null as empty:
            raise GdbextError(f"{expression}: there is no stream in it: {empty}") from None
        except Unreadable as problem:
            raise GdbextError(f"{expression}: {problem}", _HINT) from None
        except (gdb.error, RuntimeError) as problem:
            raise GdbextError(f"{expression}: {one_line(problem)}") from None


def _describe(node: ValueNode, expression: str) -> StreamInfo:
    name = node.type_name[:NAME_CAP]
    if _points_to(node, EVENT_TYPE):
        handle = node.integer()
        return StreamInfo(expression, name, "event", handle if handle else Missing("null: no event"))
    if _points_to(node, STREAM_TYPE):
        return _told(expression, name, of_handle(node.integer()))
    if node.is_scalar or str(node.type) in ("void *", "void * const"):
        if node.type.code not in _NUMBERS:
            raise Unreadable(f"{name} is no stream")
        found = of_handle(node.integer())
        if found.kind == "user":
            note = "a bare number: whether a stream has this handle is not known"
            found = found._replace(kind="unverified", notes=(note,))
        return _told(expression, name, found)
    return _held(node, expression)


def _held(node: Node, expression: str) -> StreamInfo:
    """The stream in an object, or in what a pointer or a smart pointer leads to."""
    for _ in range(_MOST_PEELS):
        for row in HOLDERS:
            if not matches(row.type, node.type_name):
                continue
            try:
                end = follow(node, row.path)
            except NoMember:
                continue
            name = node.type_name[:NAME_CAP]
            number = end.integer() if row.torch_id else _handle(end)
            found = of_torch_id(number) if row.torch_id else of_handle(number)
            return _told(expression, name, found, _device(node, row))
        inner = peel(node)
        if inner is None:
            break
        node = inner
    raise Unreadable(f"{node.type_name[:NAME_CAP]} is no stream, and has no member that is known to hold one")


def _handle(node: Node) -> int:
    """The handle at the end of a path: itself, or what a smart pointer holds."""
    for _ in range(_MOST_PEELS):
        if isinstance(node, ValueNode) and _points_to(node, STREAM_TYPE):
            return node.integer()
        if re.fullmatch(STREAM_TYPE, node.type_name) and node.address is not None:
            return node.address
        inner = peel(node)
        if inner is None:
            break
        node = inner
    raise Unreadable(f"its stream is a {node.type_name[:NAME_CAP]}, which is not known")


def _points_to(node: ValueNode, pattern: str) -> bool:
    if not node.is_pointer:
        return False
    target = node.type.target().strip_typedefs().unqualified()
    return bool(re.fullmatch(pattern, str(target)))


def _device(node: Node, row: Holder) -> Maybe[int]:
    if not row.device:
        return NOT_IN_HANDLE
    try:
        return follow(node, row.device).integer()
    except Unreadable as problem:
        return Missing(str(problem))


def _told(expression: str, name: str, found: Decoded, device: Maybe[int] = NOT_IN_HANDLE) -> StreamInfo:
    return StreamInfo(
        *(expression, name, found.kind, found.handle, device, found.pool_index, found.priority), notes=found.notes
    )
