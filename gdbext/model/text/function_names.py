"""Function names as people say them: without arguments, return type and the compiler's marks."""

from __future__ import annotations

import re
from typing import Dict, List

LONGEST = 16384
"""Characters of a name that are looked at; template names of real programs reach some thousand."""

_PLAIN = re.compile(r"[\w:~$?]*\Z")
_TOKEN = re.compile(
    r"\boperator(?: ?\(\)| ?\[\]| ?->\*?| ?<=>| ?<<=?| ?>>=?| ?[<>]=?| ?[-+*/%^&|~!=,]{1,2}| (?=[\w:(]))(?: (?=<))?"
    r"|->|[()<>\[\]{}]| "
)
_CLOSES = {")": "(", ">": "<", "]": "[", "}": "{"}
_SCOPE_AFTER = re.compile(r"(?: const| volatile| ?&{1,2}){0,4}::")  # `f(int) const::{lambda()#1}`: f only encloses
_VERSION = re.compile(r"@{1,2}[A-Za-z_][\w.]*\Z")  # pthread_cond_wait@@GLIBC_2.17, memcpy@plt
_CRATE = re.compile(r"\b(?P<name>[A-Za-z_]\w*)\[[0-9a-f]{12,16}\]")  # rustc's "v0" mangling numbers its crates
_ANGLE = re.compile(r"<|(?<!-)>")
_CLONE = re.compile(r"\.(?:isra|part|constprop|cold|lto_priv|llvm|localalias)(?=\.|\Z)")


def bare_name(demangled: str) -> str:
    """The qualified function name alone: `void f<int>(int) [clone .cold]` is `f<int>`.

    Dropped are the argument list, a template's return type, ABI tags, `const`, clone marks of the compiler, symbol
    versions and `@plt`, also the arguments of enclosing functions (`f(int)::{lambda()#1}::operator()() const` is
    `f::{lambda()#1}::operator()`). Template arguments and `(anonymous namespace)` stay. Any text is accepted, time
    is linear in its length; text without a name in it comes back as it is.
    """
    text = demangled.strip()[:LONGEST]
    if _PLAIN.match(text):
        return text
    if _CRATE.search(text):
        return _of_rust(_CRATE.sub(r"\g<name>", text))
    name = _CLONE.split(_VERSION.sub("", _without_arguments(text, 3)), maxsplit=1)[0]
    return name or text


def _of_rust(text: str) -> str:
    """Without type arguments (`in_worker::<T>`), and without the brackets around a type that a method is of
    (`<LockLatch>::wait`): rustc's older mangling has neither. `<T as Trait>::f` stays."""
    pieces: List[str] = []
    start = opened = depth = 0
    for token in _ANGLE.finditer(text):
        at, opens = token.start(), token.group() == "<"
        if opens and depth == 0:
            opened = at
        depth += 1 if opens else -1
        if depth < 0:
            return text
        if depth or opens:
            continue
        inside = text[opened + 1 : at]
        if text.startswith("::", opened - 2) and opened > start + 1:
            pieces.append(text[start : opened - 2])
        elif opened == start == 0 and " as " not in inside:
            pieces.append(inside)
        else:
            pieces.append(text[start : at + 1])
        start = at + 1
    return "".join(pieces) + text[start:]


def _without_arguments(text: str, depth: int) -> str:
    brackets = _Brackets()
    pieces: List[str] = []  # finished parts of the name
    start = opened = 0  # where the current part starts; where the outermost open bracket stands
    conversion = False  # after `operator` of a conversion function spaces belong to the name
    for token in _TOKEN.finditer(text):
        at, mark = token.start(), token.group()
        if at < start or mark == "->":
            continue
        if mark.startswith("operator"):
            conversion = conversion or (not brackets and mark == "operator ")
        elif mark == " ":
            if not (brackets or conversion or _continues(text, at + 1)):
                pieces, start = [], at + 1
        elif mark not in _CLOSES:
            opened = opened if brackets else at
            brackets.open(mark)
        elif brackets.close(mark) and not brackets:
            group = text[opened : at + 1]
            scope = _SCOPE_AFTER.match(text, at + 1)
            if group.startswith(("[abi:", "[clone")):
                pieces.append(text[start:opened].rstrip())
                start = at + 1
            elif mark != ")" or group == "(anonymous namespace)" or _is_inside(text, start, opened):
                continue
            elif depth and group[1:2] in ("*", "&") and text[opened - 1 : opened] in ("", " "):
                return _without_arguments(group[2:-1], depth - 1)  # a function that returns a pointer to one
            else:
                pieces.append(text[start:opened].rstrip())
                if not scope:
                    return "".join(pieces)
                start = scope.end() - 2
    end = opened if brackets.outermost == "(" and opened > start else len(text)  # an argument list cut short
    return "".join(pieces) + text[start:end].rstrip()


def _continues(text: str, at: int) -> bool:
    """Whether the name before a space goes on behind it: with its arguments or a mark in brackets."""
    return text.startswith(("(", "["), at) and not text.startswith("(anonymous namespace)", at)


def _is_inside(text: str, start: int, opened: int) -> bool:
    """Whether parentheses belong to a type or a receiver: `decltype (x) f()`, Go's `net/http.(*conn).serve`."""
    return text[opened - 1 : opened] == "." or text.endswith(("decltype", "decltype "), start, opened)


class _Brackets:
    """Brackets that are open. A closing one without partner is ignored, one of an outer pair closes inner ones."""

    def __init__(self) -> None:
        self._open: List[str] = []
        self._count: Dict[str, int] = dict.fromkeys(_CLOSES.values(), 0)

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def outermost(self) -> str:
        return self._open[0] if self._open else ""

    def open(self, mark: str) -> None:
        self._open.append(mark)
        self._count[mark] += 1

    def close(self, mark: str) -> bool:
        wanted = _CLOSES[mark]
        if not self._count[wanted] or (mark == ">" and self._open[-1] != "<"):
            return False
        while True:
            last = self._open.pop()
            self._count[last] -= 1
            if last == wanted:
                return True
