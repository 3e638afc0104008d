"""The options of `gdbext profile`, `gdbext run` and `gdbext dump`."""

from __future__ import annotations

import argparse
from typing import Callable

from gdbext.commands.parsing import add_output

Group = Callable[[argparse.ArgumentParser], None]


def add_profile(parser: argparse.ArgumentParser, selection: Group) -> None:
    """The four commands below `gdbext profile`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def add(name: str, summary: str) -> argparse.ArgumentParser:
        one = actions.add_parser(name, help=summary, description=summary, epilog=parser.epilog)
        one.add_argument("inputs", nargs="*", type=int, metavar="PID", help="any member stands for its job")
        selection(one)
        _server(one)
        add_output(one)
        one.add_argument("--quiet", "-q", action="store_true", help="no progress on stderr")
        return one

    add("status", "Say which server a job's profiler is started by, and whether it is switched on.")
    start = add("start", "Start the profiler of a job and leave it running.")
    _what(start)
    stop = add("stop", "Stop the profiler of a job.")
    whole = add("run", "Profile a job: start, wait or send requests, stop, wait for every rank's trace, report.")
    _what(whole)
    whole.add_argument("--seconds", type=_positive, default=5.0, metavar="S", help="how long at most (5)")
    whole.add_argument("--request", metavar="FILE", help="send the JSON requests in FILE while the profiler runs")
    for one in (stop, whole):
        one.add_argument(
            "--flush", type=_positive, default=900.0, metavar="S", help="seconds that writing the traces may take (900)"
        )


def _server(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the server (found by the job's processes)")
    group.add_argument("--port", type=int, metavar="N", help="its port, where there are several")
    group.add_argument("--url", metavar="URL", help="a server whose process cannot be seen from here")
    group.add_argument("--yes", action="store_true", help="also on another host")
    group.add_argument("--token-file", metavar="FILE", help="the token that it asks for (or $GDBEXT_TOKEN)")
    group.add_argument("--dir", metavar="DIR", help="folder of the traces, as the server sees it")


def _what(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is recorded (each engine knows some of these; others are refused)")
    group.add_argument("--steps", type=_count, metavar="N", help="stop after so many steps of the engine")
    group.add_argument("--start-step", type=_count, metavar="N", help="begin with this step, or after so many")
    group.add_argument("--activities", metavar="A,B", help="CPU,GPU,MEM,RPD,CUDA_PROFILER")
    group.add_argument("--by-stage", action="store_true", help="a trace of prefill and one of decode")
    group.add_argument("--stages", metavar="A,B", help="only these stages: prefill,decode")
    group.add_argument("--stack", dest="stack", action="store_true", default=None, help="with Python stacks")
    group.add_argument("--no-stack", dest="stack", action="store_false", help="without: much smaller traces")
    group.add_argument("--shapes", action="store_true", help="with the shapes of tensors")
    group.add_argument("--engine-merge", action="store_true", help="let the engine merge its ranks as well")
    group.add_argument("--prefix", metavar="NAME", help="begin the names of the traces with NAME")


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="set the variables that make engines check every layer")
    parser.add_argument("--profile", action="store_true", help="profile from the start on, or make it possible")
    parser.add_argument("--dump", choices=("graphs", "tensors"), help="write compiled graphs, or tensors of each layer")
    parser.add_argument("--engine", metavar="NAME", help="only the settings of this engine (default: by the command)")
    parser.add_argument("--dir", metavar="DIR", help="folder for the files (default: a new one here)")
    parser.add_argument("--steps", metavar="A-B", help="profile these steps (100-150)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a key of MindSpore's dump file"
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="do not say what is set")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the program and its arguments")


def add_dump(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    summary = "Say what was written, by rank and step, and what ranks do not have in common."
    one = actions.add_parser("ls", help=summary, description=summary, epilog=parser.epilog)
    one.add_argument("folder", metavar="DIR", help="the folder of the dump")
    one.add_argument("--rank", type=int, metavar="N", help="only this rank's, each file by its name")
    one.add_argument("--step", type=int, metavar="N", help="only of this step")
    one.add_argument("--name", metavar="TEXT", help="only tensors with this in their name")
    add_output(one)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e6:
        raise ValueError(text)
    return value


def _count(text: str) -> int:
    value = int(text)
    if not 0 < value < 10**9:
        raise ValueError(text)
    return value


_positive.__name__ = "number of seconds"
_count.__name__ = "number"
