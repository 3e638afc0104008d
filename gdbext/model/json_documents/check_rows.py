"""Documents of failed checks, errors, a watch, a check-up, a build and dumps."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Sequence

from gdbext.model.build_report import BuildReport, BuiltFile, DebugCheck, DeviceCode
from gdbext.model.check_report import (
    CheckKinds,
    CheckReport,
    CheckStatus,
    Failure,
    SourceLine,
    SwitchResults,
    WatchedRank,
)
from gdbext.model.dumps import DumpedFile, DumpGroup, DumpListing
from gdbext.model.error_code import ErrorAnswer, ErrorCode
from gdbext.model.errors import GdbextError
from gdbext.model.gpu_core import GpuException, WarpPlace
from gdbext.model.json_documents.document_row import Rows, computed, nested, rows
from gdbext.model.tensor import TensorInfo
from gdbext.model.watching import WatchEvent


class NamedStream(NamedTuple):
    """A stream that a variable of a frame holds."""

    name: str
    handle: str


def _tensors(report: CheckReport) -> Sequence[TensorInfo]:
    return report.tensors.tensors if report.tensors else ()


def _streams(report: CheckReport) -> Sequence[NamedStream]:
    return [NamedStream(*one) for one in report.streams]


def _message(error: GdbextError) -> str:
    return str(error.args[0]) if error.args else type(error).__name__


ROWS: Mapping[type, Rows] = {
    CheckReport: rows(
        "taken_at",
        nested("process", "rank pid host engine"),
        nested("thread", "id=thread lwp name=thread_name?"),
        "failure",
        nested("frames", "function module file line language", of="frames"),
        "engine_frame source",
        computed("tensors", _tensors, "name dtype shape where"),
        computed("streams", _streams),
        "timing? steps notes problems",
    ),
    Failure: rows("kind what raised? message:lines? text:lines? expression? file? line error details"),
    SourceLine: rows("line=number text:lines"),
    CheckStatus: rows("on action log ranks notes"),
    WatchedRank: rows("inferior=number pid rank engine throws=sites functions files passed failures problems"),
    CheckKinds: rows("checks=kinds"),
    SwitchResults: rows("switches=results notes"),
    BuildReport: rows("target? engine? files points other_files=others ways lacking"),
    BuiltFile: rows(
        "path build_id? symbols debug debug_file? lines_only compilers optimised inlined frame_pointers device_code",
        "checks problem? points",
    ),
    DeviceCode: rows(
        "sass ptx line_info=lines cubins compressed=packed looked_into with_line_info=with_lines with_debug problem?"
    ),
    DebugCheck: rows("engine function switched_on_by=variable on note?"),
    ErrorAnswer: rows(nested("error", "asked codes")),
    ErrorCode: rows("library number name meaning sticky causes steps read_from source?"),
    GdbextError: rows(computed("error", _message, turn="lines"), "hint? exit=exit_code"),
    WatchEvent: rows("at event=kind text bundle cause confidence culprits job host standstill pause_ms steps"),
    WarpPlace: rows("warps frames pc:hex"),
    GpuException: rows(
        "device number name means advice? kernel? grid sm warp block? thread? blocks warps lanes lane_mask:hex pc:hex"
        " pc_told frames host_tid"
    ),
    DumpListing: rows("folder groups files other_files=unknown uneven compare=pair? notes"),
    DumpGroup: rows("of=whose step what engine files bytes"),
    DumpedFile: rows("path rank step what name bytes"),
}
