"""The text of a trace file, plain or gzip, in pieces: never a whole file, and what is whole of a damaged one."""

from __future__ import annotations

import importlib
import zlib
from typing import Any, BinaryIO, Iterator, List, Tuple

PIECE = 1 << 20
_GZIP = b"\x1f\x8b"
_MEMBERS = 1 << 20


def _fast() -> Tuple[Any, str]:
    """The quickest inflater that is installed: isal and zlib-ng take half the time of zlib."""
    for module, name in (("isal.isal_zlib", "isal"), ("zlib_ng.zlib_ng", "zlib-ng")):
        try:
            return importlib.import_module(module), name
        except ImportError:
            continue
    return zlib, "zlib"


LIBRARY, LIBRARY_NAME = _fast()
LEVEL = 2 if LIBRARY_NAME == "isal" else 1 if LIBRARY_NAME == "zlib" else 2
"""isal's 2 makes files as small as zlib's 1 to 6 do, at ten times their speed."""


def pieces(file: BinaryIO, problems: List[str]) -> Iterator[bytes]:
    """The text of an open file. What ends it early is added to `problems`, and all before it has been given."""
    head = file.read(PIECE)
    if not head.startswith(_GZIP):
        while head:
            yield head
            head = file.read(PIECE)
        return
    given = 0
    for _ in range(_MEMBERS):  # several runs may have been appended to one file
        engine = LIBRARY.decompressobj(wbits=31)
        while not engine.eof:
            if not head:
                head = file.read(PIECE)
                if not head:
                    problems.append(f"the gzip data ends early, after {_size(given)} of text")
                    return
            try:
                text = engine.decompress(head, PIECE)
            except (zlib.error, LIBRARY.error) as error:
                problems.append(f"the gzip data is damaged after {_size(given)} of text ({_words(error)})")
                return
            head = engine.unconsumed_tail
            given += len(text)
            if text:
                yield text
            elif not head and not engine.eof:
                head = file.read(PIECE)
                if not head:
                    problems.append(f"the gzip data ends early, after {_size(given)} of text")
                    return
        head = engine.unused_data or file.read(PIECE)
        if not head.startswith(_GZIP):
            if head.strip(b"\0"):
                problems.append(f"{_size(len(head))} or more after the gzip data are not gzip data")
            return


def _words(error: Exception) -> str:
    return str(error).partition(":")[2].strip() or str(error)


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1_000_000 else f"{count} bytes"
