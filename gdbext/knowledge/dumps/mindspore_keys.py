"""The keys of MindSpore's dump configuration, their values, and which of them go together (rows)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple, Union

SOURCE = "MindSpore 2.6 tutorials, debug/dump: Ascend O0/O1 and CPU/GPU"
COMMON, E2E = "common_dump_settings", "e2e_dump_settings"

Value = Union[str, int, bool, Tuple[str, ...], Tuple[int, ...]]


@dataclass(frozen=True)
class DumpKey:
    """`kind`: "choice" (of `values`), "words" (several of `values`, or any where there are none), "numbers", "count",
    "steps" or "text". Without `default` the key is left out where nobody sets it."""

    section: str
    name: str
    kind: str
    meaning: str
    values: Tuple[Union[int, str, bool], ...] = ()
    default: Union[Value, None] = None


@dataclass(frozen=True)
class DumpRule:
    """A key that has one of `values` (or is set at all, with none) needs another one to have one of `needs`."""

    name: str
    values: Tuple[Union[int, str, bool], ...]
    other: str
    needs: Tuple[Union[int, str, bool], ...]
    why: str


STATISTICS = (
    *("max", "min", "avg", "count", "negative zero count", "positive zero count", "nan count", "negative inf count"),
    *("positive inf count", "zero count", "md5", "l2norm"),
)

KEYS: Tuple[DumpKey, ...] = (
    DumpKey(
        COMMON,
        "op_debug_mode",
        "choice",
        "0: operators, 3: those that overflow, 4: inputs of a failing one",
        (0, 3, 4),
        0,
    ),
    DumpKey(
        COMMON, "dump_mode", "choice", "0: all operators, 1: those in kernels, 2: those of set_dump()", (0, 1, 2), 0
    ),
    DumpKey(COMMON, "net_name", "text", "a name for the network, a folder's", default="net"),
    DumpKey(COMMON, "iteration", "steps", 'steps: "all", or like 0|5-8|100-120', default="0"),
    DumpKey(COMMON, "saved_data", "choice", "values, statistics or both", ("tensor", "statistic", "full"), "tensor"),
    DumpKey(COMMON, "input_output", "choice", "0: inputs and outputs, 1: inputs, 2: outputs", (0, 1, 2), 0),
    DumpKey(COMMON, "kernels", "words", "names, parts of a type's name, or name-regex(...)", default=()),
    DumpKey(COMMON, "support_device", "numbers", "devices, like 0,1,2", default=(0, 1, 2, 3, 4, 5, 6, 7)),
    DumpKey(COMMON, "statistic_category", "words", "which statistics", STATISTICS),
    DumpKey(COMMON, "overflow_number", "count", "so many overflows at most; 0: all"),
    DumpKey(COMMON, "initial_iteration", "count", "the number that the first step gets"),
    DumpKey(E2E, "enable", "choice", "true: with the computation, false: beside it (Ascend)", (True, False), True),
    DumpKey(E2E, "trans_flag", "choice", "true: in the host's format", (True, False), True),
    DumpKey(E2E, "stat_calc_mode", "choice", "where statistics are computed", ("host", "device")),
    DumpKey(E2E, "device_stat_precision_mode", "choice", "high: in float32", ("high", "low")),
    DumpKey(E2E, "sample_mode", "choice", "1: only a slice of each tensor", (0, 1)),
    DumpKey(E2E, "sample_num", "count", "elements of that slice"),
    DumpKey(E2E, "save_kernel_args", "choice", "true: the operators' own arguments too", (True, False)),
)

RULES: Tuple[DumpRule, ...] = (
    DumpRule("kernels", (), "dump_mode", (1,), "kernels are chosen with dump_mode=1"),
    DumpRule("dump_mode", (1,), "op_debug_mode", (0,), "operators are chosen with op_debug_mode=0"),
    DumpRule("op_debug_mode", (3,), "input_output", (0,), "overflowing operators are saved with inputs and outputs"),
    DumpRule("op_debug_mode", (4,), "input_output", (1,), "of a failing operator only inputs are saved"),
    DumpRule("saved_data", ("statistic", "full"), "op_debug_mode", (0,), "statistics are saved with op_debug_mode=0"),
    DumpRule(
        "statistic_category", (), "saved_data", ("statistic", "full"), "statistics are saved as statistic or full"
    ),
    DumpRule("stat_calc_mode", ("device",), "op_debug_mode", (0, 4), "overflows are counted on the host"),
    DumpRule("device_stat_precision_mode", (), "stat_calc_mode", ("device",), "it is the precision of the device"),
    DumpRule("overflow_number", (), "op_debug_mode", (3,), "overflows are saved with op_debug_mode=3"),
    DumpRule("sample_mode", (1,), "op_debug_mode", (0,), "slices are saved with op_debug_mode=0"),
    DumpRule("sample_num", (), "sample_mode", (1,), "slices are saved with sample_mode=1"),
    DumpRule("save_kernel_args", (True,), "enable", (True,), "arguments are saved with enable=true"),
)

IMPLIED = {("op_debug_mode", 4): ("input_output", 1), ("sample_num", None): ("sample_mode", 1)}
"""What a value (None: any) makes of another key that nobody set."""

NOT_WITH_MODE_4 = "iteration"
"""op_debug_mode=4 takes no steps."""

ON_DEVICE = ("max", "min", "avg", "l2norm")
"""Statistics that stat_calc_mode=device has."""
