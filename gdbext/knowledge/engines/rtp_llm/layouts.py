"""RTP-LLM's Buffer (2024-02 to 2026-03); before it the tensor of FasterTransformer, since then torch::Tensor.

Sources: the headers at the tags v0.1.0 to v0.2.0, and the commits in between that changed them.
"""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.engines.fastertransformer.layouts import OF_RTP_LLM, releases
from gdbext.knowledge.row_kinds import Field, ReleaseRow, StructRow, TensorLayout
from gdbext.knowledge.std_offsets import PLAIN, VECTOR, shared_containers_of

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


def _buffers(id: str, type: str, table: int, kind: str, names: Tuple[str, ...], without: Tuple[str, ...]) -> ReleaseRow:
    """`table`: bytes of the pointer to the virtual table in front of the members; `kind`: the element type's."""
    source = "alibaba/rtp-llm v0.1.13, 26c1db511, 562a754aa and v0.2.0; measured by compiling them"
    fields = {
        "where_": Field(table, "u32"),
        "type_": Field(table + 4, kind),
        "shape_": Field(table + 8, VECTOR),
        "data_": Field(table + 32, "pointer"),
    }
    row = StructRow(type, table + 40, fields, source)  # of its first members; what follows is of no use here
    return ReleaseRow(id, names, (row, *PLAIN, *shared_containers_of(type)), (type,), source, without)


_TENSOR = (r"17fastertransformer(\w*NS_)?6Tensor", OF_RTP_LLM)

RELEASES: Tuple[ReleaseRow, ...] = (
    _buffers("RTP-LLM 2025-05 to 0.2.0", "rtp_llm::Buffer", 8, "u8", (r"7rtp_llm\w*6Buffer",), ()),
    _buffers(
        "RTP-LLM 2024-06 to 2025-05",
        "fastertransformer::Buffer",
        8,
        "u8",
        ("17fastertransformer6Buffer", "_ZTVN17fastertransformer6Buffer"),
        (),
    ),
    _buffers(
        "RTP-LLM 2024-02 to 2024-06",
        "fastertransformer::Buffer",
        0,
        "u32",
        ("17fastertransformer6Buffer",),
        ("_ZTVN17fastertransformer6Buffer",),
    ),
    releases(
        "RTP-LLM 0.1.4 to 0.1.13",
        "alibaba/rtp-llm v0.1.13; measured by compiling it; the same members since v0.1.4",
        "fastertransformer::Tensor",
        _TENSOR,
        members="_",
    ),
    releases(
        "RTP-LLM 0.1.3",
        "alibaba/rtp-llm v0.1.3; measured by compiling it",
        "fastertransformer::Tensor",
        _TENSOR,
        members="_",
        size=72,
    ),
)
