"""What the number of an error means."""

from gdbext.commands.declaration import SHELL, Argument, Command

_ERROR = Argument(
    "error", "an error number, a name, or a message that contains one", "ERROR", nargs="?", completes="error"
)

COMMANDS = (
    Command(
        "Explain an error number or name of CUDA, cuBLAS or NCCL",
        gdb="llm-error",
        body="gdbext.commands.error:answer",
        gdbext="error",
        statuses="0 done, 2 wrong usage, 130 interrupted",
        run="gdbext.cli.error",
        arguments=(_ERROR._replace(nargs="+", where=SHELL),),
        tail=_ERROR,
        options_behind=True,
        description="A number has another meaning in each library; all are shown.",
        examples=("llm-error 700", "llm-error cudaErrorIllegalAddress", "llm-error CUBLAS_STATUS_EXECUTION_FAILED"),
    ),
)
