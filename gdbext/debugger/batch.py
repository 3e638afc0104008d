"""Reads copies of stopped processes (mini cores) for the front end: a request file in, a result file out.

Request: {"schema": 1, "result": PATH, "parent": PID that it ends with, "budget": {"seconds", "frames", "threads"},
          "ranks": [{"index", "pid", "core": PATH, "exe": PATH, "files": [{"path", "bias"}],
                     "memory": PATH of the whole core where the process is gone}]}
Result:  {"schema": 1, "complete": true, "problems": [TEXT], "frames": [rows of model/frame_table.py],
          "ranks": [{"index", "threads": [packed by these rows], "problems": [TEXT]}]}

The result appears by rename, whole or not at all: gdb's exit code says nothing. `budget.seconds` is for each rank.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import signal
from typing import Any, Dict, List, Optional

import gdb

from gdbext.capture.core_file import CoreFile
from gdbext.capture.memory import ProcessMemory
from gdbext.debugger import compat, symbols
from gdbext.debugger.collect import Budget, Captures, Walk, Walker, by_lwp
from gdbext.debugger.modules import Modules
from gdbext.debugger.values import also_from
from gdbext.model.frame_table import FrameTable

SCHEMA = 1
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
    """Work on the request; always leaves a result, in which errors are lines. `awaited`: it is not there yet."""
    gc.disable()  # we end soon, and what we keep has no cycles: looking for some took a quarter of the time
    if awaited and not _read_early():
        return
    with open(request_file, encoding="utf-8") as file:
        request = json.load(file)
    _end_with(request.get("parent"))
    result: Dict[str, Any] = {"schema": SCHEMA, "complete": True, "frames": [], "ranks": [], "problems": []}
    if request.get("schema") != SCHEMA:
        result["problems"].append(f"request of schema {request.get('schema')}, this gdbext knows {SCHEMA}")
    else:
        _unwind_without_python()
        with compat.settings(SETTINGS):
            _read_all(request, result)
    write(request["result"], result)


def _read_early() -> bool:
    """Read the symbols of the libraries that are named on the standard input, a line each, into the first inferior,
    which nobody else uses: those of the ranks share them (debugger/symbols.py). An empty line: the request is there. At
    the end nobody wants us any more: False."""
    _end_with(os.getppid())
    with open(0, "rb", buffering=0, closefd=False) as lines, compat.settings(SETTINGS):
        for line in lines:
            if line == b"\n":
                return True
            symbols.add([symbols.SymbolFile(os.fsdecode(line[:-1]), 0)])  # what fails now will fail again, and be told
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


def _read_all(request: Dict[str, Any], result: Dict[str, Any]) -> None:
    budget = Budget(**request.get("budget", {}))
    captures, table = Captures(), FrameTable()
    result["frames"] = table.rows
    before: Optional[gdb.Inferior] = None
    for number, rank in enumerate(request["ranks"]):
        progress(f"stacks of {number + 1}/{len(request['ranks'])}")
        inferior = compat.add_inferior()
        compat.switch(inferior)
        entry: Dict[str, Any] = {"index": rank["index"], "threads": [], "problems": []}
        result["ranks"].append(entry)
        try:
            entry["problems"] += _load(rank)
            # The one before goes only now: what gdb knows of the files they share must outlive it.
            _drop(before)
            walk = _walk(rank, inferior, budget, captures)
            entry["threads"] = table.pack(walk.threads)
            entry["problems"] += walk.problems
        except (gdb.error, RuntimeError, OSError, ValueError, KeyError, TypeError) as error:
            entry["problems"].append(f"cannot read the copy: {' '.join(str(error).split()) or type(error).__name__}")
        before = inferior


def _load(rank: Dict[str, Any]) -> List[str]:
    """Program, libraries and memory of one rank into the current inferior."""
    files = [symbols.SymbolFile(file["path"], file["bias"]) for file in rank["files"]]
    program = next((file for file in files if _is_same(file.path, rank["exe"])), None)
    problems: List[str] = []
    try:  # the core's auxiliary vector tells gdb where the program lies
        if program or rank["exe"]:
            compat.run(f"file {symbols.quoted(program.path if program else rank['exe'])}")
    except gdb.error as error:
        problems.append(f"no symbols of the program: {symbols.first_line(error)}")
    problems += symbols.add(file for file in files if file is not program)
    compat.open_core(rank["core"])
    return problems


def _is_same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _walk(rank: Dict[str, Any], inferior: gdb.Inferior, budget: Budget, captures: Captures) -> Walk:
    modules = Modules.of_core(rank["core"])
    with contextlib.ExitStack() as stack:
        whole = stack.enter_context(CoreFile(rank["memory"])) if rank.get("memory") else None
        stack.enter_context(also_from((whole or ProcessMemory(rank["pid"])).read))
        return Walker(modules, budget, captures, by_lwp).walk(inferior)


def _drop(inferior: Optional[gdb.Inferior]) -> None:
    if inferior is None:
        return
    with compat.selected(inferior):
        gdb.execute("core-file", to_string=True)
    compat.remove_inferior(inferior)


def progress(text: str) -> None:
    """Past gdb's own streams: they may be redirected."""
    os.write(2, f"progress: {text}\n".encode(errors="replace"))


def write(path: str, result: Dict[str, Any]) -> None:
    """Only the owner may read it: stacks may hold secrets."""
    draft = path + ".part"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(json.dumps(result))  # in one piece: it takes a tenth of the time of `dump`
    os.rename(draft, path)
