"""The elements that a person looks at: all of a small tensor, the edges of a large one."""

from __future__ import annotations

import itertools
from typing import List, Optional, Sequence

from gdbext.analysis.tensors.index import View, product, select, view_of
from gdbext.analysis.tensors.read_blocks import Limits, Memory, Read, elements_at
from gdbext.model.errors import UsageError
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo, TensorValues

THRESHOLD = 1000  # elements; a larger selection is shown by its edges (numpy's default)
EDGE_ITEMS = 3
MOST_SHOWN = 10_000  # elements that are ever read for one answer
PRINT_SECONDS = 5.0


def read_values(
    info: TensorInfo,
    read: Read,
    index: str = "",
    threshold: int = THRESHOLD,
    edge_items: int = EDGE_ITEMS,
    limits: Optional[Limits] = None,
) -> TensorValues:
    """What `index` selects of a tensor; only what is shown is read, in few reads.

    Raises `GdbextError` when there is nothing to read (no address, unknown dtype, an index out of bounds).
    """
    view = select(view_of(info), index)
    edges = 0 if view.count <= min(threshold, MOST_SHOWN) else _edges(view.shape, max(1, edge_items))
    positions = _positions(view, edges)
    elements = elements_at(view, positions, Memory(read, limits or Limits(PRINT_SECONDS)))
    unread = sum(isinstance(element, Missing) for element in elements)
    problem = None
    if unread:
        problem = f"{len(elements) - unread:,} of {len(elements):,} elements read, the others are unreadable"
    return TensorValues(
        info=info,
        shape=view.shape,
        elements=tuple(elements),
        number=view.dtype.number,
        index=index.strip(),
        edge_items=edges,
        read=len(elements) - unread,
        problem=problem,
    )


def _edges(shape: Sequence[int], edge_items: int) -> int:
    """How many entries at each end of a dimension can be shown without reading too much."""
    for edges in range(min(edge_items, MOST_SHOWN), 0, -1):
        if product([min(length, 2 * edges) for length in shape]) <= MOST_SHOWN:
            return edges
    raise UsageError(f"{len(shape)} dimensions are too many to show at once", "give an index, e.g. [0, ..., :, :]")


def _positions(view: View, edges: int) -> List[int]:
    """Positions of the elements at the edges (all with `edges` 0), in row-major order."""
    if not view.count:  # other dimensions of an empty tensor may have any length
        return []
    steps = []
    for length, stride in zip(view.shape, view.strides):
        numbers: Sequence[int] = range(length)
        if edges and length > 2 * edges:
            numbers = [*range(edges), *range(length - edges, length)]
        steps.append([number * stride for number in numbers])
    return [view.origin + sum(offsets) for offsets in itertools.product(*steps)]
