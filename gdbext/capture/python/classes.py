"""Classes of another process's Python: what a type object says of its instances, by its memory alone."""

from __future__ import annotations

import struct
from typing import Dict, Iterable, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.python.containers import Containers, Pair
from gdbext.knowledge.runtimes.cpython import OBJECT_TYPE, TYPE_NAME
from gdbext.knowledge.runtimes.cpython_objects import (
    CLASS,
    CLASS_OF_CLASSES,
    DEQUES,
    HEAP_CLASS,
    HOLDERS_IN_C,
    LIST_CLASS,
    PROXIES,
    REFERENCES,
    TUPLE_CLASS,
)

MOST_NAMES = 1 << 12  # of a class or an instance
MOST_BASES = 64
_LONGEST_NAME = 128


class Class(NamedTuple):
    """What a type object says of its instances."""

    address: int
    name: str  # without the module
    full_name: str  # as the class says it: with the module where it was written in C
    flags: int
    basic_size: int
    item_size: int
    dictionary: int
    dict_offset: int
    mro: int


class Classes:
    """Reads classes and remembers them."""

    def __init__(self, containers: Containers) -> None:
        self.containers = containers
        self.pages = containers.pages
        self._classes: Dict[int, Optional[Class]] = {}
        self._orders: Dict[int, Tuple[Class, ...]] = {}
        self._names: Dict[int, Dict[str, int]] = {}

    def class_of(self, address: int) -> Optional[Class]:
        """The class of an object; None of what is no object (any more)."""
        data = self.pages.read(address, 16) if address else None
        if data is None or not struct.unpack_from("<I", data)[0]:
            return None  # nobody refers to it: it was freed
        return self._class(struct.unpack_from("<Q", data, OBJECT_TYPE)[0])

    def _class(self, address: int) -> Optional[Class]:
        if address not in self._classes:
            self._classes[address] = self._read_class(address)
        return self._classes[address]

    def _read_class(self, address: int) -> Optional[Class]:
        data = self.pages.read(address, CLASS.size) if address else None
        if data is None:
            return None
        of_classes = self.pages.word(struct.unpack_from("<Q", data, OBJECT_TYPE)[0] + CLASS.flags)
        if not of_classes or not of_classes & CLASS_OF_CLASSES:
            return None
        name = self._c_string(struct.unpack_from("<Q", data, TYPE_NAME)[0])
        if not name:
            return None
        return Class(
            address=address,
            name=name.rpartition(".")[2] if name not in PROXIES else name,
            full_name=name,
            flags=struct.unpack_from("<Q", data, CLASS.flags)[0],
            basic_size=struct.unpack_from("<q", data, CLASS.basic_size)[0],
            item_size=struct.unpack_from("<q", data, CLASS.item_size)[0],
            dictionary=struct.unpack_from("<Q", data, CLASS.dictionary)[0],
            dict_offset=struct.unpack_from("<q", data, CLASS.dict_offset)[0],
            mro=struct.unpack_from("<Q", data, CLASS.mro)[0],
        )

    def _c_string(self, place: int) -> str:
        for size in (_LONGEST_NAME, 64, 16):
            data = self.pages.read(place, size)
            if data is not None:
                text = data.split(b"\0", 1)[0].decode("utf-8", "replace")
                return "".join(one if one.isprintable() else "?" for one in text)
        return ""

    def name_of(self, address: int) -> str:
        """The name of an object's class, without the module; "" of what is no object."""
        one = self.class_of(address)
        return one.name if one is not None else ""

    def order_of(self, one: Class) -> Tuple[Class, ...]:
        """The class and its bases, in the order of Python; nothing when one cannot be read."""
        if one.address not in self._orders:
            bases = self.containers.elements(one.mro, False, 0, MOST_BASES) if one.mro else ()
            found = tuple(base for base in map(self._class, bases) if base is not None)
            self._orders[one.address] = found if len(found) == len(bases) else ()
        return self._orders[one.address]

    def is_one_of(self, one: Class, names: Iterable[str]) -> bool:
        """Whether it is one of these classes, or derived of one; names as the classes say them."""
        return any(base.full_name in names for base in self.order_of(one))

    def is_sequence(self, one: Class) -> bool:
        """Whether its instances have items by number: list, tuple, deque."""
        return bool(one.flags & (LIST_CLASS | TUPLE_CLASS)) or self.is_one_of(one, DEQUES)

    def sequence(self, address: int, one: Class, first: int, most: int) -> Sequence[int]:
        """At most so many items of a list, a tuple or a deque from the one with the number `first` on."""
        if one.flags & (LIST_CLASS | TUPLE_CLASS):
            return self.containers.elements(address, bool(one.flags & LIST_CLASS), first, most)
        return self.containers.queued(address, first, most)

    def keeps_attributes(self, one: Class) -> bool:
        """Whether programs give its instances attributes."""
        return bool(one.flags & HEAP_CLASS) or self.is_one_of(one, HOLDERS_IN_C)

    def referred(self, address: int, one: Class) -> Optional[int]:
        """What a weak reference refers to; None of anything else."""
        row = next((base.full_name for base in self.order_of(one) if base.full_name in REFERENCES), "")
        return self.pages.word(address + REFERENCES[row]) if row else None

    def names_of_class(self, one: Class) -> Dict[str, int]:
        """What the class itself defines."""
        if one.address not in self._names:
            pairs = self.containers.pairs(one.dictionary, MOST_NAMES) if one.dictionary else ()
            self._names[one.address] = self.by_name(pairs)
        return self._names[one.address]

    def by_name(self, pairs: Iterable[Pair]) -> Dict[str, int]:
        """The pairs whose keys are texts; the first of several that read alike."""
        found: Dict[str, int] = {}
        for key, value in pairs:
            name = self.containers.text(key)
            if name is not None:
                found.setdefault(name, value)
        return found
