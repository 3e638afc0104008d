"""llm-stream: what a CUDA stream or event of the program is, and which ones there are."""

from __future__ import annotations

from argparse import Namespace
from typing import Protocol, Sequence, cast

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.selection import pick_all
from gdbext.commands.session import Session
from gdbext.model.attached import AttachedRank
from gdbext.model.errors import UsageError
from gdbext.model.stream import StreamInfo, StreamTable


class StreamPort(Protocol):
    """Streams of the selected frame, and of whole ranks. `debugger/streams/stream_access.py` is the real one."""

    def evaluate(self, expression: str) -> StreamInfo:
        """What an expression of the program's language is. Raises GdbextError."""

    def table(self, ranks: Sequence[AttachedRank]) -> StreamTable:
        """Every stream that the memory of these ranks leads to."""


class StreamSession(Session, Protocol):
    """The session of the stream commands."""

    streams: StreamPort


def choose(_: Session, __: Namespace) -> object:
    raise UsageError("what of the stream?", "llm-stream p EXPR, llm-stream list")


def print_stream(session: Session, args: Namespace) -> StreamInfo:
    if not args.expression:
        raise UsageError("which stream?", "give an expression, like llm-stream p stream_")
    return cast(StreamSession, session).streams.evaluate(args.expression)


def list_streams(session: Session, args: Namespace) -> StreamTable:
    return cast(StreamSession, session).streams.table(pick_all(session.ranks(), args.ranks or "all"))


_STATES = (
    "Nothing is called in the program, so whether a stream is busy stays unknown, unless `set llm allow-calls on`: "
    "then the CUDA driver is asked on a thread that may be disturbed, each call within 2 s; a process that has not "
    "initialised CUDA is not asked, nor is a stream that is being captured. Core files too, without states."
)

COMMANDS = (
    Command("llm-stream", "Show CUDA streams and events of the program", choose, "data", prefix=True),
    Command(
        "llm-stream p",
        "Say what a CUDA stream or event is: handle, kind, torch's pool, device, state",
        print_stream,
        "data",
        tail=Argument("expression", "a stream, an object that holds one, or an address", "EXPR", nargs="?"),
        options_behind=True,
        description=_STATES,
        examples=("llm-stream p stream", "llm-stream p this->stream_", "llm-stream p 0x2"),
    ),
    Command(
        "llm-stream list",
        "List the CUDA streams of ranks, what holds them, and who waits for which",
        list_streams,
        "status",
        (Argument("--ranks", "like 0-3,7 or all (default: all)", "RANKS", completes="ranks"),),
        description=(
            "Streams and events are found in the variables of all frames with debug information and in the members of "
            "their objects, in the arguments of frames that take one, and in torch's pools. Of a thread that waits for "
            "the device its stream is read from the argument of the call, or from the code of the call. In cuda-gdb "
            "with the kernels on the device. " + _STATES
        ),
        examples=("llm-stream list", "llm-stream list --ranks 0-3 --json"),
    ),
)
