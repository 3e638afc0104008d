"""Follows member paths through smart pointers and containers, as rows of `knowledge.engines` describe them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple, TypeVar

from gdbext.inside_gdb.tensors.target_object import NAME_CAP, Node, Null, Unreadable, unpack_integers, without_arguments
from gdbext.knowledge.all_tensor_layouts import DICTS, GRAPHS, SEQUENCES, WRAPPERS
from gdbext.knowledge.row_kinds import DictRow, GraphRow, SequenceRow, WrapperRow

MOST_PEELS = 16
MOST_INTEGERS = 64
"""Dimensions of a tensor; longer vectors come from garbage."""
_LARGEST_COUNT = 1 << 40
_LARGEST_GRAPH = 1 << 16
_NODE_LINKS = 32  # bytes of a tree node's colour and links

Row = TypeVar("Row", WrapperRow, SequenceRow, DictRow, GraphRow)


class NoMember(Unreadable):
    """The type has no such member: another release, or another type."""


@lru_cache(maxsize=None)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def matches(pattern: str, type_name: str) -> bool:
    """Whether a row is about a type; template arguments do not count."""
    return bool(_pattern(pattern).fullmatch(without_arguments(type_name)))


def _rows(rows: Sequence[Row], node: Node) -> Iterator[Row]:
    return (row for row in rows if matches(row.type, node.type_name))


def follow(node: Node, path: str) -> Node:
    """The node at the end of a path. Pointers and wrappers on the way are looked through. Raises `Unreadable`."""
    for step in path.split("."):
        node = _base(node, step[1:-1]) if step.startswith("<") else _member(node, step)
    return node


def _base(node: Node, prefix: str) -> Node:
    found = node.base(prefix)
    if found is None:
        raise NoMember(f"{node.type_name[:NAME_CAP]} has no base {prefix}")
    return found


def _member(node: Node, name: str) -> Node:
    for _ in range(MOST_PEELS):
        found = node.member(name)
        if found is not None:
            return found
        inner = unwrap_layer(node)
        if inner is None:
            raise NoMember(f"{node.type_name[:NAME_CAP]} has no member {name}")
        node = inner
    raise Unreadable("an endless chain of pointers")


def first_of(node: Node, paths: Sequence[str]) -> Node:
    """The end of the first path that the type has. Raises `Unreadable`."""
    problem: Unreadable = NoMember("not known")
    for path in paths:
        try:
            return follow(node, path)
        except NoMember as error:
            problem = error
    raise problem


def unwrap_layer(node: Node) -> Optional[Node]:
    """What a pointer or wrapper holds, one layer; None when it is neither. Raises `Null`, `Unreadable`."""
    for row in _rows(WRAPPERS, node):
        inner = _held(node, row)
        if inner is not None:
            return inner
    return node.target()


def _held(node: Node, row: WrapperRow) -> Optional[Node]:
    inner = _plain(node, row.inner)
    if inner is None:
        return None
    if row.engaged:
        flag = _plain(node, (row.engaged,))
        if flag is not None and not flag.integer():
            raise Null(f"empty {without_arguments(node.type_name)}")
    return address_node(inner).cast(row.cast) if row.cast else inner


def _plain(node: Node, paths: Sequence[str]) -> Optional[Node]:
    """The first path that the type itself has: what is inside is not looked through."""
    for path in paths:
        here: Optional[Node] = node
        for step in path.split("."):
            if here is not None:
                here = here.base(step[1:-1]) if step.startswith("<") else here.member(step)
        if here is not None:
            return here
    return None


def address_node(node: Node) -> Node:
    """The pointer inside of any number of smart pointers."""
    for _ in range(MOST_PEELS):
        inner = next((held for row in _rows(WRAPPERS, node) for held in [_held(node, row)] if held is not None), None)
        if inner is None:
            return node
        node = inner
    raise Unreadable("an endless chain of pointers")


def integer(node: Node, paths: Sequence[str]) -> int:
    """A number or an address at the first path that the type has."""
    return address_node(first_of(node, paths)).integer()


def integers(node: Node, path: str) -> Tuple[int, ...]:
    """The integers of an array or container; `:N` behind the path takes part N. Raises `Unreadable`."""
    path, _, part = path.partition(":")
    holder = follow(node, path)
    for _ in range(MOST_PEELS):
        if holder.length() is not None:
            return holder.integers(_checked(holder.length() or 0))
        for row in _rows(SEQUENCES, holder):
            try:
                return _integers_of(holder, row, int(part or 0))
            except NoMember:
                continue
        inner = unwrap_layer(holder)
        if inner is None:
            raise Unreadable(f"{holder.type_name[:NAME_CAP]} is not a sequence")
        holder = inner
    raise Unreadable("an endless chain of pointers")


def _integers_of(holder: Node, row: SequenceRow, part: int) -> Tuple[int, ...]:
    begin = follow(holder, row.begin)
    count = _checked(_count(holder, row, begin))
    if row.parts == 1:
        return begin.integers(count)
    if count <= row.inside_items:
        return follow(holder, row.inside).integers(count, part * row.inside_items)
    return begin.integers(count, part * count)


def _count(holder: Node, row: SequenceRow, begin: Node) -> int:
    if row.count:
        return integer(holder, (row.count,))
    if not row.end:
        return begin.length() or 0
    size = begin.item_size()
    between = follow(holder, row.end).integer() - begin.integer()
    if between < 0 or size <= 0 or between % size:
        raise Unreadable("a vector whose end lies before its begin" if between < 0 else "a corrupt vector")
    return between // size


def _checked(count: int) -> int:
    if not 0 <= count <= MOST_INTEGERS:
        raise Unreadable(f"{count:,} dimensions: not a tensor")
    return count


def items(node: Node, most: int) -> Optional[Tuple[Tuple[Node, ...], int]]:
    """The first objects of a container, and how many it has; None for what is no container of objects."""
    if node.length() is not None:
        return node.items(None, most), node.length() or 0
    for row in _rows(SEQUENCES, node):
        if row.parts > 1:
            continue
        try:
            begin = follow(node, row.begin)
            count = _count(node, row, begin)
            if count < 0 or count > _LARGEST_COUNT:
                raise Unreadable(f"{count:,} items: not a container")
            return (begin.items(count, most) if count else ()), count
        except NoMember:
            continue
    return None


def entries(node: Node, most: int) -> Optional[Tuple[List[Tuple[str, Node]], Optional[int]]]:
    """Keys and values of a map in its own order, and how many it says it has; None for what is no map."""
    for row in _rows(DICTS, node):
        try:
            first = follow(node, row.first)
            total = integer(node, (row.count,)) if row.count else None
        except NoMember:
            continue
        walk = _WALKS[row.kind]
        return [_entry(node, place + row.payload) for place in walk(node, first.integer(), most)], total
    return None


def members_of_graph(node: Node, most: int, only: str = "") -> Optional[Tuple[List[Tuple[str, Node]], int]]:
    """The tensors of a graph by name (only those called `only`), and how many it has; None for what is no graph.

    A tensor without a name is called by its place, like `nodes[3]`.
    """
    row = next(_rows(GRAPHS, node), None)
    if row is None:
        return None
    found: List[Tuple[str, Node]] = []
    total = 0
    for pointer, number in row.lists:
        count = integer(node, (number,))
        if not 0 <= count <= _LARGEST_GRAPH:
            raise Unreadable(f"{count:,} {pointer}: not a graph")
        total += count
        room = count if only else most - len(found)
        for place, tensor in enumerate(follow(node, pointer).items(count, room) if count else ()):
            name = _called(tensor, row) or f"{pointer}[{place}]"
            if not only or only == name:
                found.append((name, tensor))
    return found[:most], total


def _called(tensor: Node, row: GraphRow) -> str:
    try:
        return first_of(tensor, (row.name,)).text() or ""
    except Unreadable:
        return ""


def _entry(node: Node, address: int) -> Tuple[str, Node]:
    key, size = node.of_argument(0, address)
    text = key.text()
    if text is None:
        text = str(key.integer())
    value, _ = node.of_argument(1, address + -(-size // 8) * 8)
    return text, value


def _words(node: Node, address: int, count: int) -> Tuple[int, ...]:
    data = node.read(address, 8 * count)
    if data is None:
        raise Unreadable(f"a map's node lies in unreadable memory at {address:#x}")
    return unpack_integers(data, 8, False)


def _chain(node: Node, address: int, most: int) -> List[int]:
    """Addresses of list nodes; a ring ends the walk."""
    found: Dict[int, None] = {}
    while address and address not in found and len(found) < most:
        next_one = _words(node, address, 1)[0]
        found[address] = None
        address = next_one
    return list(found)


def _tree(node: Node, root: int, most: int) -> List[int]:
    """Addresses of tree nodes in order; nodes that were seen already (a corrupt tree) are not entered again."""
    found: List[int] = []
    seen: Set[int] = set()
    stack: List[int] = []
    here = root
    while (stack or here) and len(found) < most and len(seen) < 4 * most:
        while here and here not in seen and len(seen) < 4 * most:
            seen.add(here)
            stack.append(here)
            here = _words(node, here, _NODE_LINKS // 8)[2]
        if not stack:
            break
        place = stack.pop()
        found.append(place)
        here = _words(node, place, _NODE_LINKS // 8)[3]
    return found


_WALKS: Dict[str, Callable[[Node, int, int], List[int]]] = {"list": _chain, "tree": _tree}
