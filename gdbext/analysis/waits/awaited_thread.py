"""Of a thread that waits for another one of its process: which one that is, or may be."""

from __future__ import annotations

from gdbext.analysis.view.job_view import JobView, Party, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import start
from gdbext.knowledge.frames.python.interpreter import THREADS_QUEUE
from gdbext.knowledge.frames.system.libc import JOINS
from gdbext.knowledge.runtimes.glibc_locks import JOINS_THREAD
from gdbext.model.codes import Given

_FOR_A_THREAD = (*JOINS, THREADS_QUEUE)
"""Frame rules of waits that end when one other thread of the process does something."""


def awaited_thread(view: JobView, party: Party) -> str:
    """`That is thread 2 (worker), in Engine::loop (engine.cpp:40).`; of others the only one that there is; else ""."""
    if party.judged.rule not in _FOR_A_THREAD or party.thread is None:
        return ""
    others = [one for one in threads_of(view, party.index) if one.thread is not party.thread and one.thread is not None]
    owners = {wait.owner for wait in party.process.locks if wait.kind == "join" and wait.thread == party.lwp}
    joined = [one for one in others if one.lwp is not None and one.lwp in owners]
    if joined:
        return f"That is {_name(joined[0])}, in {where(joined[0])}."
    own = [one for one in others if one.judged.helper is None]
    if len(own) != 1 or any(JOINS_THREAD in frame.captures for frame in party.thread.calls):  # which one was printed
        return ""
    seen = "in the text" if view.given is Given.TEXT else "that was read"
    seen += "" if len(others) == 1 else ", apart from helpers of libraries,"
    return f"{start(f'the only other thread {seen} is {_name(own[0])}')}, in {where(own[0])}."


def _name(one: Party) -> str:
    name = one.thread.name if one.thread is not None else ""
    return f"thread {one.id}{f' ({name})' if name else ''}"
