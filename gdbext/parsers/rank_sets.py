"""Lines that a parallel debugger prints once for all ranks that said the same: `app{0,4..7}: #0  0x2aaa in poll`."""

from __future__ import annotations

from typing import Set, Tuple

from gdbext.model.text.patterns import regex

_SPANS = r"\d{1,6}(?:(?:-|\.\.)\d{1,6})?(?:, ?\d{1,6}(?:(?:-|\.\.)\d{1,6})?){0,500}"
_SET = regex(
    rf"(?:(?P<name>[A-Za-z_$][\w.-]{{0,60}})\{{(?P<braces>{_SPANS})\}}"  # lgdb, gdb4hpc
    rf"|(?P<several>(?=\d{{1,6}}[-,]){_SPANS})):[ \t]{{1,4}}(?=#\d|Thread \d|\[Switching)"  # mpiexec -gdb, mpigdb
)
_SPAN = regex(r"(\d+)(?:(?:-|\.\.)(\d+))?")
_MOST = 4096
"""Ranks of one set: a line of more is read as one."""


def ranks_of_line(text: str) -> Tuple[str, Tuple[int, ...], str]:
    """The name of the set, its ranks and the line without them; no ranks where the line is of nobody, or of one."""
    found = _SET.match(text)
    if found is None:
        return "", (), text
    ranks: Set[int] = set()
    for first, last in _SPAN.findall(found["braces"] or found["several"]):
        begin, end = int(first), int(last or first)
        if end - begin + len(ranks) >= _MOST:
            return "", (), text
        ranks.update(range(begin, end + 1))
    return found["name"] or "", tuple(sorted(ranks)), text[found.end() :]
