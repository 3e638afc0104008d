"""Whether everything is there that a look needs."""

from gdbext.commands.declaration import GDB, Argument, Command
from gdbext.commands.declared.shared_arguments import HOSTS, NEEDS_GDB, SELECTORS

_BUILD = "a build, in place of this host"

COMMANDS = (
    Command(
        "Check for problems that prevent inspection of ranks, and say how to fix them",
        gdb="llm-doctor",
        body="gdbext.commands.doctor:doctor",
        gdbext="doctor",
        statuses="0 nothing prevents an inspection, 1 something prevents one (with --build: something is missing), "
        "2 wrong usage, 4 nothing could be read, 130 interrupted",
        run="gdbext.cli.doctor",
        arguments=(
            *SELECTORS,
            Argument(
                "--build",
                "what gdb can show of this program, library or process, and how to build for more",
                "FILE|PID",
                completes="file",
                group=_BUILD,
            ),
            Argument(
                "--how",
                "the build options of ENGINE that give gdb symbols, lines and locals",
                "ENGINE",
                completes="built",
                group=_BUILD,
            ),
            Argument("--gdb", "check only this gdb", flag=True, where=GDB),
            NEEDS_GDB,
            *HOSTS,
        ),
        description=(
            "Checks this gdb, its Python and settings, the jobs on this host, and the permission to attach to them. "
            "With --build: the names, lines, frame pointers, kernel lines and debug checks that a build has."
        ),
        examples=("llm-doctor", "llm-doctor --build 4711", "llm-doctor --how fastertransformer"),
        shell_examples=("gdbext doctor --build libth_transformer.so", "gdbext doctor --how fastertransformer"),
    ),
)
