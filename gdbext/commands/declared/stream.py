"""CUDA streams and events."""

from __future__ import annotations

from gdbext.commands.declaration import Argument, Command

_STATES = (
    "Nothing is called in the program, so whether a stream is busy stays unknown, unless `set llm allow-calls on`: "
    "then the CUDA driver is asked on a thread that may be disturbed, each call within 2 s; a process that has not "
    "initialised CUDA is not asked, nor is a stream that is being captured. Core files too, without states."
)

COMMANDS = (
    Command(
        "Show CUDA streams and events of the program",
        gdb="llm-stream",
        body="gdbext.commands.stream:choose",
        category="data",
        prefix=True,
    ),
    Command(
        "Say what a CUDA stream or event is: handle, kind, torch's pool, device, state",
        gdb="llm-stream p",
        body="gdbext.commands.stream:print_stream",
        category="data",
        tail=Argument(
            "expression", "a stream, an object that holds one, or an address", "EXPR", nargs="?", completes="expression"
        ),
        options_behind=True,
        description=_STATES,
        examples=("llm-stream p stream", "llm-stream p this->stream_", "llm-stream p 0x2"),
    ),
    Command(
        "List the CUDA streams of ranks, what holds them, and who waits for which",
        gdb="llm-stream list",
        body="gdbext.commands.stream:list_streams",
        arguments=(Argument("--ranks", "like 0-3,7 or all (default: all)", "RANKS", completes="ranks"),),
        description=(
            "Streams and events are found in the variables of all frames with debug information and in the members of "
            "their objects, in the arguments of frames that take one, and in torch's pools. Of a thread that waits for "
            "the device its stream is read from the argument of the call, or from the code of the call. In cuda-gdb "
            "with the kernels on the device. " + _STATES
        ),
        examples=("llm-stream list", "llm-stream list --ranks 0-3 --json"),
    ),
)
