"""llm-stream: what a CUDA stream or event of the program is, and which ones there are."""

from __future__ import annotations

from argparse import Namespace
from typing import Protocol, Sequence, cast

from gdbext.commands.chosen_ranks import pick_all
from gdbext.commands.session_port import Session
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.errors import UsageError
from gdbext.model.stream import StreamInfo, StreamTable


class StreamPort(Protocol):
    """Streams of the selected frame, and of whole ranks. `inside_gdb/streams/stream_access.py` is the real one."""

    def evaluate(self, expression: str) -> StreamInfo:
        """What an expression of the program's language is. Raises GdbextError."""

    def table(self, ranks: Sequence[AttachedRank]) -> StreamTable:
        """Every stream that the memory of these ranks leads to."""


class StreamSession(Session, Protocol):
    """The session of the stream commands."""

    streams: StreamPort


def print_stream(session: Session, args: Namespace) -> StreamInfo:
    if not args.expression:
        raise UsageError("llm-stream p: missing expression", "for example: llm-stream p stream_")
    return cast(StreamSession, session).streams.evaluate(args.expression)


def list_streams(session: Session, args: Namespace) -> StreamTable:
    return cast(StreamSession, session).streams.table(pick_all(session.ranks(), args.ranks or "all"))
