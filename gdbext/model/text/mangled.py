"""C++ names as the linker knows them (`_ZN4c10d5Store3getERK...`): the qualified name is read out, the rest left.

Stacks without a demangler (eu-stack -r, backtrace_symbols, pystack) print them. Of the grammar (Itanium C++ ABI, 5.1.2
to 5.1.6) only what makes the name is read: scopes, operators, templates as `<…>`; arguments and return types never. A
text of somebody else must not cost more than time that grows with its length: nothing here goes back or calls itself.
"""

from __future__ import annotations

import functools
from typing import List, Optional, Tuple

from gdbext.model.text.patterns import regex

LONGEST = 4096

_START = regex(r"_{1,3}Z(?![a-z]?\Z)")
_LENGTH = regex(r"\d{1,4}")
_SPECIAL = regex(r"_{1,3}Z(?:T[VTIS]|GV|T[hv]n?\d+_)")
_SHORT = {
    "St": "std",
    "Sa": "std::allocator",
    "Sb": "std::basic_string",
    "Ss": "std::string",
    "Si": "std::istream",
    "So": "std::ostream",
    "Sd": "std::iostream",
}
_OPERATORS = {
    "cl": "operator()",
    "ix": "operator[]",
    "eq": "operator==",
    "ne": "operator!=",
    "lt": "operator<",
    "gt": "operator>",
    "ls": "operator<<",
    "rs": "operator>>",
    "aS": "operator=",
    "pl": "operator+",
    "mi": "operator-",
    "ml": "operator*",
    "dv": "operator/",
    "pp": "operator++",
    "mm": "operator--",
    "pt": "operator->",
    "nw": "operator new",
    "dl": "operator delete",
    "na": "operator new[]",
    "da": "operator delete[]",
}
_QUALIFIERS = regex(r"[rVK]{0,3}[RO]?")
_ANONYMOUS = regex(r"_GLOBAL_[_.$]N\w*\Z")
_LAMBDA = regex(r"UlvE(\d*)_|Ul[^E]{1,80}E(\d*)_|Ut(\d*)_")
_SUBSTITUTION = regex(r"S[0-9A-Z]{0,4}_")


@functools.lru_cache(maxsize=16384)
def qualified_name(symbol: str) -> Optional[str]:
    """`c10d::Store::get` for a mangled function name; None for anything else, or where the name cannot be read."""
    text = symbol[:LONGEST].split("@", 1)[0].split(".", 1)[0]
    start = _START.match(text)
    if not start or _SPECIAL.match(text):
        return None
    at = start.end()
    parts: List[str] = []
    while text.startswith("Z", at):  # a name inside of a function: that function's name, then its own
        at += 1
    if text.startswith("N", at):
        at = _QUALIFIERS.match(text, at + 1).end()  # type: ignore[union-attr]
        nested = True
    else:
        nested = False
    at += text.startswith("L", at)
    while at < len(text):
        piece, at = _piece(text, at, parts)
        if piece is None:
            break
        if piece:
            parts.append(piece)
        if text.startswith("I", at):
            end = _after_arguments(text, at)
            if end is None or not parts:
                break
            parts[-1] += "<…>"
            at = end
        if not nested and parts and parts[-1] != "std":
            break
    return "::".join(parts) or None


def _piece(text: str, at: int, parts: List[str]) -> Tuple[Optional[str], int]:
    """The next part of a name and where it ends; None at the end of the name."""
    length = _LENGTH.match(text, at)
    if length:
        end = length.end() + int(length.group())
        if end > len(text) or end == length.end():
            return None, at
        name = text[length.end() : end]
        end = _after_tags(text, end)
        return ("(anonymous namespace)" if _ANONYMOUS.match(name) else name), end
    two = text[at : at + 2]
    if two in _SHORT:
        return _SHORT[two], at + 2
    if two[:1] == "C" and two[1:] in "12345" and parts:
        return parts[-1].split("<", 1)[0], at + 2
    if two[:1] == "D" and two[1:] in "01245" and parts:
        return "~" + parts[-1].split("<", 1)[0], at + 2
    if two in _OPERATORS:
        return _OPERATORS[two], at + 2
    unnamed = _LAMBDA.match(text, at)
    if unnamed:
        return "{lambda}" if text[at + 1] == "l" else "{unnamed}", unnamed.end()
    if _SUBSTITUTION.match(text, at):
        return None, at  # refers to what stands before; which part is not worth a table
    return None, at


def _after_tags(text: str, at: int) -> int:
    """Behind ABI tags such as `B5cxx11`."""
    while text.startswith("B", at):
        length = _LENGTH.match(text, at + 1)
        if not length:
            break
        at = length.end() + int(length.group())
    return at


def _after_arguments(text: str, at: int) -> Optional[int]:
    """Behind the template arguments that begin at `at`, None where they do not end. Names inside are stepped over."""
    depth = 0
    while at < len(text):
        length = _LENGTH.match(text, at)
        if length:
            at = length.end() + int(length.group())
            continue
        mark = text[at]
        if mark in "INXJLF" and not (mark == "L" and text[at + 1 : at + 2].isdigit()):
            if mark == "L":  # a literal: `Lb1E`
                end = text.find("E", at)
                if end < 0:
                    return None
                at = end + 1
                continue
            depth += 1
        elif mark == "E":
            depth -= 1
            if depth == 0:
                return at + 1
        elif mark == "S" and text[at + 1 : at + 2] in "tabsiod":
            at += 1
        at += 1
    return None
