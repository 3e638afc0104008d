"""What people type for a Python object, `self.kv[3]`, `batch["ids"]`: parsed, and followed by memory alone."""

from __future__ import annotations

import re
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from gdbext.capture.python.attributes import Attributes, Found, Key, nearest_names
from gdbext.capture.python.local_variables import FrameLocals
from gdbext.model.missing import Missing

MOST_STEPS = 64
_NAME = r"[^\W\d]\w*"
_FRAME = re.compile(r"py(\d{1,4}):\s*(?=[^\W\d:])")
_ROOT = re.compile(_NAME)
_STEP = re.compile(
    rf"""\s*(?:\.\s*(?P<attribute>{_NAME})|(?P<call>\(\s*\))|\[\s*(?:(?P<number>-?\d{{1,18}})|"(?P<double>[^"]*)"|'(?P<single>[^']*)')\s*\])"""
)


class Step(NamedTuple):
    """`.NAME` or `[KEY]`, and the text up to its end. Without either it is `()`, what a weak reference refers to."""

    attribute: Optional[str]
    key: Optional[Key]
    upto: str


class Name(NamedTuple):
    """A name in a Python frame and the way on from there. `frame` is the number of a frame, where one is given."""

    frame: Optional[int]
    root: str
    steps: Tuple[Step, ...]


class Reached(NamedTuple):
    """Where a name leads to; `rest` is what stands behind a tensor: an index of it, or an attribute."""

    address: int
    name: str
    rest: str


def parse_name(text: str) -> Optional[Name]:
    """None of what is no name of Python."""
    text = text.strip()
    frame = _FRAME.match(text)
    root = _ROOT.match(text, frame.end() if frame else 0)
    if root is None:
        return None
    steps: List[Step] = []
    at = root.end()
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or len(steps) >= MOST_STEPS:
            return None
        at = found.end()
        number, texts = found["number"], [found["double"], found["single"]]
        key: Optional[Key] = int(number) if number else next((one for one in texts if one is not None), None)
        steps.append(Step(found["attribute"], key, text[:at]))
    return Name(int(frame[1]) if frame else None, root[0], tuple(steps))


def variables_in(frame: FrameLocals, objects: Attributes) -> Dict[str, int]:
    """The local variables of a frame; those of a module's top level are its names."""
    if frame.is_module:
        pairs = objects.containers.pairs(frame.module, 1 << 12)
        return {name: value for name, value in objects.by_name(pairs).items() if not name.startswith("__")}
    return {one.name: one.address for one in frame.variables if one.name.isidentifier()}


def root_of(name: str, frame: FrameLocals, objects: Attributes) -> Found:
    """What a name means in a frame: a local variable, else a name of its module."""
    local = variables_in(frame, objects)
    if name in local:
        return local[name]
    of_module = objects.by_name(objects.containers.pairs(frame.module, 1 << 14)) if frame.module else {}
    if name in of_module:
        return of_module[name]
    return Missing(f"no variable {name}{nearest_names(name, [*local, *of_module], list(local))}")


def follow(
    name: Name, start: int, objects: Attributes, text: str, ends: Callable[[int], bool]
) -> Union[Reached, Missing]:
    """From what the root of a name means step by step; the first object of which `ends` says so is the last."""
    address, said = start, text[: text.index(name.root) + len(name.root)]
    for step in name.steps:
        if ends(address):
            return Reached(address, said, text.strip()[len(said) :])
        if step.attribute is not None:
            found = objects.attribute(address, step.attribute)
        elif step.key is not None:
            found = objects.item(address, step.key)
        else:
            found = objects.called(address)
        if isinstance(found, Missing):
            return Missing(f"{said}: {found.reason}")
        address, said = found, step.upto
    return Reached(objects.behind_proxies(address), said, "")
