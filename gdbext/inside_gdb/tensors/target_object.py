"""One object of the target, whichever way its members are found: by debug information, or by a table of offsets.

Layout rows are followed over these nodes. Nothing is called in the target. What cannot be had raises `Unreadable`
with the reason in one line.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from typing import Callable, Iterator, Mapping, Optional, Tuple

from gdbext.knowledge.row_kinds import Field, StructRow

Read = Callable[[int, int], Optional[bytes]]
"""Bytes at an address; None when not all of them can be read."""

NAME_CAP = 200
_INLINE_NAMESPACES = re.compile(r"(?<=::)(?:_v1|__cxx11|__1|__ndk1|_V2)::")
_SCALARS = {f"{sign}{8 * size}": (size, sign == "i") for size in (1, 2, 4, 8) for sign in "iu"}
_FORMATS = {(1, True): "b", (2, True): "h", (4, True): "i", (8, True): "q"}
_FORMATS.update({(size, False): code.upper() for (size, _), code in list(_FORMATS.items())})


class Unreadable(Exception):
    """Why something of the target could not be had: optimised out, a null pointer, unreadable memory, ..."""


class Null(Unreadable):
    """A null pointer, or a holder that holds nothing."""


@lru_cache(maxsize=4096)
def same_everywhere(name: str) -> str:
    """A type's name without the inline namespaces that only mark versions."""
    return _INLINE_NAMESPACES.sub("", name)


@lru_cache(maxsize=4096)
def without_arguments(name: str) -> str:
    """`std::vector<int>` as `std::vector`; of a class inside of a template all of the name that stands outside."""
    if "<" not in name:
        return name
    depth, kept = 0, []
    for character in name:
        depth += (character == "<") - (character == ">")
        if not depth and character != ">":
            kept.append(character)
    return "".join(kept)


class Node:
    """What the reader asks of an object. `type_name` is without cv, references, typedefs and inline namespaces."""

    type_name = ""
    address: Optional[int] = None
    read: Read

    @property
    def is_pointer(self) -> bool:
        return False

    @property
    def is_scalar(self) -> bool:
        """A number, a truth value or an enumerator: nothing can be inside."""
        return False

    def member(self, name: str) -> Optional[Node]:
        """A member, also an inherited one; None when the type has none of that name."""
        raise NotImplementedError

    def base(self, prefix: str) -> Optional[Node]:
        """The base class subobject whose name starts like this, at any depth."""
        return None

    def bases(self) -> Iterator[Node]:
        """Direct base classes."""
        return iter(())

    def target(self) -> Optional[Node]:
        """What a pointer points to; None for what is no pointer to an object. Raises `Null`."""
        raise NotImplementedError

    def integer(self) -> int:
        """A number, an enumerator's number or an address."""
        raise NotImplementedError

    def enumerator(self) -> Optional[str]:
        """The name without scope; None when there is none for the number."""
        return None

    def items(self, count: Optional[int], most: int) -> Tuple[Node, ...]:
        """The first objects at a pointer, or in an array (whose length counts when `count` is None)."""
        raise NotImplementedError

    def length(self) -> Optional[int]:
        """Of an array."""
        return None

    def integers(self, count: int, skip: int = 0) -> Tuple[int, ...]:
        """Integers at a pointer or in an array, in one read."""
        raise NotImplementedError

    def item_size(self) -> int:
        """Bytes from one item of a pointer or array to the next."""
        raise NotImplementedError

    def text(self) -> Optional[str]:
        """An array of characters."""
        return None

    def cast(self, type_name: str) -> Node:
        """The target of this pointer as an object of another type. Raises `Unreadable` when the type is not known."""
        raise NotImplementedError

    def dynamic(self) -> Node:
        """The same object as the class it really is, as far as its virtual table says."""
        return self

    def template_argument(self, number: int) -> Optional[int]:
        """A number among the template arguments."""
        return None

    def of_argument(self, number: int, address: int) -> Tuple[Node, int]:
        """The object at an address that has the type of a template argument, and that type's size."""
        raise Unreadable(f"{self.type_name[:NAME_CAP]} is not a template")

    def fields(self) -> Iterator[Tuple[str, Node]]:
        """Data members with their names, those of base classes first; without static ones."""
        return iter(())


def unpack_integers(data: bytes, size: int, signed: bool) -> Tuple[int, ...]:
    code = _FORMATS.get((size, signed))
    if code is None:
        raise Unreadable(f"integers of {size} bytes")
    return struct.unpack(f"<{len(data) // size}{code}", data)


def one_line(error: Exception) -> str:
    """gdb's words on one line; `optimized out` as people know it."""
    text = " ".join(str(error).split())
    return "optimized out" if "optimized out" in text else text[:160] or type(error).__name__


class StructNode(Node):
    """An object without debug information, read by the offsets of a `StructRow`."""

    def __init__(self, address: int, row: StructRow, rows: Mapping[str, StructRow], read: Read) -> None:
        self.address = address
        self.type_name = row.id
        self._row, self._rows, self.read = row, rows, read

    @property
    def size(self) -> int:
        """Bytes of the object; of a class derived of it, what is its own stands behind them."""
        return self._row.size

    def offset(self, name: str) -> int:
        """Of a member."""
        return self._row.fields[name].offset

    def like(self, address: int) -> StructNode:
        """Another object of the same type."""
        return StructNode(address, self._row, self._rows, self.read)

    def member(self, name: str) -> Optional[Node]:
        field = self._row.fields.get(name)
        if field is None:
            return None
        assert self.address is not None
        place = self.address + field.offset
        inner = self._rows.get(field.type)
        if inner is not None:
            return StructNode(place, inner, self._rows, self.read)
        return _FieldNode(place, field, self._rows, self.read)

    def of_argument(self, number: int, address: int) -> Tuple[Node, int]:
        row = self._rows.get(self._row.arguments[number]) if number < len(self._row.arguments) else None
        if row is None:
            raise Unreadable(f"what {self.type_name[:NAME_CAP]} holds is not known")
        return StructNode(address, row, self._rows, self.read), row.size

    def text(self) -> Optional[str]:
        if "_M_string_length" not in self._row.fields:
            return None
        assert self.address is not None
        data = self.read(self.address, 16)
        if data is None:
            raise Unreadable(f"unreadable memory at {self.address:#x}")
        start, length = unpack_integers(data, 8, False)
        if length >= 1 << 24:
            raise Unreadable("corrupt string")
        found = self.read(start, min(length, NAME_CAP))
        return None if found is None else found.decode("utf-8", "replace")

    def target(self) -> Optional[Node]:
        return None

    def integer(self) -> int:
        raise Unreadable(f"{self.type_name} is not a number")

    def items(self, count: Optional[int], most: int) -> Tuple[Node, ...]:
        raise Unreadable(f"{self.type_name} is not a sequence")

    def integers(self, count: int, skip: int = 0) -> Tuple[int, ...]:
        raise Unreadable(f"{self.type_name} is not a sequence")


class _FieldNode(Node):
    """A scalar, a pointer or an array of scalars inside a `StructNode`."""

    def __init__(self, address: int, field: Field, rows: Mapping[str, StructRow], read: Read) -> None:
        self.address = address
        self.type_name = field.to if field.type == "pointer" else field.type
        self._field, self._rows, self.read = field, rows, read

    @property
    def is_pointer(self) -> bool:
        return self._field.type == "pointer"

    @property
    def is_scalar(self) -> bool:
        return not self.is_pointer

    def member(self, name: str) -> Optional[Node]:
        return None

    def target(self) -> Optional[Node]:
        row = self._rows.get(self._field.to)
        if self._field.type != "pointer" or row is None:
            return None
        address = self.integer()
        if not address:
            raise Null("null pointer")
        return StructNode(address, row, self._rows, self.read)

    def integer(self) -> int:
        size, signed = _SCALARS.get(self._field.type, (8, False))
        return self._integers_at(self.address or 0, 1, size, signed)[0]

    def length(self) -> Optional[int]:
        return self._field.count or None

    def integers(self, count: int, skip: int = 0) -> Tuple[int, ...]:
        pointer = self._field.type == "pointer"
        size, signed = _SCALARS.get(self._field.to if pointer else self._field.type, (8, False))
        start = self.integer() if pointer else self.address or 0
        return self._integers_at(start + skip * size, count, size, signed)

    def item_size(self) -> int:
        pointer = self._field.type == "pointer"
        if pointer and self._field.to in self._rows:
            return self._rows[self._field.to].size
        return _SCALARS.get(self._field.to if pointer else self._field.type, (8, False))[0]

    def _integers_at(self, address: int, count: int, size: int, signed: bool) -> Tuple[int, ...]:
        data = self.read(address, count * size) if count else b""
        if data is None:
            raise Unreadable(f"unreadable memory at {address:#x}")
        return unpack_integers(data, size, signed)

    def items(self, count: Optional[int], most: int) -> Tuple[Node, ...]:
        row = self._rows.get(self._field.to.rstrip("*"))
        if row is None or count is None:
            raise Unreadable("no sequence of objects")
        if not self._field.to.endswith("*"):
            start = self.integer()
            places = range(start, start + row.size * min(count, most), row.size)
            return tuple(StructNode(place, row, self._rows, self.read) for place in places)
        addresses = self._integers_at(self.integer(), min(count, most), 8, False)
        return tuple(StructNode(address, row, self._rows, self.read) for address in addresses)

    def text(self) -> Optional[str]:
        if self._field.type != "char":
            return None
        data = self.read(self.address or 0, min(self._field.count, NAME_CAP)) or b""
        return data.split(b"\0", 1)[0].decode("utf-8", "replace")
