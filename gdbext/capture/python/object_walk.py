"""Objects that can be reached from a Python object by names that one can type: lists, dictionaries, attributes."""

from __future__ import annotations

import re
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Callable, Deque, Dict, Iterator, List, NamedTuple, Set, Tuple

from gdbext.capture.python.attributes import Attributes
from gdbext.capture.python.classes import Class
from gdbext.knowledge.runtimes.cpython_objects import DICT_CLASS, REFERENCES

_NUMBER = re.compile(r"[0-9]{1,9}")
_HIDDEN = ("_parameters", "_buffers", "_modules")  # what they hold are attributes


class Leaf(NamedTuple):
    """An object that was looked for, and how one types it."""

    name: str
    address: int


@dataclass
class Walk:
    """One walk from several objects, nearest ones first. What is left out is counted, by the reason."""

    objects: Attributes
    ends: Callable[[int], bool]  # whether an object is one of those that are looked for
    deepest: int = 3  # steps behind a name
    most_children: int = 1 << 12  # of one object
    most_objects: int = 20_000
    seconds: float = 2.0
    too_deep: int = 0
    beyond: int = 0  # children of long containers
    again: int = 0  # items that an earlier item of the same container is
    unnamed: int = 0  # keys that nobody can type
    closed: int = 0  # containers whose items need a call
    cut: str = ""  # which limit ended the walk
    _seen: Set[int] = field(default_factory=set)

    def leaves(self, starts: List[Tuple[str, int]]) -> Iterator[Leaf]:
        """What is reached from these names and objects. An object is gone through once, whatever leads to it."""
        until = time.monotonic() + self.seconds
        waiting: Deque[Tuple[str, int, int]] = deque((name, address, 0) for name, address in starts)
        looked = 0
        while waiting:
            name, address, depth = waiting.popleft()
            address = self.objects.behind_proxies(address)
            looked += 1
            if looked > self.most_objects or time.monotonic() > until:
                limit = f"{self.most_objects:,} objects" if looked > self.most_objects else f"{self.seconds:g} s"
                self.cut = f"the limit of {limit} was reached: {len(waiting) + 1:,} objects were not looked at"
                return
            if self.ends(address):
                yield Leaf(name, address)
                continue
            one = self.objects.class_of(address)
            if one is None or address in self._seen or not self._has_parts(one):
                continue
            self._seen.add(address)
            children = self._children(address, one)
            if depth >= self.deepest:
                self.too_deep += bool(children)
                continue
            waiting.extend((name + step, child, depth + 1) for step, child in children)

    def _has_items(self, one: Class) -> bool:
        return bool(one.flags & DICT_CLASS) or self.objects.is_sequence(one)

    def _has_parts(self, one: Class) -> bool:
        """Whether an object can hold others: no number, text, function or module."""
        holds = self._has_items(one) or self.objects.keeps_attributes(one) or self.objects.is_one_of(one, REFERENCES)
        return holds and one.name != "type"

    def _children(self, address: int, one: Class) -> List[Tuple[str, int]]:
        objects = self.objects
        referred = objects.referred(address, one)
        if referred is not None:
            return [("()", referred)]
        held, of, reason = objects.holder(address)
        if of is not None and self._has_items(of) and not reason:
            items = self._once(self._items(held, of, objects.counts_in_text(address)))
            return items + self._attributes(address, one, held)
        self.closed += bool(reason) and self._has_items(one)
        return self._attributes(address, one, 0)

    def _once(self, steps: List[Tuple[str, int]]) -> List[Tuple[str, int]]:
        """A long list of one and the same object would fill the answer."""
        found: Dict[int, str] = {}
        for step, child in steps:
            found.setdefault(child, step)
        self.again += sum(self.ends(child) for step, child in steps if found[child] != step)
        return [(step, child) for child, step in found.items()]

    def _items(self, held: int, of: Class, numbers: bool) -> List[Tuple[str, int]]:
        containers = self.objects.containers
        if not of.flags & DICT_CLASS:
            found = self.objects.sequence(held, of, 0, self.most_children)
            self.beyond += containers.length(held) - len(found)
            return [(f"[{number}]", item) for number, item in enumerate(found)]
        steps: List[Tuple[str, int]] = []
        pairs = list(containers.pairs(held, self.most_children))
        self.beyond += max(0, containers.used(held) - len(pairs))
        for known, value in pairs:
            key = self.objects.key(known)
            typed = key is not None and not (isinstance(key, str) and ('"' in key or "..." in key))
            self.unnamed += not typed
            if typed:
                steps.append((f'["{key}"]' if isinstance(key, str) and not numbers else f"[{key}]", value))
        return steps

    def _attributes(self, address: int, one: Class, held: int) -> List[Tuple[str, int]]:
        if not self.objects.keeps_attributes(one):
            return []
        found = self.objects.attributes(address, one)
        items = {value for _, value in self.objects.containers.pairs(held, self.most_children)} if held else set()
        numbers = self.objects.counts_in_text(address)
        steps = [
            (f".{name}" if name.isidentifier() else f"[{name}]" if numbers and _NUMBER.fullmatch(name) else "", value)
            for name, value in found.items()
            if name not in _HIDDEN and value != held and value not in items
        ]
        return [one for one in steps if one[0]]

    def left_out(self) -> Tuple[str, ...]:
        """What was not looked at, a line for each reason."""
        lines = [
            (
                self.too_deep,
                f"objects more than {self.deepest} steps behind a name; name a nearer one: llm-tensor p NAME",
            ),
            (self.beyond, f"items of containers that have more than {self.most_children:,} or cannot be read"),
            (self.again, "items that are the same object as an earlier item of their container"),
            (self.unnamed, "items whose keys are neither texts nor whole numbers"),
            (self.closed, "containers whose items need a call"),
        ]
        found = [f"not looked into: {count:,} {text}" for count, text in lines if count]
        return (*found, *([self.cut] if self.cut else []))
