"""When gdb is told to end, or is killed: no breakpoint stays in the code of a rank."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import gdb

from gdbext.capture import text_guard
from gdbext.debugger import compat
from gdbext.debugger.timer import start
from gdbext.discovery.interpreter import interpreters

Places = Dict[Tuple[int, int], Optional[int]]
"""By pid and address: the byte of the program."""


class Mender:
    """A process that lives as long as gdb and then mends the ranks' code: capture/text_guard.py."""

    def __init__(self) -> None:
        self._process: Optional[subprocess.Popen[str]] = None
        self._known: Places = {}

    def start(self) -> bool:
        """Whether it is there."""
        if self._process is not None and self._process.poll() is None:
            return True
        for python in interpreters():
            try:
                self._process = subprocess.Popen(
                    [python, "-I", "-S", text_guard.__file__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    start_new_session=True,  # the end of gdb's terminal is not its own
                )
            except OSError:
                continue
            self._known = {}
            return True
        return False

    def watch(self, points: Sequence[gdb.Breakpoint]) -> None:
        """These breakpoints and no others are in the ranks' code when they run."""
        if self._process is None or self._process.stdin is None or self._process.stdout is None:
            return
        wanted = _places(points)
        if set(wanted) == set(self._known):  # asked at each hit
            return
        self._known = {place: self._known.get(place) or _byte(place) for place in wanted}
        by_pid: Dict[int, List[Tuple[int, int]]] = {}
        for (pid, address), byte in self._known.items():
            if byte is not None:
                by_pid.setdefault(pid, []).append((address, byte))
        try:
            self._process.stdin.write(json.dumps(sorted(by_pid.items())) + "\n")
            self._process.stdin.flush()
            self._process.stdout.readline()  # it has opened what it needs
        except OSError:  # killed: the next llm-break starts another
            self._process = None


def _places(points: Sequence[gdb.Breakpoint]) -> List[Tuple[int, int]]:
    """Pids and addresses."""
    pids = {inferior.num: inferior.pid for inferior in gdb.inferiors() if inferior.pid}
    return [
        (pids[number], address)
        for point in points
        for address, numbers in compat.locations(point)
        for number in numbers
        if number in pids
    ]


def _byte(place: Tuple[int, int]) -> Optional[int]:
    """Of the program: gdb shows its own breakpoints as what they stand in place of."""
    inferior = next(one for one in gdb.inferiors() if one.pid == place[0])
    try:
        return bytes(inferior.read_memory(place[1], 1))[0]
    except (gdb.error, MemoryError):
        return None


def on_signals(told_to_end: Callable[[], None], suspended: Callable[[], None]) -> None:
    """Runs these in gdb's event loop on SIGTERM and SIGTSTP (Ctrl-Z), in place of gdb's own handlers.

    gdb's SIGTERM is forgotten when it comes while a condition is evaluated (18.1). A gdb that is suspended holds the
    ranks for as long as nobody remembers it, and no switch of ours can work.
    """
    bodies = {signal.SIGTERM: told_to_end, signal.SIGTSTP: suspended}
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    for number in bodies:
        signal.signal(number, lambda number, frame: None)  # the byte in the pipe is what counts

    def wait() -> None:
        while True:
            for number in os.read(ours, 64):
                if number in bodies:
                    gdb.post_event(bodies[signal.Signals(number)])

    start(threading.Thread(target=wait))
