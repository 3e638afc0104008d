"""Attributes and items of another process's Python objects by its memory alone: what a call would have to say is not
guessed, it is refused with the reason."""

from __future__ import annotations

import difflib
import struct
from typing import Dict, Iterator, List, Optional, Tuple, Union

from gdbext.capture.python.classes import MOST_BASES, MOST_NAMES, Class, Classes
from gdbext.capture.python.containers import Pair
from gdbext.knowledge.runtimes.cpython_objects import (
    ATTRIBUTES_IN,
    DICT_CLASS,
    FIELD_OF_A_NAMED_TUPLE,
    HEAP_CLASS,
    HOLDERS_IN_C,
    INLINE_VALUES,
    ITEMS_BY_ATTRIBUTE,
    ITEMS_IN,
    LENGTH_IN,
    MANAGED_DICT,
    MANAGED_DICT_AT,
    MANAGED_VALUES_AT,
    MEMBER,
    MEMBER_OBJECTS,
    MEMBER_OFFSET,
    MEMBER_TYPE,
    MEMBERS_IN_C,
    OWN_ITEMS,
    PROXIES,
    TEXT_OF_NUMBERS,
)
from gdbext.model.missing import Missing

MOST_KEYS = 1 << 16  # of a dictionary that are compared with the one that is looked for
_NEEDS_A_CALL = "reading it needs a call"

_METHODS = ("function", "method_descriptor", "classmethod", "staticmethod", "wrapper_descriptor")

Found = Union[int, Missing]
"""The address of an object, or why there is none."""
Key = Union[str, int]
"""Of an item: what stands in the brackets."""


class Attributes(Classes):
    """Follows names and keys from one object to the next."""

    def own(self, address: int, one: Class) -> Iterator[Pair]:
        """Names and values of what an instance itself keeps, without its slots."""
        containers, word = self.containers, self.pages.word
        kind = containers.row.instances
        if one.flags & MANAGED_DICT and kind:
            dictionary = word(address + MANAGED_DICT_AT) or 0
            values = 0
            if kind == "two-pointers":
                values = word(address + MANAGED_VALUES_AT) or 0
            elif kind == "one-pointer" and dictionary & 1:
                values, dictionary = dictionary + 1, 0
            elif kind == "inside" and one.flags & INLINE_VALUES:
                header = self.pages.read(address + one.basic_size, 4)
                values = address + one.basic_size + containers.row.values if header and header[3] else 0
            if values:
                keys = word(one.address + containers.row.cached_keys)
                return containers.with_values(keys, values, MOST_NAMES) if keys else iter(())
        else:
            at = one.dict_offset
            if at < 0:
                items = abs(struct.unpack("<q", self.pages.read(address + 16, 8) or bytes(8))[0])
                at += (one.basic_size + items * one.item_size + 7) & ~7 if items < 1 << 40 else 0
            dictionary = word(address + at) or 0 if at > 0 else 0
        return containers.pairs(dictionary, MOST_NAMES) if dictionary else iter(())

    def slots(self, address: int, one: Class) -> Iterator[Tuple[str, int]]:
        """Names and values of the slots that hold something."""
        for base in self.order_of(one):
            own = base.flags & HEAP_CLASS or base.full_name in HOLDERS_IN_C
            for name, value in self.names_of_class(base).items() if own else ():
                if not name.startswith("__") and self.name_of(value) == "member_descriptor":
                    found = self._slot(value, address)
                    if found:
                        yield name, found

    def attributes(self, address: int, one: Class) -> Dict[str, int]:
        """What `.NAME` gives without a call: of the instance, and of what an nn.Module keeps in dictionaries."""
        found = self.by_name(self.own(address, one))
        for name, value in self.slots(address, one):
            found.setdefault(name, value)
        for inner in ATTRIBUTES_IN:
            held = found.get(inner)
            if held and self._is(held, DICT_CLASS):
                for name, value in self.by_name(self.containers.pairs(held, MOST_NAMES)).items():
                    found.setdefault(name, value)
        return found

    def attribute(self, address: int, name: str) -> Found:
        """What `object.NAME` is."""
        address = self.behind_proxies(address)
        one = self.class_of(address)
        if one is None:
            return Missing("its memory holds no Python object any more")
        order = self.order_of(one)
        if not order:
            return Missing(f"the class {one.name} cannot be read")
        if name in MEMBERS_IN_C.get(one.full_name, ()):
            return self.pages.word(address + MEMBERS_IN_C[one.full_name][name]) or Missing(f"{name} holds nothing")
        of_class = next((self.names_of_class(base)[name] for base in self.order_of(one)
                         if name in self.names_of_class(base)), 0)  # fmt: skip
        kind = self.name_of(of_class)
        if of_class and not kind:
            return Missing(f"what {one.name} says of {name} cannot be read")
        if kind == "member_descriptor":
            return self._slot(of_class, address) or Missing(f"the slot {name} of a {one.name} is not set")
        if kind == "property":
            return Missing(f"{name} is a property of {one.name}: {_NEEDS_A_CALL}")
        if kind == "getset_descriptor":
            return Missing(f"{name} of {one.name} is made by C code: {_NEEDS_A_CALL}")
        found = self.attributes(address, one)
        if name in found:
            return found[name]
        if kind == "_tuplegetter":
            (number,) = struct.unpack("<q", self.pages.read(of_class + FIELD_OF_A_NAMED_TUPLE, 8) or bytes(8))
            return next(iter(self.containers.elements(address, False, number, 1)), Missing("a field that is not there"))
        if kind == "cached_property":
            return Missing(f"{name} is a cached property of {one.name} that has no value yet: {_NEEDS_A_CALL}")
        if of_class and kind not in _METHODS:
            return of_class
        if of_class:
            return Missing(f"{name} is a method of {one.name}: {_NEEDS_A_CALL}")
        makes = next((base.name for base in order if self._defines(base, "__getattr__")), "")
        if makes and "_modules" not in found:
            return Missing(f"a {one.name} has no {name}, but {makes}.__getattr__ may make one: {_NEEDS_A_CALL}")
        return Missing(f"a {one.name} has no attribute {name}{nearest_names(name, list(found))}")

    def _slot(self, descriptor: int, address: int) -> int:
        place = self.pages.word(descriptor + MEMBER)
        data = self.pages.read(place, MEMBER_OFFSET + 8) if place else None
        if data is None or struct.unpack_from("<i", data, MEMBER_TYPE)[0] not in MEMBER_OBJECTS:
            return 0
        return self.pages.word(address + struct.unpack_from("<q", data, MEMBER_OFFSET)[0]) or 0

    def _defines(self, one: Class, name: str) -> bool:
        return bool(one.flags & HEAP_CLASS) and name in self.names_of_class(one)

    def behind_proxies(self, address: int) -> int:
        """The object that a weak proxy stands for."""
        for _ in range(MOST_BASES):
            one = self.class_of(address)
            if one is None or one.name not in PROXIES:
                break
            address = self.pages.word(address + PROXIES[one.name]) or 0
        return address

    def called(self, address: int) -> Found:
        """What a weak reference refers to; anything else would really have to be called."""
        one = self.class_of(address)
        found = self.referred(address, one) if one is not None else None
        if one is None or found is None:
            return Missing(
                f"a {one.name if one else '?'} is not a weak reference: calling it would run code of the program"
            )
        return Missing("what it referred to is gone") if self.name_of(found) in ("NoneType", "") else found

    # --- items ---

    def _is(self, address: int, flag: int) -> bool:
        one = self.class_of(address)
        return one is not None and bool(one.flags & flag)

    def holder(self, address: int) -> Tuple[int, Optional[Class], str]:
        """What has the items of an object: itself or one of its attributes; its class; why a call would be needed."""
        address = self.behind_proxies(address)
        one = self.class_of(address)
        for _ in range(MOST_BASES):
            if one is None:
                break
            base = self._gives_items(one)
            if base is None:
                return address, one, ""
            held = self.attributes(address, one).get(ITEMS_IN.get(base.name, ""))
            if not held:
                return address, one, f"{base.name} has a __getitem__ of its own: {_NEEDS_A_CALL}"
            address, one = held, self.class_of(held)
        return address, one, ""

    def _gives_items(self, one: Class) -> Optional[Class]:
        """The class of Python's own language that says what `object[KEY]` is; None where the memory itself does."""
        for base in self.order_of(one):
            if base.name in ITEMS_IN:
                return base
            if base.name in OWN_ITEMS or not base.flags & HEAP_CLASS or base.full_name in HOLDERS_IN_C:
                break
            if self._defines(base, "__getitem__"):
                return base
        return None

    def counts_in_text(self, address: int) -> bool:
        """Whether the numbers of its items are keys of a dictionary, as text."""
        one = self.class_of(self.behind_proxies(address))
        base = self._gives_items(one) if one is not None else None
        return base is not None and base.name in TEXT_OF_NUMBERS

    def item(self, address: int, key: Key) -> Found:
        """What `object[KEY]` is."""
        address = self.behind_proxies(address)
        one = self.class_of(address)
        base = self._gives_items(one) if one is not None else None
        if one is not None and base is not None and base.name in TEXT_OF_NUMBERS and isinstance(key, int):
            size = self.attributes(address, one).get(LENGTH_IN.get(base.name, ""))
            count = self.containers.number(size) if size else self.containers.used(self.holder(address)[0])
            if key < 0 and count is None:
                return Missing(f"how many items this {one.name} has cannot be read")
            key = str(key + (count or 0) if key < 0 else key)
        if base is not None and base.name in ITEMS_BY_ATTRIBUTE and isinstance(key, str):
            by_name = self.attribute(address, key)
            if not isinstance(by_name, Missing):
                return by_name
        address, one, reason = self.holder(address)
        if one is None:
            return Missing("its memory holds no Python object any more")
        if reason:
            return Missing(reason)
        if self.is_sequence(one):
            length = self.containers.length(address)
            if not isinstance(key, int):
                return Missing(f"a {one.name} of {length:,} has items by number, not by name")
            number = key + length if key < 0 else key
            found = self.sequence(address, one, number, 1) if 0 <= number < length else ()
            if not found and 0 <= number < length:
                return Missing(f"item {key} of a {one.name} of {length:,} cannot be read")
            return found[0] if found else Missing(f"a {one.name} of {length:,} has no item {key}")
        if not one.flags & DICT_CLASS:
            return Missing(f"a {one.name} has no items that can be read without a call")
        return self._entry(address, one, key)

    def _entry(self, address: int, one: Class, key: Key) -> Found:
        names: List[str] = []
        used = self.containers.used(address)
        for known, value in self.containers.pairs(address, MOST_KEYS):
            found = self.key(known)
            if found == key and isinstance(found, bool) == isinstance(key, bool):
                return value
            if isinstance(found, str):
                names.append(found)
        said = repr(key) if isinstance(key, int) else f'"{key}"'
        if used > MOST_KEYS:
            return Missing(f"a {one.name} of {used:,}: {said} is not among its first {MOST_KEYS:,} keys")
        return Missing(f"a {one.name} of {used:,} has no key {said}{nearest_names(str(key), names)}")

    def key(self, address: int) -> Optional[Key]:
        """A key as one types it; None of one that is neither a text nor a whole number."""
        text = self.containers.text(address)
        return text if text is not None else self.containers.number(address, 2)


def nearest_names(name: str, known: List[str], nearest: Optional[List[str]] = None) -> str:
    """`; near: hidden`, or the first few that there are (of `nearest`, where it is given)."""
    close = difflib.get_close_matches(name, known[:MOST_NAMES], 3, 0.6)
    if close:
        return f"; near: {', '.join(close)}"
    known = known if nearest is None else nearest
    shown = [one for one in known if one and not one.startswith("_")][:6]
    return f"; it has {', '.join(shown)}{', ...' if len(known) > 6 else ''}" if shown else ""
