"""What `gdbext profile run` ends with: the traces of all ranks merged, and who is late."""

from __future__ import annotations

import argparse
import os
from typing import Dict, List, Optional, Sequence

from gdbext.cli.answer_output import show
from gdbext.cli.terminal import Progress
from gdbext.commands.user_files import new_file
from gdbext.knowledge.ascend_tables import FOLDER, TRACE_VIEW
from gdbext.model.errors import GdbextError
from gdbext.model.exit_status import ALL, NONE, PART, exit_status
from gdbext.model.profiling import ProfileAnswer, ProfilePart, ProfileReport
from gdbext.model.trace import MergeReport
from gdbext.traces.diagnosis import diagnose
from gdbext.traces.merged_trace import Asked, merge
from gdbext.traces.traces_of_job import read_job


def report(answer: ProfileAnswer, options: argparse.Namespace, progress: Progress) -> int:
    """Merge, judge and show; returns the exit status. What goes wrong after the profile is said beside its files."""
    stages: Dict[str, List[str]] = {}
    for one in answer.files:
        if one.is_rank and one.state == "whole":
            stages.setdefault(one.stage, []).append(_timeline(one.path))
    parts = tuple(_part(stage, paths, progress) for stage, paths in stages.items())
    show(ProfileReport(answer, parts), options)
    late = [None if part.diagnosis is None else part.diagnosis.late for part in parts]
    whole = all(part.diagnosis is not None and part.diagnosis.read == ALL for part in parts)
    read = NONE if not parts else ALL if answer.complete and whole else PART
    return exit_status(True if True in late else None if None in late else False, read)


def _timeline(path: str) -> str:
    """A file; Ascend's profilers write a folder, with or without a timeline."""
    tables = os.path.join(path, FOLDER)
    timeline = os.path.join(tables, TRACE_VIEW)
    return path if not os.path.isdir(path) else timeline if os.path.isfile(timeline) else tables


def _part(stage: str, paths: Sequence[str], progress: Progress) -> ProfilePart:
    merged: Optional[MergeReport] = None
    problem = ""
    try:
        merged = _merged(stage, [path for path in paths if not os.path.isdir(path)], progress)
    except GdbextError as error:
        problem = str(error)
    try:
        return ProfilePart(stage, merged, diagnose(read_job(paths, True, progress.say)), problem)
    except GdbextError as error:
        return ProfilePart(stage, merged, None, problem or str(error))


def _merged(stage: str, paths: Sequence[str], progress: Progress) -> Optional[MergeReport]:
    """Beside the traces, or here where that folder is another user's. Raises `GdbextError`."""
    name = f"merged{'-' + stage.lower() if stage else ''}.trace.json.gz"
    if not paths:
        return None
    folder = os.path.dirname(paths[0])
    output = os.path.join(folder if os.access(folder, os.W_OK | os.X_OK) else os.getcwd(), name)
    with new_file(output, True, 0o644) as file:
        return merge(paths, Asked(), file, output, progress.say)
