"""An object of the target as gdb's debug information describes it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Dict, FrozenSet, Iterator, Optional, Set, Tuple

import gdb

from gdbext.inside_gdb.base.values import read_text
from gdbext.inside_gdb.tensors.target_object import (
    NAME_CAP,
    Node,
    Null,
    Read,
    Unreadable,
    one_line,
    same_everywhere,
    unpack_integers,
)

_REFERENCES = (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)
_NUMBERS = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_PTR)
_AGGREGATES = (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION)


@contextmanager
def _gdb() -> Iterator[None]:
    """What gdb raises inside becomes `Unreadable`."""
    try:
        yield
    except (gdb.error, RuntimeError, ValueError, OverflowError, TypeError) as error:
        raise Unreadable(one_line(error)) from None


class ValueNode(Node):
    """A gdb.Value. References are followed at once."""

    def __init__(self, value: gdb.Value, read: Read) -> None:
        self.read = read
        with _gdb():
            for _ in range(4):
                if value.type.strip_typedefs().code not in _REFERENCES:
                    break
                value = value.referenced_value()
            self.value = value
            self.type = value.type.strip_typedefs().unqualified()
            self.type_name = same_everywhere(self.type.name or self.type.tag or str(self.type))
            place = value.address
            self.address = None if place is None else int(place)

    @property
    def is_pointer(self) -> bool:
        return bool(self.type.code == gdb.TYPE_CODE_PTR)

    @property
    def is_scalar(self) -> bool:
        """A number, a truth value or an enumerator: nothing can be inside."""
        return self.type.code in _NUMBERS and not self.is_pointer

    def _node(self, value: gdb.Value) -> ValueNode:
        return ValueNode(value, self.read)

    def member(self, name: str) -> Optional[Node]:
        if self.type.code not in _AGGREGATES or not _has_field(self.type, name):
            return None
        with _gdb():
            return self._node(self.value[name])

    def base(self, prefix: str) -> Optional[Node]:
        for one in self.bases():
            if one.type_name.startswith(prefix):
                return one
            deeper = one.base(prefix)
            if deeper is not None:
                return deeper
        return None

    def bases(self) -> Iterator[Node]:
        if self.type.code != gdb.TYPE_CODE_STRUCT:
            return
        for field in self.type.fields():
            if field.is_base_class:
                with _gdb():
                    base = self._node(self.value[field])
                yield base

    def target(self) -> Optional[Node]:
        if not self.is_pointer or self.type.target().strip_typedefs().code in (gdb.TYPE_CODE_VOID, gdb.TYPE_CODE_FUNC):
            return None
        address = self.integer()
        if not address:
            raise Null("null pointer")
        if self.read(address, 1) is None:
            raise Unreadable(f"points to unreadable memory at {address:#x}")
        with _gdb():
            return self._node(self.value.dereference())

    def integer(self) -> int:
        if self.type.code not in _NUMBERS:
            raise Unreadable(f"{self.type_name[:NAME_CAP]} is not a number")
        with _gdb():
            return int(self.value)

    def enumerator(self) -> Optional[str]:
        return None if self.type.code != gdb.TYPE_CODE_ENUM else _enumerators(self.type).get(self.integer())

    def length(self) -> Optional[int]:
        if self.type.code != gdb.TYPE_CODE_ARRAY:
            return None
        low, high = self.type.range()
        return int(high) - int(low) + 1

    def items(self, count: Optional[int], most: int) -> Tuple[Node, ...]:
        found = []
        for number in range(min(most, self.length() or 0 if count is None else count)):
            with _gdb():
                found.append(self._node(self.value[number]))
        return tuple(found)

    def item_size(self) -> int:
        if self.type.code not in (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_ARRAY):
            raise Unreadable(f"{self.type_name[:NAME_CAP]} is not a sequence")
        return int(self.type.target().strip_typedefs().sizeof)

    def integers(self, count: int, skip: int = 0) -> Tuple[int, ...]:
        size = self.item_size()
        item = self.type.target().strip_typedefs()
        if item.code == gdb.TYPE_CODE_STRUCT and len(item.fields()) == 1:  # c10::SymInt
            item = item.fields()[0].type.strip_typedefs()
        if item.code not in _NUMBERS or item.sizeof != size:
            raise Unreadable(f"{str(item)[:NAME_CAP]} is not a number")
        if not self.is_pointer and self.address is None:
            return tuple(int(self.value[skip + number]) for number in range(count))
        start = self.integer() if self.is_pointer else self.address
        assert start is not None
        data = self.read(start + skip * size, count * size) if count else b""
        if data is None:
            raise Unreadable(f"unreadable memory at {start:#x}")
        return unpack_integers(data, size, _is_signed(item))

    def text(self) -> Optional[str]:
        kind = self.type
        if kind.code == gdb.TYPE_CODE_ARRAY and kind.target().strip_typedefs().sizeof == 1 and self.address:
            data = self.read(self.address, min(int(kind.sizeof), NAME_CAP)) or b""
            return data.split(b"\0", 1)[0].decode("utf-8", "replace")
        if kind.code == gdb.TYPE_CODE_STRUCT and _has_field(kind, "_M_string_length"):
            with _gdb():
                length, start = int(self.value["_M_string_length"]), int(self.value["_M_dataplus"]["_M_p"])
            if not 0 <= length < 1 << 24:
                raise Unreadable("corrupt string")
            found = read_text(start, length)
            return found if isinstance(found, str) else None
        return None

    def cast(self, type_name: str) -> Node:
        return self.at(self.integer(), type_name)

    def at(self, address: int, type_name: str) -> ValueNode:
        """The object of a named type at an address."""
        with _gdb():
            kind = gdb.lookup_type(type_name)
            return self._node(gdb.Value(address).cast(kind.pointer()).dereference())

    def dynamic(self) -> Node:
        with _gdb():
            kind = self.value.dynamic_type
            if self.address is None or kind == self.value.type:
                return self
            return self._node(self.value.cast(kind))

    def of_argument(self, number: int, address: int) -> Tuple[ValueNode, int]:
        """The object at an address that has the type of a template argument, and that type's size."""
        with _gdb():
            kind = self.type.template_argument(number)
            value = gdb.Value(address).cast(kind.pointer()).dereference()
            return self._node(value), int(kind.strip_typedefs().sizeof)

    def fields(self) -> Iterator[Tuple[str, ValueNode]]:
        """Data members with their names, those of base classes first; without static ones."""
        if self.type.code not in _AGGREGATES:
            return
        for field in self.type.fields():
            if not hasattr(field, "bitpos"):  # static
                continue
            try:
                node = self._node(self.value[field])
            except (gdb.error, RuntimeError, Unreadable, TypeError):  # TypeError: a capture of a lambda, gdb 13
                continue
            if field.is_base_class:
                yield from node.fields()
            elif field.name:
                yield field.name, node


def _has_field(kind: gdb.Type, name: str) -> bool:
    return name in _field_names(kind)


_FIELDS: Dict[str, FrozenSet[str]] = {}


def _field_names(kind: gdb.Type) -> FrozenSet[str]:
    """Names of members with those of base classes. Kept by the type's text and size: asking gdb each time is slow."""
    key = f"{kind.name or kind.tag}/{kind.sizeof}" if (kind.name or kind.tag) else ""
    known = _FIELDS.get(key)
    if known is not None and key:
        return known
    names: Set[str] = set()
    for field in kind.fields():
        if field.is_base_class:
            names |= _field_names(field.type.strip_typedefs())
        elif field.name:
            names.add(field.name)
        elif field.type is not None and field.type.strip_typedefs().code in _AGGREGATES:  # an anonymous union
            names |= _field_names(field.type.strip_typedefs())
    if len(_FIELDS) > 4096:
        _FIELDS.clear()
    _FIELDS[key] = frozenset(names)
    return _FIELDS[key]


def _enumerators(kind: gdb.Type) -> Dict[int, str]:
    found: Dict[int, str] = {}
    for field in kind.fields():  # of aliases the first one counts
        found.setdefault(int(field.enumval), str(field.name).rsplit("::", 1)[-1])
    return found


def _is_signed(kind: gdb.Type) -> bool:
    if kind.code == gdb.TYPE_CODE_PTR:
        return False
    signed = getattr(kind, "is_signed", None)  # gdb 12
    if signed is not None:
        return bool(signed)
    return "unsigned" not in str(kind) and kind.code != gdb.TYPE_CODE_BOOL
