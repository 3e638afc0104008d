"""The ranks of a job: listed, attached, selected, released."""

from __future__ import annotations

from gdbext.commands.argument_types import rank_number
from gdbext.commands.declaration import GDB, Argument, Command
from gdbext.commands.declared.shared_arguments import CORE_FILES, QUIET, SELECTORS, WHICH_GDB

COMMANDS = (
    Command(
        "List the jobs on this host, their ranks, and what hinders an attach",
        gdbext="ranks",
        run="gdbext.cli.ranks",
        arguments=(*SELECTORS, QUIET),
    ),
    Command(
        "Start gdb with every rank attached",
        gdbext="attach",
        run="gdbext.cli.attach",
        arguments=(*SELECTORS, WHICH_GDB),
        answers=False,
    ),
    Command(
        "Attach to all ranks of a job, each as an inferior of this gdb",
        gdb="llm-attach-all",
        body="gdbext.commands.ranks:attach_all",
        category="running",
        arguments=(
            *SELECTORS,
            Argument("--all", "take every job found, when there are several", flag=True),
            Argument("--core", "open core files instead, each as an inferior", "FILE", nargs="+", completes="file"),
            *(one.only(GDB) for one in CORE_FILES),
        ),
        description=(
            "Without a selector: the one job that runs on this host. Symbols are read before anything is stopped. "
            "The ranks stay stopped until llm-detach-all or quit; `continue` then resumes all of them together. "
            "A rank that cannot be attached is listed with the reason, the others go on. "
            "The program and libraries of core files are found by build-id, never taken from another build."
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
        description="Selectors matter only while nothing is attached.",
        repeats=True,
    ),
    Command(
        "Select the rank that following commands are about",
        gdb="llm-rank",
        body="gdbext.commands.ranks:switch",
        category="running",
        arguments=(
            Argument("rank", "rank number, or the pid of a rank", "N", rank_number, nargs="?", completes="rank"),
        ),
        description="Without N: shows the selected rank. `$_llm_rank()` is its number in expressions, -1 when unknown.",
        examples=("llm-rank 3", "llm-rank apply 0-3,7 bt 5"),
        prefix=True,
        repeats=True,
    ),
    Command(
        "Run a gdb command on several ranks",
        gdb="llm-rank apply",
        body="gdbext.commands.ranks:apply",
        category="running",
        arguments=(Argument("ranks", "like 0-3,7 or all", "RANKS", completes="ranks"),),
        tail=Argument("command", "the gdb command, up to the end of the line", "COMMAND", completes="command"),
        description="The selection comes back. A rank on which it fails does not stop the others.",
        examples=("llm-rank apply all info threads", "llm-rank apply 0,2 thread apply 1 bt 3"),
    ),
    Command(
        "Let all attached ranks go; they run on",
        gdb="llm-detach-all",
        body="gdbext.commands.ranks:detach_all",
        category="running",
        description="A process that was stopped (state T) before it was attached stays stopped.",
    ),
)
