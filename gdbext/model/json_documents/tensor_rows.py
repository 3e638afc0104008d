"""Documents of tensors, and of CUDA streams and events."""

from __future__ import annotations

from typing import Mapping, Optional

from gdbext.model.json_documents.document_row import Rows, computed, nested, reasons, rows
from gdbext.model.stream import Asked, KnownStream, RankStreams, StreamInfo, StreamTable, StreamUse, StreamWait
from gdbext.model.tensor import (
    HashGroup,
    Histogram,
    RankTensor,
    RankTensors,
    TensorAgreement,
    TensorDiff,
    TensorHash,
    TensorInfo,
    TensorMapInfo,
    TensorSaved,
    TensorStats,
    TensorValues,
)


def _compared(found: TensorAgreement) -> int:
    compared = sum(len(group.ranks) for group in found.groups)
    return compared if compared > 1 else 0


def _agree(found: TensorAgreement) -> Optional[bool]:
    """Unknown: nothing was compared, or not with all."""
    if len(found.groups) > 1:
        return False
    return None if not _compared(found) or found.unread else True


ROWS: Mapping[type, Rows] = {
    TensorInfo: rows(
        "name kind type=type_name dtype shape strides where address:hex offset owner nbytes unreadable problems notes",
        reasons("missing", "dtype shape where address nbytes"),
        "parts",
    ),
    TensorValues: rows("tensor=info index shape edge_items grid elements:number read problem"),
    TensorMapInfo: rows("name kind total entries problems"),
    TensorStats: rows(
        "tensor=info index count total nan positive_infinity negative_infinity zeros subnormals minimum:number",
        "maximum:number mean:number std:number absolute_maximum:number absolute_maximum_at first_nan histogram",
        "seconds computed_by problem",
    ),
    Histogram: rows("low:number high:number counts"),
    TensorHash: rows("tensor=info index digest count problem"),
    TensorDiff: rows(
        "left right index same total compared differing first first_values:number max_absolute:number max_absolute_at",
        "max_relative:number max_relative_at nan_mismatches rtol atol:number problem",
    ),
    TensorAgreement: rows("name index", computed("agree", _agree), computed("compared", _compared), "groups unread"),
    HashGroup: rows("ranks digest tensor=info differs"),
    TensorSaved: rows("tensor=info index path nbytes format notes"),
    RankTensors: rows("name ranks=answers"),
    RankTensor: rows("rank answer problem=answer:reason"),
    StreamInfo: rows(
        nested(
            "stream",
            "expression type=type_name kind handle device state pool_index priority driver=asked notes",
            reasons("missing", "handle device state"),
        )
    ),
    StreamTable: rows("ranks notes"),
    RankStreams: rows("pid rank streams events waits kernels", reasons("missing", "kernels"), "problems"),
    KnownStream: rows(
        "kind handle device pool_index priority driver=asked uses more_uses kernels notes",
        reasons("missing", "handle device driver=asked"),
    ),
    StreamUse: rows("expression owner thread frame function waits"),
    StreamWait: rows("*", reasons("missing", "handle")),
    Asked: rows(
        "state blocking priority id device",
        nested("error", "number name", of="error"),
        reasons("missing", "state blocking priority id device"),
    ),
}
