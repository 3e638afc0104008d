"""A digest of a tensor's values that ranks and runs can compare.

Recipe: BLAKE2b with a digest of 16 bytes over the text "gdbext-tensor-1\\nDTYPE\\nD0,D1,...\\n" (dtype name as in
knowledge/dtypes.py, the shape in decimal, UTF-8), then the elements in row-major order, little-endian, whatever the
strides: the type's own bytes; one byte per value for packed types (the code in its low bits); fp32 for block types,
dequantised. So two tensors have one digest when dtype, shape and every bit of every value are the same.
"""

from __future__ import annotations

import hashlib
from typing import Optional, Sequence

from gdbext.analysis.tensors.arithmetic.calculator import Calculator
from gdbext.analysis.tensors.index import select, view_of
from gdbext.analysis.tensors.read_blocks import Limits, Read, Stream
from gdbext.analysis.tensors.whole_tensor import Progress, no_progress
from gdbext.knowledge.dtypes import DType
from gdbext.model.tensor import TensorHash, TensorInfo

DIGEST_BYTES = 16


def new_digest(dtype: DType, shape: Sequence[int]) -> hashlib.blake2b:
    """A digest that has seen the header."""
    header = f"gdbext-tensor-1\n{dtype.name}\n{','.join(map(str, shape))}\n"
    return hashlib.blake2b(header.encode(), digest_size=DIGEST_BYTES)


def digest(
    info: TensorInfo,
    read: Read,
    index: str = "",
    calculator: Optional[Calculator] = None,
    progress: Progress = no_progress,
    limits: Optional[Limits] = None,
) -> TensorHash:
    """The digest of what `index` selects. Raises `GdbextError` when there is nothing to read; when only a part can be
    read there is no digest, and `problem` says why."""
    view = select(view_of(info), index)
    whole = new_digest(view.dtype, view.shape)
    numpy = (calculator or Calculator()).numpy_for(view.dtype.nbytes(view.count))
    stream = Stream(view, read, limits, numpy)
    done = 0
    for chunk in stream:
        whole.update(chunk.data)
        done = chunk.start + chunk.length
        progress(done, view.count)
        if stream.unread:
            break
    read_well = done - stream.unread
    problem = stream.problem
    if stream.unread and not problem:
        problem = f"{stream.unread:,} of the first {done:,} elements are unreadable, so there is no digest"
    return TensorHash(
        info=info, digest=None if problem else whole.hexdigest(), index=index.strip(), count=read_well, problem=problem
    )
