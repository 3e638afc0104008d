"""CUDA streams and events."""

from gdbext.commands.declaration import Argument, Command

_STATES = (
    "No function is called in the program, so it stays unknown whether a stream is busy. With `set llm "
    "allow-calls on` gdbext asks the CUDA driver, on a thread that is safe to use, at most 2 s for each call; "
    "not in a process that has not initialised CUDA, nor for a stream that is being captured. Works on core "
    "files too, without states."
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
        "Describe a CUDA stream or event: handle, kind, torch's pool, device, state",
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
        arguments=(Argument("--ranks", "ranks such as 0-3,7 (default: all)", "RANKS", completes="ranks"),),
        description=(
            (
                "Streams and events are found in the variables of all frames with debug information and in the "
                "members of their objects, in the arguments of frames that take one, and in torch's pools. The "
                "stream that a thread waits for is read from the argument of the call, or from the code of the call. "
                "cuda-gdb adds the kernels on the device. "
            )
            + _STATES
        ),
        examples=("llm-stream list", "llm-stream list --ranks 0-3 --json"),
    ),
)
