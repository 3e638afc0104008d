"""llm-doctor: whether everything is there that a look needs, and what stands in its way."""

from __future__ import annotations

from argparse import Namespace
from typing import Union

from gdbext.capture.private_folder import place_for_copies
from gdbext.capture.symbols.environ import read_environ
from gdbext.commands import build_report
from gdbext.commands.chosen_ranks import selector_of
from gdbext.commands.session_port import Session
from gdbext.discovery.checkup import host_points
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs
from gdbext.model.build_report import BuildReport
from gdbext.model.checkup import Checkup


def doctor(session: Session, args: Namespace) -> Union[Checkup, BuildReport]:
    if args.build is not None or args.how is not None:
        return build_report.answer(args.build, args.how)
    points = tuple(session.about())
    if args.gdb:
        return Checkup(points)
    proc = ProcFS()
    jobs = find_jobs(proc, selector_of(args), read_environ)
    held = {rank.process.pid for rank in session.ranks()}
    return Checkup((*points, *host_points(proc, jobs, place_for_copies, held)))
