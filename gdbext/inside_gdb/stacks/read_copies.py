"""Reads copies of stopped processes (mini cores) for the front end: a request file in, a result file out.

Request: {"schema": 1, "result": PATH, "parent": PID that it ends with, "budget": {"seconds", "frames", "threads"},
          "ranks": [{"index", "pid", "core": PATH, "files": [{"path", "bias", "name", "program"}],
                     "modules": [[START, END, OFFSET, PATH, PATH to open it]],
                     "memory": PATH of the whole core where the process is gone}]}
         Of a file `path` is what gdb opens, and `name` what the process calls it.
Result, a line each:
  {"schema": 1, "complete": false, "problems": [], "frames": [], "ranks": []}
  {"at": INDEX of the rank whose files are read now}
  {"frames": [more rows of model/snapshot_files/frame_table.py],
   "rank": {"index", "threads": [packed by all these rows], "problems": [TEXT]}}
  {"complete": true, "problems": [TEXT]}

Without the last line gdb has failed: its exit code says nothing. `budget.seconds` is for each rank.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import signal
from io import TextIOWrapper
from typing import Any, Callable, Dict, List, Optional

import gdb

from gdbext.capture.cores.core_file import CoreFile
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.inside_gdb.base import compat, symbols
from gdbext.inside_gdb.base.modules import Modules
from gdbext.inside_gdb.base.values import also_from
from gdbext.inside_gdb.stacks.stack_walk import Budget, Captures, Walk, Walker, by_lwp
from gdbext.model.errors import MORE_MEMORY
from gdbext.model.snapshot_files.frame_table import FrameTable

SCHEMA = 1
_LONGEST_NAME = 200  # characters of a file's
_SOME = 8 << 20  # bytes that gdb always has, unless there is a limit
_SET_PDEATHSIG = 1  # linux/prctl.h
SETTINGS = {
    "confirm": "off",
    "pagination": "off",
    "width": "0",
    "auto-load": "off",  # nothing of the target's folders is executed
    "auto-solib-add": "off",  # the request says which files matter
    "debuginfod enabled": "off",
    "print inferior-events": "off",
    "backtrace past-main": "off",
}


def main(request_file: str, awaited: bool = False) -> None:
    """Work on the request; errors are lines of the result. `awaited`: the request is not there yet."""
    gc.disable()  # we end soon, and what we keep has no cycles: looking for some took a quarter of the time
    if awaited and not _read_early():
        return
    with open(request_file, encoding="utf-8") as file:
        request = json.load(file)
    _end_with(request.get("parent"))
    with _created(request["result"]) as file:

        def add(**step: Any) -> None:
            file.write(json.dumps(step) + "\n")
            file.flush()

        add(schema=SCHEMA, complete=False, problems=[], frames=[], ranks=[])
        if request.get("schema") != SCHEMA:
            problem = f"request of schema {request.get('schema')}, this gdbext knows {SCHEMA}"
            add(complete=True, problems=[problem])
            return
        _unwind_without_python()
        with compat.settings(SETTINGS):
            _read_all(request, add)
        add(complete=True, problems=[])


def _read_early() -> bool:
    """Read the symbols of the libraries that are named on the standard input, a line each, into the first inferior,
    which nobody else uses: those of the ranks share them (inside_gdb/base/symbols.py). An empty line: the request is
    there. At the end nobody wants us any more, and what failed halfway for want of memory would be taken for read:
    False."""
    _end_with(os.getppid())
    with open(0, "rb", buffering=0, closefd=False) as lines, compat.settings(SETTINGS):
        for line in lines:
            if line == b"\n":
                return True
            name = symbols.LITERALLY + os.fsdecode(line[:-1])
            failed = symbols.add([symbols.SymbolFile(name, 0, name)])  # what fails now will fail again, and be told
            if any("memory" in text for text in failed) or _lacks_memory():
                return False
    return False


def _unwind_without_python() -> None:
    """gdb asks Python for an unwinder at each frame (`_execute_unwinders`, gdb 10 to 18): a fifth of our time.

    In a gdb of ours there are none: nothing is loaded by itself.
    """
    if not gdb.frame_unwinders and hasattr(gdb, "_execute_unwinders"):
        gdb._execute_unwinders = lambda pending_frame: None


def _end_with(parent: Optional[int]) -> None:
    """Nobody reads the result of a gdb whose front end was killed, and its folder is gone."""
    if parent is not None:
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL)
        if not os.path.exists(f"/proc/{parent}"):  # it ended before we asked
            os.kill(os.getpid(), signal.SIGKILL)


def _read_all(request: Dict[str, Any], add: Callable[..., None]) -> None:
    budget = Budget(**request.get("budget", {}))
    captures, table = Captures(), FrameTable()
    before: Optional[gdb.Inferior] = None
    for number, rank in enumerate(request["ranks"]):
        progress(f"stacks of {number + 1}/{len(request['ranks'])}")
        add(at=rank["index"])
        known = len(table.rows)
        inferior = compat.add_inferior()
        compat.switch_inferior(inferior)
        entry: Dict[str, Any] = {"index": rank["index"], "threads": [], "problems": []}
        try:
            entry["problems"] += _load(rank)
            # The one before goes only now: what gdb knows of the files they share must outlive it.
            _drop(before)
            walk = _walk(rank, inferior, budget, captures)
            entry["threads"] = table.pack(walk.threads)
            entry["problems"] += walk.problems
            if _lacks_memory():  # it reads no symbols then, without a word
                entry["problems"].append(f"gdb has no memory left: names may be missing; {MORE_MEMORY}")
        except (gdb.error, RuntimeError, OSError, ValueError, KeyError, TypeError) as error:
            why = " ".join(str(error).split()) or type(error).__name__
            # Without memory it says of a good file that its format is not recognized.
            why = f"gdb ran out of memory; {MORE_MEMORY}" if _lacks_memory() else why
            entry["problems"].append(f"cannot read the copy: {why}")
        add(frames=table.rows[known:], rank=entry)
        before = inferior


def _lacks_memory() -> bool:
    try:
        bytearray(_SOME)
    except MemoryError:
        return True
    return False


def _load(rank: Dict[str, Any]) -> List[str]:
    """Program, libraries and memory of one rank into the current inferior."""
    problems: List[str] = []
    for row in rank["files"]:
        progress(f"reading {rank['index']} {' '.join(row['name'].split())[:_LONGEST_NAME]}")
        file = symbols.SymbolFile(symbols.LITERALLY + row["path"], row["bias"], row["name"])
        problems += symbols.add_program(file) if row.get("program") else symbols.add([file])
    compat.open_core(rank["core"])
    return problems


def _walk(rank: Dict[str, Any], inferior: gdb.Inferior, budget: Budget, captures: Captures) -> Walk:
    modules = Modules.of_rows(rank["modules"])
    with contextlib.ExitStack() as stack:
        whole = stack.enter_context(CoreFile(rank["memory"])) if rank.get("memory") else None
        stack.enter_context(also_from((whole or ProcessMemory(rank["pid"])).read))
        return Walker(modules, budget, captures, by_lwp).walk(inferior)


def _drop(inferior: Optional[gdb.Inferior]) -> None:
    if inferior is None:
        return
    with compat.inferior_selected(inferior):
        gdb.execute("core-file", to_string=True)
    compat.remove_inferior(inferior)


def progress(text: str) -> None:
    """Past gdb's own streams: they may be redirected."""
    os.write(2, f"progress: {text}\n".encode(errors="replace"))


def write(path: str, result: Dict[str, Any]) -> None:
    """In one piece, or not at all."""
    draft = path + ".part"
    with _created(draft) as file:
        file.write(json.dumps(result))
    os.rename(draft, path)


def _created(path: str) -> TextIOWrapper:
    """Only the owner may read it: stacks may hold secrets."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8")
