"""The command line of `gdbext`: its commands and their options. Loads nothing that a command needs to run."""

from __future__ import annotations

import argparse
import difflib
import re
from typing import NoReturn

from gdbext import __version__
from gdbext.commands.output import EXPLAIN_VERDICT
from gdbext.commands.parsing import add_output
from gdbext.knowledge.causes.slow import SPINNING_AFTER
from gdbext.model.errors import UsageError

SUMMARY = "Say which rank of a multi-GPU job hangs, why, and what to do. Start with: gdbext diagnose"

EPILOG = """exit status: 0 nothing hangs, 1 a finding (something hangs, failed or is late), 2 wrong usage,
3 it cannot be told (something could not be read, or the evidence does not decide), 4 nothing could be read,
130 interrupted. The answer goes to stdout, progress to stderr."""


_NO_COMMAND = re.compile(r"argument COMMAND: invalid choice: (['\"])(?P<word>.*?)\1 ")


class _Parser(argparse.ArgumentParser):
    """argparse that says what is wrong in one line, as every error is said."""

    def error(self, message: str) -> NoReturn:
        """Raises `UsageError`."""
        no_command = _NO_COMMAND.match(message)
        if no_command is None:
            name = self.prog.partition(" ")[2]
            raise UsageError(f"{name}: {message}" if name else message, f"{self.prog} --help shows how")
        word = no_command.group("word")
        near = difflib.get_close_matches(word, re.findall(r"[a-z]+", message.rpartition("(choose from")[2]), 1)
        raise UsageError(
            f"{word} is no command", f"did you mean gdbext {near[0]}" if near else "gdbext --help lists them"
        )


def _selection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which processes (default: every rank of the one job on this host)")
    group.add_argument("--name", metavar="REGEX", help="processes whose title matches")
    group.add_argument("--pgid", type=int, metavar="N", help="the process group N")
    group.add_argument("--parent", type=int, metavar="PID", help="the whole tree below PID")
    group.add_argument("--engine", metavar="NAME", help="jobs of this engine: rtp-llm, vllm, sglang, ...")
    parser.add_argument("--asked-as", help=argparse.SUPPRESS)  # the command of gdb that this is the work of


def _output(parser: argparse.ArgumentParser) -> None:
    add_output(parser)
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress on stderr")


def _looking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--save", metavar="FILE", help="write the snapshot: `gdbext diagnose FILE` judges it again")
    parser.add_argument("--samples", type=int, default=1, metavar="N", help="look N times: tells slow from stuck")
    parser.add_argument("--interval", type=float, default=2.0, metavar="S", help="seconds between two looks (2)")
    _spinning(parser)
    parser.add_argument("--once", action="store_true", help="no second copy that tells waiting from passing through")
    parser.add_argument("--no-witnesses", action="store_true", help="do not ask NCCL RAS, NVML, ... before the stop")
    parser.add_argument("--no-stop", action="store_true", help="stop nobody: only threads that sleep are read")
    parser.add_argument("--together", action="store_true", help="one moment for all ranks, not one for each")
    parser.add_argument("--max-pause", type=float, default=2.0, metavar="S", help="never hold a rank longer (2)")
    parser.add_argument("--frames", type=int, default=256, metavar="N", help="frames read of each thread (256)")
    parser.add_argument("--deadline", type=float, default=120.0, metavar="S", help="seconds for symbols and gdb (120)")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="gdbs side by side (by cores and memory)")
    parser.add_argument("--gdb", metavar="PATH", help="the gdb to use (default: $GDBEXT_GDB, then gdb)")


def _spinning(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--spinning-after",
        type=float,
        default=SPINNING_AFTER,
        metavar="S",
        help=f"name a rank that runs at one place for so many seconds while all others wait ({SPINNING_AFTER:g})",
    )


def _core_files(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("core files (their program and libraries are found by build-id)")
    group.add_argument("--sysroot", metavar="DIR", help="a folder with the files of the machine they come from")
    group.add_argument("--exe", metavar="FILE", help="their program")


def parser() -> argparse.ArgumentParser:
    """The whole command line. Kept apart from `main` for the reference page and its test."""
    top = _Parser(prog="gdbext", description=SUMMARY, epilog=EPILOG)
    top.set_defaults(quiet=False)
    top.add_argument("--version", action="version", version=f"gdbext {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")

    def add(name: str, summary: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=summary, description=summary, epilog=EPILOG)

    one = add("diagnose", "Say who waits for what, who is to blame, why, and what to do.")
    one.add_argument(
        "inputs",
        nargs="*",
        metavar="PID|FILE",
        help="pids, core files, pasted stacks, saved snapshots; - is standard input",
    )
    one.add_argument("--bundle", metavar="DIR", help="write all that was read to a new folder, for a maintainer")
    one.add_argument(EXPLAIN_VERDICT.name, action="store_true", help=EXPLAIN_VERDICT.help)
    two = add("stacks", "Print the merged stacks of all ranks.")
    two.add_argument(
        "inputs",
        nargs="*",
        metavar="PID|FILE",
        help="pids, core files, pasted stacks, saved snapshots; - is standard input",
    )
    waits = add("locks", "Show which lock each thread waits for, who holds it, and circles.")
    waits.add_argument("inputs", nargs="*", metavar="PID|FILE", help="pids, core files, or a saved snapshot")
    for command in (one, two, waits):
        _selection(command)
        _output(command)
        _looking(command)
        _core_files(command)
    three = add("ranks", "List the jobs on this host, their ranks, and what hinders an attach.")
    three.add_argument("inputs", nargs="*", type=int, metavar="PID", help="any member stands for its job")
    _selection(three)
    _output(three)
    four = add("attach", "Start gdb with every rank attached.")
    four.add_argument("inputs", nargs="*", type=int, metavar="PID", help="any member stands for its job")
    four.add_argument("--gdb", metavar="PATH", help="the gdb to use (default: $GDBEXT_GDB, then gdb)")
    _selection(four)
    health = add("doctor", "Say what hinders a look at the ranks, and how to remove it.")
    health.add_argument("inputs", nargs="*", type=int, metavar="PID", help="any member stands for its job")
    health.add_argument("--gdb", metavar="PATH", help="the gdb to use (default: $GDBEXT_GDB, then gdb)")
    _selection(health)
    add_output(health)
    five = add("explain", "Say what a label of the answer means, how it is recognised and what to do.")
    five.add_argument("label", nargs="?", metavar="LABEL", help="a cause, a wait or a state; none: all of them")
    add_output(five)
    six = add("comms", "List the NCCL communicators of all ranks and who is behind in what; no rank is stopped.")
    six.add_argument("inputs", nargs="*", metavar="PID|FILE", help="pids, or a saved snapshot")
    six.add_argument("--scan", action="store_true", help="search all private memory of the ranks (8 GiB, 10 s each)")
    six.add_argument("--save", metavar="FILE", help="write what was read: `gdbext comms FILE` shows it again")
    _selection(six)
    _output(six)
    six = add("pdb", "Open the pdb prompt of the rank that a breakpoint_() of gdbext.rankpdb stopped.")
    six.add_argument("pid", nargs="?", type=int, metavar="PID", help="a rank of another user's job, or in a container")
    six.add_argument("--pid", type=int, metavar="PID", dest="also_pid", help="the same; Python 3.14 stops where it is")
    six.add_argument("--rank", type=int, metavar="N", help="debug this rank, now and at all breakpoints to come")
    six.add_argument("--job", metavar="NAME", help="when there are several; --list names them")
    six.add_argument("--list", action="store_true", help="which rank is where")
    six.add_argument("--release", action="store_true", help="let the ranks go on that wait for the one at its prompt")
    six.add_argument("--inject", metavar="FILE:LINE", help="put a breakpoint there into the running ranks, once")
    six.add_argument("--deadline", type=float, default=30.0, metavar="S", help="seconds that it may take (30)")
    six.add_argument("--gdb", metavar="PATH", help="the gdb to use (default: $GDBEXT_GDB, then gdb)")
    _output(six)
    code = add("error", "Explain an error number or name of CUDA, cuBLAS or NCCL.")
    code.add_argument("error", nargs="+", metavar="ERROR", help="a number, a name, or a message with one in it")
    add_output(code)
    watch_it = add("watch", "Poll a job without stopping it, and keep a bundle when it stands still.")
    watch_it.add_argument("inputs", nargs="*", type=int, metavar="PID", help="any member stands for its job")
    watch_it.add_argument("--still", type=float, default=60.0, metavar="T", help="seconds of standstill (60)")
    watch_it.add_argument("--every", type=float, default=5.0, metavar="S", help="seconds between two polls (5)")
    watch_it.add_argument("--keep", type=int, default=5, metavar="N", help="how many bundles are kept, the newest (5)")
    watch_it.add_argument("--into", default="gdbext-watch", metavar="DIR", help="folder of the bundles (gdbext-watch)")
    _spinning(watch_it)
    watch_it.add_argument("--max-pause", type=float, default=2.0, metavar="S", help="never hold a rank longer (2)")
    watch_it.add_argument("--deadline", type=float, default=120.0, metavar="S", help="for symbols and gdb (120)")
    watch_it.add_argument("--gdb", metavar="PATH", help="the gdb to use (default: $GDBEXT_GDB, then gdb)")
    watch_it.add_argument("--json", action="store_true", help="one JSON document a line")
    watch_it.add_argument("--output", metavar="FILE", help="write what is seen to FILE, a new one, not to stdout")
    watch_it.add_argument("--force", action="store_true", help="let --output replace a file")
    watch_it.add_argument("--quiet", "-q", action="store_true", help="no progress on stderr")
    _selection(watch_it)
    seven = add("launch", "Start a job with a log of each rank, and with the prompt of one rank in this terminal.")
    seven.add_argument("--rank", type=int, metavar="N", help="debug this rank here (sets RANK_TO_DEBUG)")
    seven.add_argument("--logs", metavar="DIR", help="folder for the logs (default: a new one here)")
    seven.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="torchrun, msrun, mpirun, ...")
    eight = add("vscode", "Write a launch.json that attaches VS Code to each rank of the running job.")
    eight.add_argument("inputs", nargs="*", type=int, metavar="PID", help="any member stands for its job")
    eight.add_argument("--gdb", metavar="PATH", help="the gdb to use (default: $GDBEXT_GDB, then gdb)")
    eight.add_argument("--into", default=".vscode", metavar="DIR", help="folder of the launch.json (.vscode)")
    eight.add_argument("--print", action="store_true", help="print it instead")
    _selection(eight)
    start = add("run", "Start a program, with the engines' own debug checks switched on.")
    start.add_argument("--check", action="store_true", help="set the variables that make engines check every layer")
    start.add_argument("--engine", metavar="NAME", help="only those of this engine")
    start.add_argument("--quiet", "-q", action="store_true", help="do not say what is set")
    start.add_argument("program", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the program and its arguments")
    add("gdbinit", "Print the path of the file to source in gdb.")
    return top
