"""Model objects to lines of text: the only place that knows width and colour. `document` has the same for `--json`."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, Sequence

from gdbext.model.attached import RankOutputs, RankTable
from gdbext.model.backtrace import Backtrace
from gdbext.model.break_points import BreakTable
from gdbext.model.checkup import Checkup
from gdbext.model.communicator import CommunicatorTable
from gdbext.model.error_code import ErrorAnswer
from gdbext.model.errors import GdbextError
from gdbext.model.explanation import Explanation, Glossary
from gdbext.model.job import Job, JobSnapshot, RankProcess, RankSnapshot
from gdbext.model.locks import LockReport
from gdbext.model.stack import ThreadStack
from gdbext.model.tensor import TensorInfo
from gdbext.model.tree import StackTree
from gdbext.model.verdict import Diagnosis
from gdbext.render.backtrace import backtrace_lines, backtraces_lines
from gdbext.render.break_points import break_lines
from gdbext.render.check_report import CHECK_RENDERERS
from gdbext.render.checkup import checkup_lines
from gdbext.render.comms import communicator_lines
from gdbext.render.document import document
from gdbext.render.error import answer_lines
from gdbext.render.explanation import explanation_lines, glossary_lines
from gdbext.render.locks import lock_lines
from gdbext.render.messages import error_lines
from gdbext.render.ranks import (
    attached_lines,
    job_lines,
    jobs_lines,
    output_lines,
    process_table,
    snapshot_lines,
    snapshot_table,
)
from gdbext.render.stacks import thread_lines, tree_lines
from gdbext.render.stream import STREAM_RENDERERS
from gdbext.render.style import Style
from gdbext.render.tensor import infos_lines
from gdbext.render.tensor_answers import TENSOR_RENDERERS
from gdbext.render.verdict import diagnosis_lines

_RENDERERS: Mapping[type, Callable[[Any, Style], List[str]]] = {
    Diagnosis: diagnosis_lines,
    StackTree: tree_lines,
    ThreadStack: thread_lines,
    Job: job_lines,
    JobSnapshot: snapshot_lines,
    RankTable: attached_lines,
    RankOutputs: output_lines,
    Backtrace: backtrace_lines,
    BreakTable: break_lines,
    Checkup: checkup_lines,
    LockReport: lock_lines,
    CommunicatorTable: communicator_lines,
    Explanation: explanation_lines,
    Glossary: glossary_lines,
    ErrorAnswer: answer_lines,
    **STREAM_RENDERERS,
    **TENSOR_RENDERERS,
    **CHECK_RENDERERS,
}

_LIST_RENDERERS: Mapping[type, Callable[[Sequence[Any], Style], List[str]]] = {
    Backtrace: backtraces_lines,
    Job: jobs_lines,
    RankProcess: process_table,
    RankSnapshot: snapshot_table,
    TensorInfo: infos_lines,
}


def render(obj: Any, style: Style) -> List[str]:
    """The lines that show a model object (or a list of jobs, processes or snapshots of ranks) to a person.

    Raises `TypeError` for a type that has no renderer.
    """
    if isinstance(obj, GdbextError):
        return error_lines(obj, style)
    if isinstance(obj, (list, tuple)):
        if not obj:
            return jobs_lines((), style)
        for kind, lines_of in _LIST_RENDERERS.items():
            if all(isinstance(item, kind) for item in obj):
                return lines_of(obj, style)
    lines = _RENDERERS.get(type(obj))
    if lines is None:
        raise TypeError(f"no renderer for {type(obj).__name__}")
    return lines(obj, style)


__all__ = ["Style", "document", "render"]
