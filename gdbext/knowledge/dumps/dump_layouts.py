"""How the files of dumps lie in their folders: whose, of which step, and of what each file is (rows)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

TENSOR, GRAPH, STATISTIC, CONSTANT, ORDER, LOG = "tensor", "graph", "statistics", "constant", "order", "log"

_MS = "MindSpore 2.6 tutorials, debug/dump: data object directories"


@dataclass(frozen=True)
class DumpLayout:
    """`pattern` is matched in full against the path below the folder. Named groups: rank, dp, pp, tp, step, name (what
    two ranks have in common), pid. A name is made of the parts `name` and `io`."""

    engine: str
    what: str
    pattern: str
    source: str


_RANK = r"(?:.*/)?rank_(?P<rank>\d+)/"
_STEP = r"(?P<net>[^/]+)/(?P<graph>\d+)/(?P<step>\d+)/"

LAYOUTS: Tuple[DumpLayout, ...] = (
    DumpLayout(
        "mindspore",
        TENSOR,
        _RANK + _STEP + r"(?P<name>[^/]+?)\.\d+\.\d+\.\d+\.(?P<io>(?:input|output)\.\d+)(?:\.\d+)?\.\w+(?:\.\w+)?\.npy",
        _MS,
    ),
    DumpLayout("mindspore", STATISTIC, _RANK + _STEP + r"statistic\.csv", _MS),
    DumpLayout("mindspore", LOG, _RANK + _STEP + r"(?P<name>[^/]+)\.json", f"{_MS}; save_kernel_args"),
    DumpLayout(
        "mindspore",
        CONSTANT,
        _RANK + r"[^/]+/\d+/constants/(?P<name>Parameter\.data-\d+)\.\d+\.\d+\.\d+\.(?P<io>output\.\d+).*\.npy",
        _MS,
    ),
    DumpLayout("mindspore", GRAPH, _RANK + r"graphs/(?P<name>ms_output_trace_code_graph_\d+)\.(?:ir|pb)", _MS),
    DumpLayout("mindspore", ORDER, _RANK + r"execution_order/(?P<name>[^/]+)\.csv", _MS),
    DumpLayout("mindspore", LOG, _RANK + r"\.dump_metadata/(?P<name>.+)", _MS),
    DumpLayout("mindspore", GRAPH, _RANK + r"(?P<name>[^/]+)\.(?:ir|dot|dat)", "MindSpore, MS_DEV_SAVE_GRAPHS"),
    DumpLayout(
        "sglang",
        TENSOR,
        r"(?:.*/)?TP(?P<tp>\d+)_PP(?P<pp>\d+)_Rank(?P<rank>\d+)_pid\d+/Pass(?P<step>\d+)\.pt",
        "sglang debug_utils/tensor_dump_forward_hook.py: all tensors of one forward pass in one file",
    ),
    DumpLayout(
        "sglang",
        TENSOR,
        r"(?:.*/)?step=(?P<step>\d+)___rank=(?P<rank>\d+)___(?:dump_index=\d+___)?name=(?P<name>.+)\.pt",
        "sglang debug_utils/dumper.py: tags of one tensor",
    ),
    DumpLayout(
        "tensorrt-llm",
        TENSOR,
        r"(?:.*/)?PP_\d+/TP_\d+/iteration_(?P<step>\d+)/(?P<name>[^/]+)\.npy",
        "TensorRT-LLM batch_manager/utils/debugUtils.cpp: PP_ and TP_ are sizes, so the rank is not said",
    ),
    DumpLayout(
        "vllm",
        GRAPH,
        r"(?:.*/)?rank_(?P<rank>\d+)(?:_dp_(?P<dp>\d+))?/(?P<name>.+)",
        "vllm config/vllm.py compile_debug_dump_path",
    ),
    DumpLayout(
        "torch",
        GRAPH,
        r"(?:.*/)?torch_compile_debug/run_[^/]*-pid_(?P<pid>\d+)/(?P<name>.+)",
        "torch/_dynamo/debug_utils.py, measured with torch 2.13",
    ),
    DumpLayout(
        "torch",
        LOG,
        r"(?:.*/)?dedicated_log_torch_trace_(?:rank_(?P<rank>\d+)_)?\w+\.log",
        "torch/_logging/_internal.py, measured with torch 2.13",
    ),
)
"""The first that matches counts."""
