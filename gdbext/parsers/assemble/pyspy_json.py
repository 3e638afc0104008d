"""`py-spy dump --json`: an array of threads, anywhere in a text."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from gdbext.model.stack import Frame
from gdbext.model.text.patterns import regex
from gdbext.parsers.assemble.building import Process
from gdbext.parsers.assemble.threads import Thread
from gdbext.parsers.frame_lines import Place, named_frame
from gdbext.parsers.line_events import FrameLine, ProcessHead, ThreadHead

_START = regex(r"^\s{0,80}\[\s{0,80}(?=\{\s{0,80}\"(?:pid|thread_id)\"\s?:)", re.MULTILINE)
_BETWEEN = regex(r"\s{0,400}(,\s{0,400}|\])")
_MOST_BROKEN = 16
_DECODER = json.JSONDecoder()


class Found(NamedTuple):
    """Processes in order of their first thread, the text around the JSON, and what was broken."""

    processes: Tuple[Process, ...]
    rest: str
    problems: Tuple[str, ...] = ()


def extract(text: str) -> Found:
    """Take py-spy's JSON out of a text. Of an array that is cut short the whole threads are kept."""
    rest: List[str] = []
    processes: Dict[Optional[int], Process] = {}
    broken = end = 0
    while broken < _MOST_BROKEN:
        start = _START.search(text, end)
        if start is None:
            break
        rest.append(text[end : start.start()])
        threads, end, whole = _array(text, start.end())
        broken += not whole
        for one in threads:
            _add(processes, one)
    rest.append(text[end:])
    problems = (f"py-spy's JSON is cut short or damaged in {broken} places",) if broken else ()
    return Found(tuple(processes.values()), "\n".join(rest), problems)


def _array(text: str, at: int) -> Tuple[List[Mapping[str, Any]], int, bool]:
    """Elements from `at` on, where they end, and whether the array ends there."""
    threads: List[Mapping[str, Any]] = []
    while True:
        try:
            one, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return threads, at, False
        if isinstance(one, dict) and isinstance(one.get("frames"), list):
            threads.append(one)
        between = _BETWEEN.match(text, at)
        if between is None:
            return threads, at, False
        at = between.end()
        if between.group(1) == "]":
            return threads, at, True


def _add(processes: Dict[Optional[int], Process], said: Mapping[str, Any]) -> None:
    pid = _number(said.get("pid"))
    if pid not in processes:
        info = said.get("process_info")
        title = info.get("command_line") if isinstance(info, dict) else None
        processes[pid] = Process(head=ProcessHead(title=str(title or ""), pid=pid))
    tid, handle = _number(said.get("os_thread_id")), _number(said.get("thread_id"))
    id = str(tid) if tid is not None else f"0x{handle or 0:X}"
    name = said.get("thread_name")
    state = {True: "R", False: "S"}.get(said.get("active"))  # type: ignore[arg-type]
    gil = True if said.get("owns_gil") is True else None
    thread = Thread(
        head=ThreadHead(id=id, lwp=tid, name=name if isinstance(name, str) else None, gil=gil, state=state),
        kind="py-spy",
    )
    for frame in said["frames"]:
        if isinstance(frame, dict):
            thread.add(FrameLine(_frame(frame)), "py-spy")
    processes[pid].add(thread)


def _frame(said: Mapping[str, Any]) -> Frame:
    name, file, module = (str(said.get(key) or "") for key in ("name", "filename", "module"))
    line = _number(said.get("line")) or None
    if not module:
        return Frame(name or None, file=file or None, line=line, language="python")
    return named_frame(name, Place(module, file, line) if line and file != module else Place(module))


def _number(value: object) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
