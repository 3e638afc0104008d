"""The ranks of a job: listed, attached, selected, released."""

from gdbext.commands.argument_types import rank_number
from gdbext.commands.declaration import GDB, Argument, Command
from gdbext.commands.declared.shared_arguments import CORE_FILES, HOSTS, NEEDS_GDB, QUIET, SELECTORS

COMMANDS = (
    Command(
        "List the jobs on this host, their ranks, and what prevents an attach",
        gdbext="ranks",
        statuses="0 there are ranks, 3 a host could not be read, 4 there are none, 2 wrong usage, 130 interrupted",
        run="gdbext.cli.ranks",
        arguments=(*SELECTORS, *HOSTS, QUIET),
    ),
    Command(
        "Start gdb with every rank attached",
        gdbext="attach",
        statuses="that of gdb, 2 wrong usage",
        run="gdbext.cli.attach",
        arguments=(*SELECTORS, NEEDS_GDB),
        answers=False,
    ),
    Command(
        "Attach to all ranks of a job, each as an inferior of this gdb",
        gdb="llm-attach-all",
        body="gdbext.commands.ranks:attach_all",
        category="running",
        arguments=(
            *SELECTORS,
            Argument("--all", "take all jobs, if there are several", flag=True),
            Argument("--core", "load core files instead, each as an inferior", "FILE", nargs="+", completes="file"),
            *(one.only(GDB) for one in CORE_FILES),
        ),
        description=(
            "By default it takes the one job on this host. Symbols are read before any rank is stopped. The "
            "ranks stay stopped until llm-detach-all or quit; `continue` resumes all of them together. If a rank "
            "cannot be attached, gdbext lists it with the reason and attaches the others. For core files, gdbext "
            "finds program and libraries by build-id, and never uses those of another build."
        ),
        examples=(
            "llm-attach-all",
            "llm-attach-all 4711",
            "llm-attach-all --name 'VLLM::Worker'",
            "llm-attach-all --core core.*",
        ),
        holds=True,
    ),
    Command(
        "List the attached ranks, or those that could be attached",
        gdb="llm-ranks",
        body="gdbext.commands.ranks:list_ranks",
        arguments=SELECTORS,
        description="PID, --name, --pgid, --parent and --engine apply only while nothing is attached.",
        repeats=True,
    ),
    Command(
        "Select the rank that later commands refer to",
        gdb="llm-rank",
        body="gdbext.commands.ranks:switch",
        category="running",
        arguments=(
            Argument("rank", "rank number, or the pid of a rank", "N", rank_number, nargs="?", completes="rank"),
        ),
        description="Without N: shows the selected rank. In expressions, `$_llm_rank()` is its number, or -1 if that "
        "is unknown.",
        examples=("llm-rank 3", "llm-rank apply 0-3,7 bt 5"),
        prefix=True,
        repeats=True,
    ),
    Command(
        "Run a gdb command on several ranks",
        gdb="llm-rank apply",
        body="gdbext.commands.ranks:apply",
        category="running",
        arguments=(Argument("ranks", "ranks such as 0-3,7 or all", "RANKS", completes="ranks"),),
        tail=Argument("command", "the gdb command, up to the end of the line", "COMMAND", completes="command"),
        description="Restores the selection afterwards. If the command fails on one rank, it still runs on the others.",
        examples=("llm-rank apply all info threads", "llm-rank apply 0,2 thread apply 1 bt 3"),
    ),
    Command(
        "Detach from all ranks; they keep running",
        gdb="llm-detach-all",
        body="gdbext.commands.ranks:detach_all",
        category="running",
        description="A process that was stopped (state T) before it was attached stays stopped.",
    ),
)
