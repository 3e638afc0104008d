"""RTP-LLM's Buffer (2024-02 to 2026-03); before it the tensor of FasterTransformer, since then torch::Tensor.

Sources: the headers at the tags v0.1.0 to v0.2.0, and the commits in between that changed them.
"""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.row_kinds import TensorLayout

_BUFFER = "(rtp_llm|fastertransformer)::Buffer"


def _layout(id: str, type: str, parts: Tuple[Tuple[str, str], ...] = ()) -> TensorLayout:
    return TensorLayout(
        id,
        "rtp-llm",
        type,
        "alibaba/rtp-llm, commits ab2554a5d to 2a30fe509",
        shape=("shape_",),
        dtype=("type_",),
        data=("data_",),
        place=("where_",),
        dtypes="fastertransformer",
        places="fastertransformer",
        rank0_elements=0,
        parts=parts,
    )


LAYOUTS: Tuple[TensorLayout, ...] = (
    _layout("rtp_llm::QBuffer", "(rtp_llm|fastertransformer)::QBuffer", (("scales", "scales_"), ("zeros", "zeros_"))),
    _layout("rtp_llm::Buffer", _BUFFER, (("parent", "parent_"),)),
)
