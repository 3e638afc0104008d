"""Error numbers by number, by name, or by the text that a library prints for them."""

from __future__ import annotations

import re
from typing import Iterator, List, Optional, Tuple

from gdbext.knowledge.errors import LIBRARIES, Library
from gdbext.model.error_code import ErrorCode

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def code(library_type: str, number: int) -> Optional[ErrorCode]:
    """One number of one library; None where neither its header nor a row knows it."""
    library = next(one for one in LIBRARIES if one.type == library_type)
    return _code(library, number) if number in library.names else None


def by_number(number: int) -> Tuple[ErrorCode, ...]:
    """What the number means in each library."""
    return tuple(_code(library, number) for library in LIBRARIES if number in library.names)


def by_name(name: str) -> Tuple[ErrorCode, ...]:
    """The code with this name; letters' case, underscores and the prefix need not be right."""
    wanted = _letters(name)
    exact = [found for found in _all() if found.name == name]
    alike = exact or [found for found in _all() if _letters(found.name) == wanted]
    return tuple(alike or [found for found in _all() if _letters(_short(found)) == wanted])


def similar_names(name: str) -> Tuple[str, ...]:
    """Names that contain what was asked for, or else all: somebody may have meant one of these."""
    wanted = _letters(name)
    names = dict.fromkeys(one.name for one in _all())
    return tuple(one for one in names if len(wanted) > 2 and wanted in _letters(one)) or tuple(names)


def in_message(text: str, library_type: str = "") -> Optional[ErrorCode]:
    """The error that a message tells of: a name that stands in it, else the longest of the known texts."""
    for word in re.findall(r"\b(?:cudaError\w+|CUDA_ERROR_\w+|CUBLAS_STATUS_\w+|nccl[A-Z]\w+)", text):
        named = [found for found in _all() if found.name == word]
        if named:
            return named[0]
    best: Optional[Tuple[Library, int]] = None
    longest = 0
    for library in LIBRARIES:
        if library_type and library.type != library_type:
            continue
        for row in library.rows:
            if len(row.prints) > longest and row.number in library.names and row.prints in text:
                best, longest = (library, row.number), len(row.prints)
    return _code(*best) if best else None


def _all() -> Iterator[ErrorCode]:
    return (_code(library, number) for library in LIBRARIES for number in library.names)


def _code(library: Library, number: int) -> ErrorCode:
    name, release = library.names[number]
    row = next((row for row in library.rows if row.number == number), None)
    if row is None:
        return ErrorCode(
            library=library.type,
            number=number,
            name=name,
            meaning=_words(library, name),
            sticky=None,
            read_from=release,
        )
    return ErrorCode(
        library=library.type,
        number=number,
        name=name,
        meaning=row.meaning,
        sticky=row.sticky,
        causes=row.causes,
        steps=row.steps,
        read_from=release,
        source=row.source,
    )


def _words(library: Library, name: str) -> str:
    """The words of the name itself: no row explains it."""
    short = next(name[len(prefix) :] for prefix in (*library.prefixes, "") if name.startswith(prefix))
    words: List[str] = short.split("_") if "_" in short or short.isupper() else _CAMEL.split(short)
    return " ".join(words).lower()


def _short(found: ErrorCode) -> str:
    library = next(one for one in LIBRARIES if one.type == found.library)
    return next(found.name[len(prefix) :] for prefix in (*library.prefixes, "") if found.name.startswith(prefix))


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
