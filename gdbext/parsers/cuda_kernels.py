"""The table that cuda-gdb prints for `info cuda kernels`, of every release from 11.x to 13.x.

Widths and titles differ (masks have 8 to 64 digits, `Name Args` became `Invocation`), so tokens are read and not
columns. Sources: what cuda-gdb 11.8, 12.2 and 12.4 printed; NVIDIA's cuda-gdb manual (`Name Args`).
"""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

from gdbext.model.stream import DeviceKernel

MOST_KERNELS = 256
_LINE = re.compile(
    r"(?P<focus>\*)?\s*(?P<kernel>\d+)\s+(?P<parent>-|\d+)\s+(?P<device>\d+)\s+(?P<grid>-?\d+)\s+(?P<status>[A-Za-z]\w*)"
    r"\s+(?P<mask>0x[0-9a-fA-F]+(?:\s*[,_]\s*(?:0x)?[0-9a-fA-F]+)*|-|n/a)"
    r"\s+(?P<sizes>\(\s*\d+(?:\s*,\s*\d+)*\s*\)(?:\s+\(\s*\d+(?:\s*,\s*\d+)*\s*\))*)\s*(?P<rest>.*)"
)
_SIZE = re.compile(r"\([^)]*\)")
_NONE = re.compile(r"\s*(No CUDA (kernels|devices|contexts)|Focus not set)")


def kernels(text: str) -> Tuple[Tuple[DeviceKernel, ...], Tuple[str, ...]]:
    """The kernels, and the lines that could not be understood."""
    found: List[DeviceKernel] = []
    strange: List[str] = []
    for line in _joined(text):
        row = _LINE.fullmatch(line.strip())
        if row is None:
            if not _is_title(line) and not _NONE.match(line):
                strange.append(line.strip())
        elif len(found) < MOST_KERNELS:
            found.append(_kernel(row))
    return tuple(found), tuple(strange[:8])


def _joined(text: str) -> List[str]:
    """Lines, with those that a narrow terminal has wrapped put together again."""
    lines: List[str] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        is_row_start = re.match(r"\*?\s*\d+\s+(-|\d+)\s+\d+\s", line) or _is_title(line) or _NONE.match(line)
        if is_row_start or not lines or _is_title(lines[-1]):
            lines.append(line)
        else:
            lines[-1] += " " + line.strip()
    return lines


def _is_title(line: str) -> bool:
    return bool(re.match(r"\s*Kernel\s+Parent\s+Dev\b", line))


def _kernel(row: re.Match[str]) -> DeviceKernel:
    sizes = [re.sub(r"\s", "", size) for size in _SIZE.findall(row["sizes"])]
    name, arguments = _invocation(row["rest"].strip())
    parent: Optional[int] = None if row["parent"] == "-" else int(row["parent"])
    return DeviceKernel(
        kernel=int(row["kernel"]),
        device=int(row["device"]),
        grid=int(row["grid"]),
        status=row["status"],
        parent=parent,
        focus=bool(row["focus"]),
        grid_size=sizes[0],
        block_size=sizes[-1] if len(sizes) > 1 else "",
        name=name,
        arguments=arguments,
    )


def _invocation(text: str) -> Tuple[str, str]:
    """`kernel<int>(a=1, b=0x2)` of newer releases, `kernel a=1, b=0x2` of older ones."""
    if text.endswith(")"):
        depth = 0
        for position in range(len(text) - 1, -1, -1):
            depth += (text[position] == ")") - (text[position] == "(")
            if depth == 0:
                return text[:position].strip(), text[position + 1 : -1]
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == " " and depth == 0:
            return text[:position], text[position + 1 :].strip()
    return text, ""
