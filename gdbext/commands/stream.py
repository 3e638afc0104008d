"""llm-stream: what a CUDA stream or event of the program is."""

from __future__ import annotations

from argparse import Namespace
from typing import Protocol, cast

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.session import Session
from gdbext.model.errors import UsageError
from gdbext.model.stream import StreamInfo


class StreamPort(Protocol):
    """Streams of the selected frame. `debugger/streams.py` is the real one."""

    def evaluate(self, expression: str) -> StreamInfo:
        """What an expression of the program's language is. Raises GdbextError."""


class StreamSession(Session, Protocol):
    """The session of the stream commands."""

    streams: StreamPort


def choose(_: Session, __: Namespace) -> object:
    raise UsageError("what of the stream?", "llm-stream p EXPR")


def print_stream(session: Session, args: Namespace) -> StreamInfo:
    if not args.expression:
        raise UsageError("which stream?", "give an expression, like llm-stream p stream_")
    return cast(StreamSession, session).streams.evaluate(args.expression)


COMMANDS = (
    Command("llm-stream", "Show CUDA streams and events of the program", choose, "data", prefix=True),
    Command(
        "llm-stream p",
        "Say what a CUDA stream or event is: handle, kind, torch's pool, device",
        print_stream,
        "data",
        tail=Argument("expression", "a stream, an object that holds one, or an address", "EXPR", nargs="?"),
        description="Nothing is called in the program, so whether the stream is busy stays unknown. Cores too.",
        examples=("llm-stream p stream", "llm-stream p this->stream_", "llm-stream p 0x2"),
    ),
)
