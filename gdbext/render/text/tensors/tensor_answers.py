"""Every answer of llm-tensor as lines, those of several ranks among them."""

from __future__ import annotations

from typing import Callable, List, Mapping

from gdbext.model.missing import Missing
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
from gdbext.render.style import Style
from gdbext.render.text.tensors.tensor import (
    hash_lines,
    info_lines,
    info_table,
    list_lines,
    map_lines,
    problem_lines,
    saved_lines,
    values_lines,
)
from gdbext.render.text.tensors.tensor_difference import agreement_lines, diff_lines
from gdbext.render.text.tensors.tensor_statistics import stats_lines


def ranks_lines(answers: RankTensors, style: Style) -> List[str]:
    """The answers of several ranks, one after the other."""
    lines: List[str] = []
    for one in answers.answers:
        head = style.paint(f"rank {one.rank}", "strong")
        if isinstance(one.answer, Missing):
            lines += [head, *problem_lines(one.answer.reason, style)]
            continue
        lines_of = RENDERERS[type(one.answer)]
        first, *rest = lines_of(one.answer, style)
        lines += [f"{head}  {first}", *rest]
    return lines


RENDERERS: Mapping[type, Callable[..., List[str]]] = {
    TensorInfo: info_lines,
    TensorValues: values_lines,
    TensorMapInfo: map_lines,
    TensorList: list_lines,
    TensorStats: stats_lines,
    TensorHash: hash_lines,
    TensorDiff: diff_lines,
    TensorAgreement: agreement_lines,
    TensorSaved: saved_lines,
    RankTensors: ranks_lines,
}
"""How each object of model/tensor.py becomes lines."""
LIST_RENDERERS: Mapping[type, Callable[..., List[str]]] = {TensorInfo: info_table}
