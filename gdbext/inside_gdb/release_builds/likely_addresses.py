"""Which places of a piece of memory are worth a look: the words that every object of a kind has, and little else."""

from __future__ import annotations

from typing import Iterator, NamedTuple, Sequence

from gdbext.inside_gdb.release_builds.engine_libraries import structs_of
from gdbext.inside_gdb.release_builds.release_objects import LOAD_FACTOR, MOST_ENTRIES
from gdbext.inside_gdb.tensors.member_paths import first_of
from gdbext.inside_gdb.tensors.target_object import StructNode
from gdbext.inside_gdb.tensors.tensor_reader import layout_of
from gdbext.knowledge.row_kinds import ReleaseRow

_WORD = 8
_MOST_ITEMS = 4096
_HIGHEST_RANK = 8
_TENSOR, _ARRAY, _MAP, _VECTOR = "tensor", "tensor with its shape inside", "map", "vector"
_LONGEST = 1 << 40  # of one dimension
_LARGEST_ITEM = 1 << 12  # bytes of an element, or of a block of them


class Kind(NamedTuple):
    """A type that is looked for. `word`: where its vector or array begins; `item`: bytes of what
    the vector holds, or the number of dimensions."""

    row: ReleaseRow
    type: str
    shape: str
    word: int
    item: int


def kinds_of(row: ReleaseRow) -> Iterator[Kind]:
    """The tensors of a release, and the maps and vectors of them."""
    structs = structs_of(row)
    for tensor in row.tensors:
        layout = layout_of(tensor)
        assert layout is not None
        vector = first_of(StructNode(0, structs[tensor], structs, lambda address, size: None), layout.shape)
        shape = _TENSOR if vector.length() is None else _ARRAY
        yield Kind(row, tensor, shape, (vector.address or 0) // _WORD, vector.length() or _WORD)
    for struct in row.structs:
        held = next((one for one in struct.arguments[-1:] if any(tensor in one for tensor in row.tensors)), None)
        if held is not None and "_M_h" in struct.fields:
            yield Kind(row, struct.id, _MAP, 0, 0)
        elif held is not None and "_M_impl" in struct.fields:
            yield Kind(row, struct.id, _VECTOR, 0, structs[held].size)


def looks_like(kind: Kind, words: Sequence[int], at: int) -> bool:
    """Whether an object of this kind may begin at a word."""
    at += kind.word
    if kind.shape == _MAP:
        if len(words) < at + 5 or words[at + 4] & 0xFFFFFFFF != LOAD_FACTOR:
            return False
        return bool(words[at] and words[at + 1] and words[at + 2]) and 0 < words[at + 3] <= MOST_ENTRIES
    if kind.shape == _ARRAY:
        lengths, strides = words[at : at + kind.item], words[at + kind.item : at + 2 * kind.item]
        fitting = len(strides) == kind.item and 0 < strides[0] <= _LARGEST_ITEM and list(strides) == sorted(strides)
        return fitting and all(0 < length < _LONGEST for length in lengths)
    if len(words) < at + 3:
        return False
    start, finish, end = words[at : at + 3]
    most = kind.item * (_HIGHEST_RANK if kind.shape == _TENSOR else _MOST_ITEMS)
    return (
        0 < start < finish <= end and finish - start <= most and not start % _WORD and not (finish - start) % kind.item
    )
