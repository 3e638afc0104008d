"""Which processes the options of a command ask for."""

from __future__ import annotations

import argparse
from typing import List, Sequence, Tuple

from gdbext.capture.symbols.environ import read_environ
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import choose_job, find_jobs
from gdbext.discovery.ranks.selectors import Selector
from gdbext.model.job import Job
from gdbext.model.text.digits import is_whole


def selector_of(options: argparse.Namespace, pids: Sequence[int] = ()) -> Selector:
    """The selection that the options ask for."""
    return Selector(
        pids=tuple(pids), name=options.name, pgid=options.pgid, parent=options.parent, engine=options.engine
    )


def chosen(options: argparse.Namespace) -> bool:
    """Whether processes are chosen by an option."""
    return any(getattr(options, name) is not None for name in ("name", "pgid", "parent", "engine"))


def chosen_job(proc: ProcFS, options: argparse.Namespace, pids: Sequence[int] = ()) -> Job:
    """The one job that they ask for. Raises `NothingFound` or `UsageError` when there is none or more than one."""
    selector = selector_of(options, pids)
    command = getattr(options, "asked_as", None) or f"gdbext {options.command}"
    return choose_job(find_jobs(proc, selector, read_environ), selector, command)


def split_inputs(inputs: Sequence[str]) -> Tuple[List[int], List[str]]:
    """Which arguments are pids and which are files. A name that is a number and a file is a file when it has a path."""
    pids = [int(text) for text in inputs if is_whole(text)]
    return pids, [text for text in inputs if not is_whole(text)]
