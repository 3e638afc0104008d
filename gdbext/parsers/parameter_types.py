"""The types of a C++ function's parameters, by its name as the demangler writes it."""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional, Tuple

from gdbext.parsers.argument_lists import split_call

LONGEST = 16384
_DEEPEST = 64  # templates in templates
_OPEN, _CLOSE = "<([{", ">)]}"
_KEPT = {"vector": 1, "deque": 1, "unordered_map": 2, "map": 2, "unique_ptr": 1}
"""Template arguments that say what a container of the standard library holds; the others are how it does it."""
_WORDS = frozenset(("const", "volatile", "struct", "class", "enum"))
_IN_REGISTERS_OF_FLOATS = frozenset(("float", "double", "__half", "__nv_bfloat16"))
_ONE_WORD = frozenset(
    (
        *("bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int", "long"),
        *("unsigned long", "long long", "unsigned long long"),
    )
)


class Parameter(NamedTuple):
    """`type` without cv, pointers, references, version namespaces and default template arguments."""

    type: str
    pointers: int = 0  # `*`
    reference: bool = False

    @property
    def is_number(self) -> bool:
        return not self.pointers and not self.reference and self.type in _ONE_WORD

    @property
    def is_float(self) -> bool:
        return not self.pointers and not self.reference and self.type in _IN_REGISTERS_OF_FLOATS


def parameters_of(demangled: str) -> Optional[Tuple[Parameter, ...]]:
    """The parameters in order; None where the name does not say them, or is of a clone whose ABI is the compiler's."""
    if len(demangled) > LONGEST or "[clone" in demangled or ".constprop" in demangled or ".isra" in demangled:
        return None
    if _depth(demangled) > _DEEPEST:
        return None
    name, text, _ = split_call(demangled, spaced=False)
    if not name or name == demangled:
        return None
    pieces = [piece.strip() for piece in _pieces(text)]
    return () if pieces in ([], [""], ["void"]) else tuple(map(_parameter, pieces))


def _parameter(text: str) -> Parameter:
    words, pointers, reference = text, 0, False
    while True:
        words = words.strip()
        last = words.rpartition(" ")[2]
        if words.endswith(("*", "&")):
            reference = reference or words.endswith("&")
            pointers += words.endswith("*")
            words = words[:-1]
        elif last in _WORDS:
            words = words[: -len(last)]
        else:
            return Parameter(type_name(words), pointers, reference)


def type_name(text: str) -> str:
    """A type's name as it is written by hand: `std::vector<ns::Tensor>`, `std::string`."""
    text = text.strip()
    first, _, rest = text.partition(" ")
    if first in _WORDS and rest:
        return type_name(rest)
    opened = text.find("<")
    if opened < 0 or not text.endswith(">"):
        return _plain(text)
    outer = _plain(text[:opened])
    inner = [_with_marks(piece) for piece in _pieces(text[opened + 1 : -1])]
    if outer in ("std::basic_string", "std::basic_string_view") and inner[:1] == ["char"]:
        return outer.replace("basic_", "")
    if outer.startswith("std::"):
        inner = inner[: _KEPT.get(outer[5:], len(inner))]
    return f"{outer}<{', '.join(inner)}>"


def _with_marks(text: str) -> str:
    found = _parameter(text)
    return found.type + "*" * found.pointers + "&" * found.reference


def _plain(name: str) -> str:
    for version in ("__cxx11::", "__1::", "_V2::", "_v1::"):
        name = name.replace(f"::{version}", "::")
    return name.strip()


def _depth(text: str) -> int:
    deepest = depth = 0
    for character in text:
        depth += (character in _OPEN) - (character in _CLOSE)
        deepest = max(deepest, depth)
    return deepest


def _pieces(text: str) -> Iterator[str]:
    """What stands between commas outside of brackets."""
    depth = 0
    piece: List[str] = []
    for character in text:
        depth += (character in _OPEN) - (character in _CLOSE)
        if character == "," and depth == 0:
            yield "".join(piece)
            piece = []
        else:
            piece.append(character)
    yield "".join(piece)
