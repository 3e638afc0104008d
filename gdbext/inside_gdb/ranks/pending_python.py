"""Hands a text of Python to running ranks, which run it at the next safe point of their main thread.

Request: {"schema": 1, "result": PATH, "ranks": [{"pid", "start", "rank", "text"}]}; start: clock ticks after boot
Result:  {"schema": 1, "complete": true, "ranks": [{"pid", "problem": TEXT or null}]}

Two functions of the rank are called: `mmap` for a page with the text, and `Py_AddPendingCall`, which CPython documents
to be safe in any thread, with or without the GIL. What it queues is `PyRun_SimpleString` with the text, an
`int (*)(char *)` as the queue wants it; the interpreter calls it between two bytecodes. The page stays mapped.
"""

from __future__ import annotations

import json
import time
from typing import Any, Dict, Optional

import gdb

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.inside_gdb.base import compat, symbols
from gdbext.inside_gdb.base.functions import address_of
from gdbext.inside_gdb.calls.target_calls import Caller
from gdbext.inside_gdb.ranks.before_attach import ATTACH_SETTINGS
from gdbext.inside_gdb.stacks import read_copies
from gdbext.model.missing import Missing

_TRYING, _PAUSE = 3.0, 0.05  # seconds for one rank, and between two stops of it


def main(request_file: str) -> None:
    """Work on the request; always leaves a result, in which errors are lines."""
    with open(request_file, encoding="utf-8") as file:
        request = json.load(file)
    # It does not end with its parent, as the gdb that reads copies does: a rank would be left in the middle of a call.
    result: Dict[str, Any] = {"schema": read_copies.SCHEMA, "complete": True, "ranks": []}
    wanted = request["ranks"]
    gdb.execute("set llm allow-calls on", to_string=True)
    with compat.settings(ATTACH_SETTINGS), symbols.preloaded([rank["pid"] for rank in wanted]):
        for rank in wanted:
            try:
                problem = symbols.trap_of(rank["pid"]) or _inject_code(rank)
            except (gdb.error, RuntimeError, OSError, ValueError) as error:
                problem = symbols.first_line(error)
            result["ranks"].append({"pid": rank["pid"], "problem": problem})
    read_copies.write(request["result"], result)


def _inject_code(rank: Dict[str, Any]) -> Optional[str]:
    """One rank: stopped, two calls, let go. Why it did not work, if so. A thread that allocates memory or the like at
    that moment may not be disturbed: the rank runs on a little, and is stopped again."""
    inferior = compat.add_inferior()
    compat.switch_inferior(inferior)
    until = time.monotonic() + _TRYING
    while True:
        try:
            gdb.execute(f"attach {rank['pid']}", to_string=True)
            stat = ProcFS().stat(rank["pid"])  # from here on the pid cannot become another process
            if isinstance(stat, Missing) or stat.start_time != rank["start"]:
                return "it has ended, and its pid is another process now"
            caller = Caller(lambda line: read_copies.progress(line), rank["rank"])
            thread = caller.thread()
            if not isinstance(thread, Missing):
                return _call(rank, inferior, caller)
        finally:
            if inferior.pid:
                gdb.execute("detach", to_string=True)
        if time.monotonic() > until:
            return thread.reason
        time.sleep(_PAUSE)


def _call(rank: Dict[str, Any], inferior: gdb.Inferior, caller: Caller) -> Optional[str]:
    function = address_of(rank["pid"], "PyRun_SimpleString")
    if isinstance(function, Missing):
        return function.reason
    text = rank["text"].encode() + b"\0"
    page = caller.new_memory(len(text))
    if isinstance(page, Missing):
        return page.reason
    if not page:
        return "it has no memory for a page of ours"
    inferior.write_memory(page, text)
    queued = caller.call("Py_AddPendingCall", "int", [("void*", function), ("void*", page)])
    if isinstance(queued, Missing):
        return queued.reason
    return "its queue of pending calls is full" if queued else None
