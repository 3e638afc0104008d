"""Which file an engine's profiler writes for which rank (rows). A folder that Ascend's profilers write is one trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class TraceName:
    """Named groups of `pattern`, which is matched in full against the name: rank, tp, pp, dp, ep, pid, stage.

    `rank` False: of a front end, beside those of the ranks. `folder`: a folder, whole when `whole` is in it.
    """

    pattern: str
    source: str
    rank: bool = True
    folder: bool = False
    whole: str = ""


_END = r"\.json(?:\.gz)?"

TRACE_NAMES: Tuple[TraceName, ...] = (
    TraceName(
        r"(?:.+-)?\d+(?:\.\d+)?-TP-(?P<tp>\d+)(?:-DP-(?P<dp>\d+))?(?:-PP-(?P<pp>\d+))?(?:-EP-(?P<ep>\d+))?"
        rf"(?:-(?P<stage>[A-Za-z]\w*))?\.trace{_END}",
        "sglang profiler_manager.py; a part stands only where that size is above one",
    ),
    TraceName(
        r"(?:.+_)?dp(?P<dp>\d+)_pp(?P<pp>\d+)_tp(?P<tp>\d+)(?:_dcp\d+)?(?:_ep(?P<ep>\d+))?_rank(?P<rank>\d+)"
        rf"\.\d+\.pt\.trace{_END}",
        "vllm distributed/utils.py get_worker_rank_suffix",
    ),
    TraceName(rf".+-rank-(?P<rank>\d+)\.\d+\.pt\.trace{_END}", "vllm gpu_worker.py before 0.14: instance id and rank"),
    TraceName(rf".+\.async_llm\.\d+\.pt\.trace{_END}", "vllm async_llm.py", rank=False),
    TraceName(rf".+_(?P<pid>\d+)\.\d+\.pt\.trace{_END}", "torch.profiler.tensorboard_trace_handler: host, pid, time"),
    TraceName(rf".+-rank-(?P<rank>\d+){_END}", "TensorRT-LLM #13536: rank behind the name that was given"),
    TraceName(rf"rank[-_]?(?P<rank>\d+)(?:\.pt)?(?:\.trace)?{_END}", "Megatron-LM, HolisticTraceAnalysis"),
    TraceName(
        r".+_(?P<pid>\d+)_\d+_ascend_(?:pt|ms)",
        "torch_npu and MindSpore profilers: {host}_{pid}_{time}; profiler_info_{rank}.json in it has the rank",
        folder=True,
        whole="ASCEND_PROFILER_OUTPUT/trace_view.json",
    ),
)
"""Tried in this order."""

ASCEND_RANK = r"profiler_info_(?P<rank>\d+)\.json"
"""The file in an Ascend folder whose name has the rank; without a number on one device."""
