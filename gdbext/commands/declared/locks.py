"""Who holds the lock that a thread waits for."""

from gdbext.commands.declaration import GDB, SHELL, Argument, Command
from gdbext.commands.declared.diagnose import HOW, LOOK_ARGUMENTS, NO_STOP, SAVE
from gdbext.commands.declared.shared_arguments import DETAIL, PAGE, QUIET, SELECTING

COMMANDS = (
    Command(
        "Show which lock each thread waits for, who holds it, and deadlocks",
        gdb="llm-locks",
        body="gdbext.commands.locks:locks",
        gdbext="locks",
        statuses="0 no deadlock, 1 a deadlock, or a lock that no thread can release, 3 no deadlock seen, "
        "but a rank was not read, 2 wrong usage, 4 nothing could be read, 130 interrupted",
        run="gdbext.cli.diagnose",
        arguments=(
            Argument(
                "inputs", "pids, core files, or a saved snapshot", "PID|FILE", nargs="*", completes="file", where=SHELL
            ),
            Argument(
                "ranks", "ranks such as 0-3,7 (default: all)", "RANKS", nargs="?", completes="ranks", where=GDB
            ),
            *(*SELECTING, NO_STOP, SAVE, *DETAIL, *PAGE, QUIET, *LOOK_ARGUMENTS),
        ),
        description=(
            "For every thread in a futex wait: the kind of lock, its address and its owner (mutexes, reader-writer "
            "locks, joins, Python's GIL, the loader's and the driver's lock), or why the owner is unknown: frames and "
            "memory must agree. " + HOW
        ),
        examples=("llm-locks", "llm-locks 0-3", "llm-locks --json"),
    ),
)  # fmt: skip
