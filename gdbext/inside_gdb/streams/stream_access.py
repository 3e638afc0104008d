"""The port of the stream commands: what an expression is, and every stream of the attached ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Optional, Sequence

import gdb

from gdbext.analysis.streams.stream_ids import Decoded, of_handle
from gdbext.analysis.streams.stream_table import is_doubtful, with_kernels
from gdbext.inside_gdb.base import compat, memory
from gdbext.inside_gdb.base.memory import TargetMemory
from gdbext.inside_gdb.calls.target_calls import Caller
from gdbext.inside_gdb.streams.all_stream_states import with_states
from gdbext.inside_gdb.streams.stream_list import without_calls
from gdbext.inside_gdb.streams.stream_objects import Found, found_in, in_holder
from gdbext.inside_gdb.streams.stream_pools import with_pool_handle
from gdbext.inside_gdb.streams.stream_state import selected_thread, stream_calls
from gdbext.inside_gdb.tensors.member_paths import unwrap_layer
from gdbext.inside_gdb.tensors.object_by_dwarf import ValueNode
from gdbext.inside_gdb.tensors.target_object import NAME_CAP, Node, Null, Unreadable, one_line
from gdbext.knowledge.runtimes.cuda_streams import HOLDERS
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.codes import RankState
from gdbext.model.errors import GdbextError
from gdbext.model.missing import Maybe, Missing
from gdbext.model.stream import MAYBE_NO_STREAM, NOT_IN_HANDLE, Asked, RankStreams, StreamInfo, StreamTable

_MOST_PEELS = 8
_NUMBERS = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_PTR)
_HINT = "give a cudaStream_t, a cudaEvent_t, an object with a stream, or an address"
_BARE = "a bare number: whether a stream has this handle is not known"


class StreamAccess:
    """One per session."""

    def __init__(self, say: Callable[[str], None], rank_of: Callable[[gdb.Inferior], Optional[int]]) -> None:
        self._say, self._rank_of = say, rank_of

    def evaluate(self, expression: str) -> StreamInfo:
        """The stream or event that an expression of the program's language is. Raises `GdbextError`."""
        try:
            with compat.settings({"may-call-functions": "off"}):  # nor by the expression
                value = gdb.parse_and_eval(expression)
            node = ValueNode(value, TargetMemory().read)
            found = _described(node)
        except Null as empty:
            raise GdbextError(f"{expression}: there is not a stream in it: {empty}") from None
        except Unreadable as problem:
            raise GdbextError(f"{expression}: {problem}", _HINT) from None
        except (gdb.error, RuntimeError) as problem:
            raise GdbextError(f"{expression}: {one_line(problem)}") from None
        decoded = with_pool_handle(found.decoded, found.device)
        info = StreamInfo(
            *(expression, found.type_name, decoded.kind, decoded.handle, found.device),
            *(decoded.pool_index, decoded.priority),
            notes=decoded.notes,
        )
        return self._asked(info, found.event) if memory.calls_allowed() else info

    def _asked(self, info: StreamInfo, event: bool) -> StreamInfo:
        if isinstance(info.handle, Missing):
            return replace(info, state=Missing(f"it cannot be asked for: {info.handle.reason}"))
        if info.kind == "unverified":
            return replace(info, state=MAYBE_NO_STREAM)
        asked: Maybe[Asked]
        known = sorted(without_calls(gdb.selected_inferior(), None).streams, key=is_doubtful) if event else []
        with stream_calls(self._caller()) as calls:
            if isinstance(calls, Missing):
                asked = calls
            elif event:
                asked = calls.event(info.handle, [one.handle for one in known if not isinstance(one.handle, Missing)])
            else:
                asked = calls.stream(info.handle, selected_thread())
        if isinstance(asked, Missing):
            return replace(info, state=asked)
        device = info.device if isinstance(asked.device, Missing) else asked.device
        return replace(info, state=asked.state, device=device, asked=asked)

    def table(self, ranks: Sequence[AttachedRank]) -> StreamTable:
        """All streams of these ranks."""
        return StreamTable(tuple(with_kernels(self._of_rank(rank)) for rank in ranks))

    def _of_rank(self, rank: AttachedRank) -> RankStreams:
        inferior = next((one for one in gdb.inferiors() if one.num == rank.number), None)
        if inferior is None:
            raise GdbextError(f"there is no inferior {rank.number}")
        known = without_calls(inferior, rank.process.rank)
        if rank.state == RankState.RUNNING or not memory.calls_allowed() or not (known.streams or known.events):
            return known
        with compat.inferior_selected(inferior):
            return with_states(known, self._caller())

    def _caller(self) -> Caller:
        return Caller(self._say, self._rank_of(gdb.selected_inferior()))


def _described(node: ValueNode) -> Found:
    found = found_in(node)
    if found is not None:
        return found
    if node.is_scalar or str(node.type) in ("void *", "void * const"):
        if node.type.code not in _NUMBERS:
            raise Unreadable(f"{node.type_name[:NAME_CAP]} is not a stream")
        decoded = of_handle(node.integer())
        if decoded.kind == "user":
            decoded = Decoded("unverified", decoded.handle, notes=(_BARE,))
        return Found(False, decoded, NOT_IN_HANDLE, node.type_name[:NAME_CAP])
    return _held(node)


def _held(node: Node) -> Found:
    """The stream in an object, or in what a pointer or a smart pointer leads to."""
    for _ in range(_MOST_PEELS):
        found = found_in(node) or in_holder(node, HOLDERS)
        if found is not None:
            return found
        inner = unwrap_layer(node)
        if inner is None:
            break
        node = inner
    raise Unreadable(f"{node.type_name[:NAME_CAP]} is not a stream, and has no member that is known to hold one")
