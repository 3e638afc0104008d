"""Objects of a release build at an address: which table fits, and whether what it gives makes sense."""

from __future__ import annotations

from typing import Callable, List, NamedTuple, Optional, Sequence

from gdbext.inside_gdb.release_builds.engine_libraries import known_releases, struct_named, structs_of
from gdbext.inside_gdb.tensors.member_paths import first_of, follow, integer
from gdbext.inside_gdb.tensors.shapes import Contradiction
from gdbext.inside_gdb.tensors.target_object import Node, Read, StructNode, Unreadable
from gdbext.inside_gdb.tensors.tensor_reader import Described, layout_of
from gdbext.knowledge.all_tensor_layouts import PLACE_TABLES, RELEASES
from gdbext.knowledge.dtypes import dtype_named
from gdbext.knowledge.engines.all_build_ways import BUILT
from gdbext.knowledge.row_kinds import ReleaseRow, StructRow, TensorLayout
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorInfo

Describe = Callable[[Node, str, str], Described]
"""What a node is: the node, its name, what its kind says of how it was read. Raises `GdbextError`."""

LOAD_FACTOR = 0x3F800000  # 1.0f, and nobody sets another one
MOST_ENTRIES = 1 << 20
_HIGHEST_RANK = 8
_LARGEST = 1 << 42  # bytes of one tensor
_LARGEST_DTYPE = 32  # an enumerator above that is no enumerator of any release
_CHUNK = 16  # what malloc aligns to


class Seen(NamedTuple):
    """An object that makes sense, by which table, and the name that people have for its type."""

    described: Described
    row: ReleaseRow
    type_name: str
    address: int


def object_at(
    address: int, type_name: str, name: str, rows: Sequence[ReleaseRow], read: Read, describe: Describe
) -> Seen:
    """The object of this type there, by the first table that gives what makes sense. Raises `Unreadable`."""
    fitting = [(row, struct) for row in rows for struct in [struct_named(row, type_name)] if struct is not None]
    if not fitting:
        raise Unreadable(_no_table(type_name, rows))
    if not address:
        raise Unreadable("null pointer")
    reasons: List[str] = []
    for row, struct in fitting:
        node = StructNode(address, struct, structs_of(row), read)
        try:
            described = describe(node, name, f" by the offsets of {row.id}")
            reason = object_problem(node, described)
        except (Unreadable, GdbextError) as error:
            reason = str(error)
        if reason is None:
            return Seen(described, row, short_name(row, struct), address)
        reasons.append(f"{reason}, by the offsets of {row.id}")
    raise Unreadable(f"no {type_name} at {address:#x}: {'; '.join(dict.fromkeys(reasons))}")


def _no_table(type_name: str, rows: Sequence[ReleaseRow]) -> str:
    names = [row.id for row in RELEASES if struct_named(row, type_name) is not None]
    if not names:
        return f"no debug information about the type {type_name}, and no table of offsets has it"
    loaded = f"the libraries here are of {known_releases(rows)}" if rows else "no library here shows that it is of one"
    return f"offsets of {type_name} are known of {', '.join(names)}; {loaded}"


def is_known(type_name: str) -> bool:
    """Whether some table has this type."""
    return any(struct_named(row, type_name) is not None for row in RELEASES)


def only_with_debug_information(type_name: str) -> Optional[UsageError]:
    """Why a tensor's type cannot be read here; None of one that is no tensor's, or that a table of offsets has."""
    layout = layout_of(type_name)
    if layout is None or is_known(type_name):
        return None
    built = f"`gdbext doctor --how {layout.engine}` says how to build with it" if layout.engine in BUILT else ""
    return UsageError(
        f"no debug information about {type_name}, and offsets are known of none of its releases",
        "; ".join(filter(None, (built, "give the address of its values, --dtype and --shape"))),
    )


def short_name(row: ReleaseRow, struct: StructRow) -> str:
    return next((name for name, same in row.same.items() if same == struct.id and not name.endswith("_")), struct.id)


def object_problem(node: StructNode, described: Described) -> Optional[str]:
    """Why there is no such object, by what the table gives; None where it makes sense."""
    reason = _doubt_of_container(node)
    if reason is not None:
        return reason
    if isinstance(described, TensorInfo):
        if not described.kind:
            return described.problems[0]
        return _doubt_of_tensor(node, described)
    if isinstance(described.total, int) and described.total > len(described.entries) < 256:
        return f"{len(described.entries)} tensors where it says {described.total:,}"
    for entry in described.entries:
        if not entry.name.isprintable():
            return "an entry's name is not text"
        missing = next((one for one in (entry.shape, entry.where) if isinstance(one, Missing) and entry.kind), None)
        if missing is not None:
            return f"{entry.name}: {missing.reason}"
    return None


def _doubt_of_container(node: StructNode) -> Optional[str]:
    if node.member("_M_h") is not None:
        table = follow(node, "_M_h")
        if integer(table, ("_M_max_load_factor",)) != LOAD_FACTOR or not integer(table, ("_M_bucket_count",)):
            return "no hash map"
        count = integer(table, ("_M_element_count",))
        return f"{count:,} entries" if count > MOST_ENTRIES else None
    return _doubt_of_vector(node) if node.member("_M_impl") is not None else None


def _doubt_of_vector(vector: Node) -> Optional[str]:
    start, finish, end = (
        integer(vector, (f"_M_impl.{name}",)) for name in ("_M_start", "_M_finish", "_M_end_of_storage")
    )
    if start <= finish <= end and start % 8 == 0 and bool(start) >= bool(end):
        return None
    return "no vector"


def _doubt_of_tensor(node: StructNode, info: TensorInfo) -> Optional[str]:
    layout = layout_of(node.type_name)
    if layout is None:  # a smart pointer
        return _missing(info)
    if layout.dtype and isinstance(info.dtype, Missing):
        try:
            number = first_of(node, layout.dtype).integer()
        except Unreadable as error:
            return str(error)
        if not 0 <= number <= _LARGEST_DTYPE:
            return f"{number} is not an element type"
    if layout.place:
        place = first_of(node, layout.place).integer()
        if place not in PLACE_TABLES[layout.places].numbers:
            return f"{place} is not a kind of memory"
    for path in (*layout.shape, *layout.strides):
        try:
            reason = _doubt_of_vector(follow(node, path))
        except Unreadable:
            continue
        if reason is not None:
            return f"its shape is {reason}"
    return _missing(info) or _contradiction(info)


def _missing(info: TensorInfo) -> Optional[str]:
    for part, value in (("shape", info.shape), ("place", info.where)):
        if isinstance(value, Missing):
            return f"{part} unknown: {value.reason}"
    return None


def _contradiction(info: TensorInfo) -> Optional[str]:
    """A problem that only another layout explains, and no mistake of the program."""
    return next((one for one in info.problems if isinstance(one, Contradiction)), None)


def is_called(node: Node) -> bool:
    """Whether the name that an object gives itself is one; objects without names pass."""
    layout = layout_of(node.type_name)
    try:
        name = first_of(node, layout.name).text() if layout is not None and layout.name else "unnamed"
    except Unreadable:
        return False
    return bool(name) and str(name).isprintable()


def holds_up(seen: Seen, read: Read) -> bool:
    """Whether an object that nobody has named is one: everything in it must be as in a tensor in use."""
    if isinstance(seen.described, TensorInfo):
        return _in_use(seen.described, read)
    entries = seen.described.entries
    return bool(entries) and all(_in_use(entry, read) for entry in entries)


def _in_use(info: TensorInfo, read: Read) -> bool:
    dtype = dtype_named(info.dtype) if isinstance(info.dtype, str) else None
    if dtype is None or info.problems or not isinstance(info.shape, tuple) or not isinstance(info.address, int):
        return False
    if not 1 <= len(info.shape) <= _HIGHEST_RANK or not all(info.shape) or not isinstance(info.nbytes, int):
        return False
    if not 0 < info.nbytes < _LARGEST or not info.address:
        return False
    if str(info.where).startswith(("cpu", "pinned")):
        return read(info.address, 1) is not None and read(info.address + info.nbytes - 1, 1) is not None
    if not str(info.where).startswith("gpu"):
        return False
    return info.address < 1 << 48 and info.address % max(1, dtype.nbytes(1)) == 0


def shape_storage(node: Node) -> Optional[int]:
    """Where the numbers of a tensor's shape lie on the heap; None where they do not."""
    layout: Optional[TensorLayout] = layout_of(node.type_name)
    for path in layout.shape if layout is not None else ():
        try:
            return integer(node, (f"{path}._M_impl._M_start",))
        except Unreadable:
            continue
    return None


def is_freed(address: int, read: Read) -> bool:
    """Whether a piece of glibc's heap begins with the link of a free list (glibc 2.32 and newer): what was there is
    no more. The link is the next piece's address, folded with the place where it stands."""
    data = read(address, 8)
    if data is None:
        return True
    following = int.from_bytes(data, "little") ^ (address >> 12)
    return not following or (following % _CHUNK == 0 and following >> 12 != 0 and read(following, 8) is not None)
