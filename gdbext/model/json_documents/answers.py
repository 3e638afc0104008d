"""All rows by type, and all answers of `--json` by the name of who gives them."""

from __future__ import annotations

from typing import Any, List, Mapping, Tuple

from gdbext.model.attached_ranks import RankOutputs, RankTable
from gdbext.model.backtrace import Backtrace, PythonPlace
from gdbext.model.build_report import BuildReport
from gdbext.model.check_report import CheckKinds, CheckReport, CheckStatus, SwitchResults
from gdbext.model.checkup import Checkup
from gdbext.model.communicator_table import CommunicatorTable
from gdbext.model.difference import JobDifference
from gdbext.model.dumps import DumpListing
from gdbext.model.error_code import ErrorAnswer
from gdbext.model.errors import GdbextError
from gdbext.model.explanation import Explanation, Glossary
from gdbext.model.gpu_core import GpuCoreListing
from gdbext.model.gpu_core_arming import ArmedEnvironment, ArmedJob, TriggeredJob
from gdbext.model.job import Job
from gdbext.model.json_documents import check_rows, rank_rows, tensor_rows, trace_rows, verdict_rows
from gdbext.model.json_documents.document_row import Rows, expanded, rows
from gdbext.model.locks import LockReport
from gdbext.model.profiling import ProfileAnswer, ProfileReport, ProfileStatuses
from gdbext.model.rank_breakpoints import BreakTable
from gdbext.model.rank_prompts import RankPrompts
from gdbext.model.stack_tree import StackTree
from gdbext.model.stream import StreamInfo, StreamTable
from gdbext.model.tensor import (
    RankTensors,
    TensorAgreement,
    TensorDiff,
    TensorHash,
    TensorInfo,
    TensorList,
    TensorMapInfo,
    TensorSaved,
    TensorStats,
    TensorValues,
)
from gdbext.model.trace import MergeReport, TraceDiagnosis, TraceDifference, TraceSummary
from gdbext.model.verdict import Diagnosis
from gdbext.model.watching import WatchEvent

ROWS: Mapping[type, Rows] = {
    **verdict_rows.ROWS,
    **rank_rows.ROWS,
    **tensor_rows.ROWS,
    **trace_rows.ROWS,
    **check_rows.ROWS,
}
"""Those of the types, and of what is made of them; see `rows_of`."""


def rows_of(kind: type) -> Rows:
    """All fields of a type that has no rows."""
    some = next((ROWS[one] for one in kind.__mro__ if one in ROWS), rows("*"))
    return expanded(kind, some)


LISTS: Mapping[type, str] = {Job: "jobs", Backtrace: "threads", TensorInfo: "tensors"}
"""By which key a list of them stands. An empty list is one of jobs: that is what a search brings back."""

ANSWERS: Mapping[str, Tuple[Any, ...]] = {
    "diagnose": (Diagnosis,),
    "stacks": (StackTree,),
    "locks": (LockReport,),
    "comms": (CommunicatorTable,),
    "ranks": (List[Job],),
    "doctor": (Checkup, BuildReport),
    "explain": (Explanation, Glossary),
    "error": (ErrorAnswer,),
    "watch": (WatchEvent,),
    "diff": (JobDifference,),
    "profile": (ProfileStatuses, ProfileAnswer, ProfileReport),
    "trace": (TraceDiagnosis, MergeReport, TraceSummary, TraceDifference),
    "dump": (DumpListing,),
    "gpucore": (GpuCoreListing, ArmedEnvironment, ArmedJob, TriggeredJob),
    "pdb": (RankPrompts,),
    "llm-ranks": (RankTable,),
    "llm-rank-apply": (RankOutputs,),
    "llm-bt": (Backtrace, List[Backtrace]),
    "llm-py-frame": (PythonPlace,),
    "llm-break": (BreakTable,),
    "llm-check": (CheckReport, CheckStatus, CheckKinds, SwitchResults),
    "llm-stream": (StreamInfo, StreamTable),
    "llm-tensor": (
        *(TensorInfo, List[TensorInfo], TensorValues, TensorMapInfo, TensorList, TensorStats, TensorHash, TensorDiff),
        *(TensorAgreement, TensorSaved, RankTensors),
    ),
    "failure": (GdbextError,),
}
"""What each command answers with, and any of them where it fails."""

ANSWERED = tuple(kind for kinds in ANSWERS.values() for kind in kinds if isinstance(kind, type))
