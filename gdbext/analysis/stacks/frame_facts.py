"""What is known of single frames: their name if it says something, the rules that match, and whose code it is."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Pattern, Sequence, Tuple

from gdbext.knowledge.frames import EMPTY_NAMES, RULES
from gdbext.knowledge.frames.helper_threads import ENTRIES
from gdbext.knowledge.frames.system import code_owners
from gdbext.knowledge.row_kinds import EmptyName, FrameRule
from gdbext.model.stack import Frame
from gdbext.model.text.patterns import literal_prefixes, regex

_Key = Tuple[Optional[str], Optional[str], Optional[str], str, Optional[int]]

_ENTRY = regex(ENTRIES)
_PUBLIC = regex(code_owners.PUBLIC)
_C_LIBRARY_FUNCTION = regex(code_owners.C_LIBRARY_FUNCTIONS)
_C_LIBRARY_MODULE = regex(code_owners.C_LIBRARY_MODULES)
_C_LIBRARY_FILE = regex(code_owners.C_LIBRARY_FILES)
_VENDOR_FUNCTION = regex(code_owners.VENDOR_FUNCTIONS)
_VENDOR_MODULE = regex(code_owners.VENDOR_MODULES)
_VENDOR_PYTHON = regex(code_owners.VENDOR_PYTHON)
_INTERPRETER = regex(code_owners.INTERPRETER)
_NO_NAME = regex(code_owners.NO_NAME)


class Known(NamedTuple):
    """One frame, as far as it does not depend on its neighbours. Equal frames share one object."""

    name: Optional[str]  # None when the printed name says nothing
    library: str
    python: bool
    rules: Tuple[FrameRule, ...]  # in order; conditions on neighbours are still to be checked
    system: bool  # C library, loader or C++ threading: how a thread waits
    vendor: bool  # a library or interpreter: not the engine's own code
    entry: bool  # where a thread begins
    public: bool  # the name is a public API of CUDA or NCCL


class FrameBook:
    """Rules compiled once, and a memory of the frames seen: a job has many frames but few different ones."""

    def __init__(self, rules: Sequence[FrameRule] = RULES, empty: Sequence[EmptyName] = EMPTY_NAMES) -> None:
        self._native = _Index([_compiled(rule) for rule in rules if rule.language == "native"])
        self._python = _Index([_compiled(rule) for rule in rules if rule.language == "python"])
        self._by_line = [row for row in self._python.rows if row.rule.from_line]
        self._empty = [(regex(row.function), regex(row.module)) for row in empty]
        self._seen: Dict[_Key, Known] = {}

    def known_frame(self, frame: Frame) -> Known:
        """What is known of this frame."""
        key = (frame.function, frame.module, frame.file, frame.language, self._line(frame))
        known = self._seen.get(key)
        if known is None:
            known = self._seen[key] = self._look(frame)
        return known

    def _line(self, frame: Frame) -> Optional[int]:
        """The line, where it tells two functions of one name apart."""
        if frame.language == "python" and any(row.function.match(frame.function or "") for row in self._by_line):
            return frame.line
        return None

    def _look(self, frame: Frame) -> Known:
        library = frame.library or ""
        python = frame.language == "python"
        name = frame.function if python else self._name(frame.function, library)
        file = frame.file or ""
        called = name.rsplit(".", 1)[-1] if python and name else name  # `Queue.get`: rules know the function
        rules = self._matching(self._python if python else self._native, called, library, file, frame.line or 0)
        if python and called and _PUBLIC.match(called):  # a wrapper by ctypes or Cython, named as what it calls
            rules = (*self._matching(self._native, called, library, file, 0), *rules)
        system = not python and (
            bool(_C_LIBRARY_MODULE.match(library))
            or bool(name and _C_LIBRARY_FUNCTION.match(name))
            or bool(_C_LIBRARY_FILE.search(file))
        )
        return Known(
            name,
            library,
            python,
            rules,
            system,
            self._is_vendor(name, library, file, python),
            bool(name and _ENTRY.match(name)),
            bool(name and not python and _PUBLIC.match(name)),
        )

    def _name(self, function: Optional[str], library: str) -> Optional[str]:
        if not function or _NO_NAME.match(function):
            return None
        for pattern, module in self._empty:
            if pattern.match(function) and module.match(library):
                return None
        return function

    @staticmethod
    def _matching(rules: _Index, name: Optional[str], library: str, file: str, line: int) -> Tuple[FrameRule, ...]:
        return tuple(
            row.rule
            for row in rules.candidates(name or "", library)
            if row.matches(name or "", library)
            and (not row.rule.file or row.file.search(file))
            and line >= row.rule.from_line
        )

    @staticmethod
    def _is_vendor(name: Optional[str], library: str, file: str, python: bool) -> bool:
        if python:
            return bool(_VENDOR_PYTHON.search(file)) or file.startswith("<")
        return name is None or bool(
            _VENDOR_MODULE.match(library) or _VENDOR_FUNCTION.match(name) or _INTERPRETER.match(name)
        )


class _Compiled(NamedTuple):
    rule: FrameRule
    function: Pattern[str]
    module: Pattern[str]
    file: Pattern[str]

    def matches(self, name: str, library: str) -> bool:
        found = self.function.match(name)
        if found is None:
            return False
        return not self.rule.library_of_vendor or found.group("vendor").lower() in library.lower()


class _Index:
    """Rows by the library they are for and the first letters of the functions they know, in their order: a text of
    many different frames would try each of hundreds of rows on each of them."""

    def __init__(self, rows: Sequence[_Compiled]) -> None:
        self.rows = tuple(rows)
        self._beginnings = [literal_prefixes(row.rule.function) for row in self.rows]
        self._found: Dict[Tuple[str, str], Tuple[_Compiled, ...]] = {}

    def candidates(self, name: str, library: str) -> Tuple[_Compiled, ...]:
        """The rows of the library whose function may match the name."""
        key = (name[:_LETTERS], library)
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= _MOST_KEYS:
                self._found.clear()
            found = self._found[key] = tuple(
                row
                for row, texts in zip(self.rows, self._beginnings)
                if (not texts or any(text.startswith(key[0]) or key[0].startswith(text) for text in texts))
                and row.module.match(library)
            )
        return found


def _is_repeated(stack: Sequence[Known], at: int) -> bool:
    """Whether this public name stands three times in a row or more."""
    one, name = stack[at], stack[at].name
    if not one.public:
        return False
    around = [other.name == name for other in stack[max(at - 2, 0) : at + 3]]
    return any(all(around[first : first + 3]) for first in range(len(around) - 2))


_LETTERS = 3
_MOST_KEYS = 4096


def _compiled(rule: FrameRule) -> _Compiled:
    return _Compiled(rule, regex(rule.function), regex(rule.module), regex(rule.file))


def without_lies(stack: Sequence[Known]) -> List[Known]:
    """The stack without public names that cannot be there: no thread begins in `ncclGroupEnd` (Megatron-LM#516), and no
    public function calls itself: the name is the nearest one that a stripped library exports (NVIDIA/nccl#1050)."""
    honest = [
        one._replace(name=None, rules=(), public=False, vendor=True) if _is_repeated(stack, at) else one
        for at, one in enumerate(stack)
    ]
    number = len(honest)
    while number and honest[number - 1].entry:
        number -= 1
    if number == len(honest):
        return honest
    while number and honest[number - 1].public:
        number -= 1
        honest[number] = honest[number]._replace(name=None, rules=(), public=False, vendor=True)
    return honest


NAMES = FrameBook(rules=())
"""What names alone tell of a frame: no rule is tried."""
