"""The tables that Ascend's profilers write, by the headings of their columns (rows).

Headings come and go between CANN versions, and times may carry a trailing tab: columns are found by name, without their
unit, and cells are stripped (torch_npu and MindSpore profilers, CANN 6 to 8.5; msprof's own names are alternatives).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Tuple

FOLDER = "ASCEND_PROFILER_OUTPUT"
TRACE_VIEW = "trace_view.json"
COMMUNICATION = "communication.json"


@dataclass(frozen=True)
class TableRow:
    """`columns`: what we call it -> its headings, without the unit, newest first. `needed`: without one of these the
    table says nothing."""

    file: str
    columns: Mapping[str, Tuple[str, ...]]
    needed: Tuple[str, ...]
    source: str


KERNELS = TableRow(
    "kernel_details.csv",
    {
        "name": ("Name", "Op Name"),
        "type": ("Type", "OP Type"),
        "core": ("Accelerator Core", "Task Type"),
        "start": ("Start Time", "Task Start Time"),
        "duration": ("Duration", "Task Duration"),
        "stream": ("Stream ID",),
        "step": ("Step Id",),
        "device": ("Device_id", "Device ID"),
    },
    ("name", "start", "duration"),
    "Ascend PyTorch Profiler user guide, kernel_details.csv; msprof op_summary_*.csv",
)

OPERATORS = TableRow(
    "op_statistic.csv",
    {
        "type": ("OP Type", "Op Type"),
        "core": ("Core Type",),
        "count": ("Count",),
        "total": ("Total Time",),
        "least": ("Min Time",),
        "most": ("Max Time",),
        "device": ("Device_id", "Device ID"),
    },
    ("type", "count", "total"),
    "Ascend PyTorch Profiler user guide, op_statistic.csv",
)

STEPS = TableRow(
    "step_trace_time.csv",
    {
        "step": ("Step",),
        "computing": ("Computing",),
        "exposed": ("Communication(Not Overlapped)",),
        "hidden": ("Overlapped",),
        "free": ("Free",),
    },
    ("computing", "exposed", "free"),
    "Ascend PyTorch Profiler user guide, step_trace_time.csv; mindspore ascend_step_trace_time_viewer.py",
)

TABLES = (KERNELS, OPERATORS, STEPS)

UNITS: Mapping[str, float] = {"ns": 0.001, "us": 1.0, "ms": 1000.0, "s": 1_000_000.0}
"""Microseconds in a unit that stands in parentheses behind a heading; a time without one is in microseconds."""

TIME_INFO, BANDWIDTH_INFO = "Communication Time Info", "Communication Bandwidth Info"
TOTAL = "Total Op Info"
START, ELAPSE, SIZE = "Start Timestamp(us)", "Elapse Time(ms)", "Transit Size(MB)"
"""Keys of communication.json: step -> p2p|collective -> NAME@GROUP -> these (msprof-analyze constant.py)."""

OPERATION = r"hcom_\w+?__\d+_(?P<number>\d+)_\d+"
"""Name of a collective in communication.json: kind, end of the group's number, which one of the group, ... (HCCL)."""

IS_COMMUNICATION = r"^hcom_|^hccl|AivKernel$"
"""Kernels that are parts of collectives; communication.json has them whole."""

RANK_FILE = r"profiler_info_(?P<rank>\d{1,9})\.json"
"""Beside the folder of tables; without a number where there is one device."""
