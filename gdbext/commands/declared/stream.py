"""CUDA streams and events."""

from gdbext.commands.declaration import Argument, Command

_STATES = (
    "gdbext calls no function in the program, so it cannot tell whether a stream is busy. With `set llm allow-calls "
    "on` it asks the CUDA driver, on a thread that is safe to use, for at most 2 s per call. It makes no call in a "
    "process that has not initialised CUDA, nor for a stream that is being captured. Core files work too, but do not "
    "show whether a stream is busy."
)

COMMANDS = (
    Command(
        "Show CUDA streams and events of the program",
        gdb="llm-stream",
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
        "List the CUDA streams of ranks, their holders, and the threads that wait",
        gdb="llm-stream list",
        body="gdbext.commands.stream:list_streams",
        arguments=(Argument("--ranks", "ranks such as 0-3,7 (default: all)", "RANKS", completes="ranks"),),
        description=(
            (
                "gdbext finds streams and events in the variables of all frames with debug information, in the "
                "members of these objects, in the arguments of calls that take one, and in torch's pools. It reads "
                "the stream that a thread waits for from the argument of the call, or from the code of the call. "
                "cuda-gdb adds the kernels on the device. "
            )
            + _STATES
        ),
        examples=("llm-stream list", "llm-stream list --ranks 0-3 --json"),
    ),
)
